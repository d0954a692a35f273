"""Terraform's command lines.

The argument builders are pure; python-terraform spells the options. `process` runs them, `output` reads them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from python_terraform import IsFlagged, IsNotFlagged
from python_terraform import Terraform as CommandLines

#: The wait for a state lock: longer than an interrupted predecessor needs to release it.
LOCK_TIMEOUT_SECONDS = 30

# It looks for a state file when it is made: give it a place where there is none.
_COMMAND_LINES = CommandLines(working_dir=os.devnull)


def init_args(*, speaks_json: bool = True) -> list[str]:
    return _args("init", input=False, json=_flag(speaks_json), no_color=_flag(not speaks_json))


def plan_args(*, out: Path, variables: str, destroy: bool = False, refresh_only: bool = False) -> list[str]:
    # A refresh-only plan follows an apply that was lost and may have left its lock: reading needs none.
    locking = {"lock": False} if refresh_only else {"lock_timeout": f"{LOCK_TIMEOUT_SECONDS}s"}
    return _args(
        "plan", json=IsFlagged, input=False, detailed_exitcode=IsFlagged, destroy=_flag(destroy),
        refresh_only=_flag(refresh_only), var_file=variables, out=out, **locking,
    )  # fmt: skip


def apply_args(*, plan: Path) -> list[str]:
    return _args("apply", str(plan), json=IsFlagged, input=False, lock_timeout=f"{LOCK_TIMEOUT_SECONDS}s")


def show_args(*, plan: Path) -> list[str]:
    return _args("show", str(plan), json=IsFlagged)


def output_args() -> list[str]:
    return _args("output", json=IsFlagged)


def state_pull_args() -> list[str]:
    return _args("state pull")


def state_push_args(*, file: Path) -> list[str]:
    return _args("state push", str(file), lock_timeout=f"{LOCK_TIMEOUT_SECONDS}s")


def _args(command: str, *arguments: str, **options: Any) -> list[str]:
    built: list[str] = _COMMAND_LINES.generate_cmd_string(command, *arguments, **options)
    return built[1:]  # without the program


def _flag(is_set: bool) -> Any:
    return IsFlagged if is_set else IsNotFlagged
