"""Runner processes of the suite, and what they leave on the machine."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from runner.terraform.workdir import Workdir
from tests.process_table import children, command_line, has_ended, pids
from tests.waiting import wait_until

ROOT = Path(__file__).parents[2]

#: Before a directory and a command: it has two megabytes there, for itself and its children only. Nobody
#: else sees the mount, and it ends with them.
ON_A_SMALL_DISK = (
    "unshare", "--mount", "--map-root-user", "sh", "-c",
    'mount -t tmpfs -o size=2m,mode=700 slipway "$0" && exec "$@"',
)  # fmt: skip


def fill(disk: Path) -> None:
    """Fill it to the last byte; removing the file `filling` frees the space again."""
    with (disk / "filling").open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while os.write(file.fileno(), b"x" * size):
                    pass


class RunnerProcess:
    """A `slipway-runner start` of the suite's."""

    def __init__(self, process: subprocess.Popen[bytes], data_dir: Path, log: Path) -> None:
        self.process = process
        self.data_dir = data_dir
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill_with(self, *others: int) -> None:
        """All in the same moment: nobody lives to see another's death."""
        pids = [*others, self.process.pid]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in pids:
                os.kill(pid, number)
        self.wait()

    def wait(self, *, seconds: float = 60) -> int:
        return self.process.wait(timeout=seconds)

    def terraform_processes(self) -> list[int]:
        """Return the processes that run in this runner's working directories, providers included."""
        return [pid for pid in pids() if str(self.data_dir / "work") in _where(pid)]

    def programs(self) -> str:
        """The command lines of all that."""
        return "\n".join(command_line(pid) for pid in self.terraform_processes())

    def living(self) -> list[int]:
        """Return those that have not ended, which a stopped runner cannot collect."""
        return [pid for pid in self.terraform_processes() if not has_ended(pid)]

    def wait_until_nothing_runs(self, *, seconds: float) -> None:
        wait_until(lambda: not self.living(), seconds=seconds, what="the end of Terraform")

    def end_of_terraform(self, *, seconds: float = 60) -> datetime:
        """Wait for the end of all present processes of jobs; returns the exact time of the last one."""
        with ExitStack() as opened:
            running = opened.enter_context(selectors.DefaultSelector())
            for pid in self.living():
                descriptor = os.pidfd_open(pid)
                opened.callback(os.close, descriptor)
                running.register(descriptor, selectors.EVENT_READ)
            while running.get_map():
                ended = running.select(seconds)
                assert ended, f"Terraform is still there after {seconds} s"
                for key, _ in ended:
                    running.unregister(key.fd)
            return datetime.now(UTC)

    def watchdogs(self) -> list[int]:
        return [child for child in children(self.process.pid) if "watchdog.py" in command_line(child)]

    def leashes(self) -> list[int]:
        return [
            child for child in children(self.process.pid) if "runner.terraform.leash" in command_line(child)
        ]

    def own_processes(self) -> list[int]:
        """The runner, then its watchdog and, while it has a job, its relay; a leash belongs to the job."""
        helpers = {child for child in children(self.process.pid) if "runner/" in command_line(child)}
        return [self.process.pid, *helpers.difference(self.leashes())]

    def workdirs(self) -> list[Path]:
        return list((self.data_dir / "work").glob("*"))

    def end(self) -> None:
        """No test leaves a process or a folder behind, whatever it did to its runner."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.data_dir.exists():
            wait_until(lambda: not self.terraform_processes(), seconds=70, what="the end of Terraform")
            for directory in self.workdirs():
                Workdir(directory).remove()
        assert "Traceback" not in self.log, self.log


def spawn_runner(
    *,
    console_url: str,
    data_dir: Path,
    log: Path,
    arguments: Sequence[str] = (),
    environ: Mapping[str, str],
    through: Sequence[str] = (),
    tree: Path = ROOT,
) -> RunnerProcess:
    """Start the runner of a tree, `through` a command that does something for it and then becomes it."""
    command = [*through, sys.executable, "-m", "runner.main", "start", "--console", console_url]
    base = {"PATH": os.environ["PATH"], "PYTHONWARNINGS": "error"}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--data-dir", str(data_dir), *arguments],
            cwd=tree, env=base | dict(environ), stdout=output, stderr=output,
        )  # fmt: skip
    return RunnerProcess(process, data_dir, log)


def _where(pid: int) -> str:
    try:
        process = Path(f"/proc/{pid}")
        return f"{(process / 'cwd').readlink()} {(process / 'environ').read_text()}"
    except (OSError, UnicodeDecodeError):
        return ""
