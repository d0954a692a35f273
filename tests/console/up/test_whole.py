"""`slipway up` as a whole: it starts everything, keeps it running, and leaves nothing behind but the data."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import httpx

from tests.console.up.conftest import RunningUp, Slipway, wait_for_all_to_end
from tests.process_table import has_ended
from tests.waiting import wait_until

StartUp = Callable[[], RunningUp]

CONSOLE, JANITOR, DATABASE = " -m console.local.serve ", " -m django janitor", "/postgres -D "


def answers(up: RunningUp) -> bool:
    try:
        return httpx.get(f"{up.url}/healthz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def kill_and_await_another(up: RunningUp, words: str) -> None:
    first = up.child(words)
    assert first is not None
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: up.child(words) not in (None, first), seconds=30, what=f"another process:{words}")


def test_it_starts_says_where_and_stops(start_up: StartUp, slipway: Slipway) -> None:
    up = start_up()
    assert answers(up)
    assert f"{up.root}/log" in up.printed
    assert "Slipway is running" in slipway("doctor", f"--data-dir={up.root}").stdout
    everything = up.processes()
    assert len(everything) > 3

    up.process.send_signal(signal.SIGINT)
    assert up.wait_for_end() == 0
    assert up.printed.rstrip().endswith(f"Stopped. Your data is in {up.root}")
    assert "Traceback" not in up.printed
    assert all(map(has_ended, everything))


def test_the_password_is_shown_and_in_no_file(start_up: StartUp) -> None:
    up = start_up()
    assert len(up.password) >= 20
    logs = "".join(log.read_text() for log in (up.root / "log").glob("*.log"))
    assert up.password not in logs


def test_killing_it_leaves_no_process_and_loses_nothing(start_up: StartUp) -> None:
    up = start_up()
    secrets = (up.root / "secrets.json").read_text()
    everything = up.processes()
    up.process.kill()
    wait_for_all_to_end(everything)

    assert answers(start_up())
    assert (up.root / "secrets.json").read_text() == secrets


def test_what_dies_is_restarted(start_up: StartUp) -> None:
    up = start_up()
    kill_and_await_another(up, JANITOR)
    up.wait_for("The janitor ended (killed by SIGKILL) and is being restarted")
    kill_and_await_another(up, DATABASE)
    up.wait_for("The database ended and is being restarted")
    kill_and_await_another(up, CONSOLE)
    up.wait_for("The console ended (killed by SIGKILL) and is being restarted")
    wait_until(lambda: answers(up), seconds=30, what="an answer of the console")


def test_a_new_password_while_running_and_while_stopped(start_up: StartUp, slipway: Slipway) -> None:
    up = start_up()
    place = f"--data-dir={up.root}"
    assert slipway("reset-password", place).stdout.startswith("The new password of admin: ")
    assert "no user 'ghost'" in slipway("reset-password", place, "--username=ghost").stderr
    up.process.send_signal(signal.SIGTERM)
    assert up.wait_for_end() == 0
    assert slipway("reset-password", place).stdout.startswith("The new password of admin: ")


def test_an_impatient_second_signal_hurries_and_still_cleans_up(start_up: StartUp) -> None:
    up = start_up()
    everything = up.processes()
    console = up.child(CONSOLE)
    assert console is not None
    os.kill(console, signal.SIGSTOP)  # It will not follow the first request.
    up.process.send_signal(signal.SIGINT)
    up.wait_for("Stopping")

    def ends_when_asked_again() -> bool:
        up.process.send_signal(signal.SIGINT)
        return up.process.poll() is not None

    wait_until(ends_when_asked_again, seconds=8, what="the end, before the console's ten seconds are over")
    assert up.wait_for_end() == 0
    assert all(map(has_ended, everything))
