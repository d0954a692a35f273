"""The data directory: its place, its privacy and its secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from console.local.data_directory import data_directory_path, open_data_directory
from console.local.refusal import Refused


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_its_place_follows_the_option_then_the_environment(tmp_path: Path) -> None:
    environment = {"SLIPWAY_DATA_DIR": str(tmp_path / "variable"), "XDG_DATA_HOME": str(tmp_path / "xdg")}
    assert data_directory_path(str(tmp_path / "option"), environment) == tmp_path / "option"
    assert data_directory_path(None, environment) == tmp_path / "variable"
    del environment["SLIPWAY_DATA_DIR"]
    expected = Path("/var/lib/slipway") if os.geteuid() == 0 else tmp_path / "xdg" / "slipway"
    assert data_directory_path(None, environment) == expected


def test_nobody_else_can_look_in(reachable_tmp_path: Path) -> None:
    data = open_data_directory(reachable_tmp_path / "data")
    data.secrets()
    assert mode(data.root) == (0o710 if os.geteuid() == 0 else 0o700)
    assert mode(data.secrets_file) == 0o600
    assert mode(data.log) == mode(data.runner) == 0o700


def test_folders_above_it_keep_their_modes(reachable_tmp_path: Path) -> None:
    parent = reachable_tmp_path / "private"
    parent.mkdir(mode=0o700)
    open_data_directory(parent / "data")
    assert mode(parent) == 0o700


def test_secrets_are_made_once(reachable_tmp_path: Path) -> None:
    root = reachable_tmp_path / "data"
    first = open_data_directory(root).secrets()
    assert open_data_directory(root).secrets() == first
    assert len(first.secret_key) >= 50


def test_a_start_that_was_killed_early_is_no_obstacle(reachable_tmp_path: Path) -> None:
    root = reachable_tmp_path / "data"
    root.mkdir()
    (root / "slipway-data.json.unfinished").write_text("{")
    assert open_data_directory(root).marker.exists()


def test_it_is_held_by_one_at_a_time(reachable_tmp_path: Path) -> None:
    data = open_data_directory(reachable_tmp_path / "data")
    with data.hold(address="here"):
        assert data.is_held()
        with pytest.raises(Refused, match="is using"), data.hold(address="there"):
            pass
    assert not data.is_held()
