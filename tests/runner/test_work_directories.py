"""The files of an attempt are removed afterwards, by the runner or by the watchdog."""

from __future__ import annotations

import stat
from pathlib import Path
from uuid import uuid4

import pytest

from runner.terraform.workdir import DataDirectory


@pytest.mark.parametrize(("depth", "places"), [(0, 1), (20, 2)], ids=["a short path", "a long path"])
def test_all_of_a_killed_attempt_is_known_from_the_start_and_removed_at_the_next(
    reachable_tmp_path: Path, depth: int, places: int
) -> None:
    """Providers open sockets in their temporary folder; below a long path they could not."""
    data = DataDirectory(reachable_tmp_path / ("long-" * depth + "data"))
    data.prepare()
    workdir = data.workdir(uuid4().hex)
    watched = workdir.directories
    workdir.make()
    assert len(watched) == places
    for directory in (*watched, workdir.temporary):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    data.sweep(grace_seconds=0)
    assert not any(directory.exists() for directory in (*watched, workdir.temporary))
