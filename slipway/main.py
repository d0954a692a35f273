"""`slipway`: parses the command line and calls the code that owns each command.

Commands import the console inside their functions: the base install is the runner alone, and a command must
be able to say there that the console is missing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from runner import __version__
from slipway.state import add_state

EXIT_OK = 0
EXIT_FINDINGS = 1
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = _build_parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except ModuleNotFoundError as error:
        return _refuse(f"{error.name} is not installed. Install the console: pip install 'slipway[console]'")


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slipway", description="A self-hosted control plane for Terraform.")
    commands = parser.add_subparsers(metavar="command", required=True)
    _add_up(commands)
    _add_doctor(commands)
    _add_reset_password(commands)
    add_state(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(command=_print_version)
    return parser


def _add_up(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    up = commands.add_parser("up", help="run everything on this machine")
    _add_address(up)
    _add_data_dir(up)
    up.add_argument("--with-parent", action="store_true", help="stop when the parent process ends")
    up.set_defaults(command=_up)


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser("doctor", help="check this machine, and say how to fix what is wrong")
    _add_address(doctor)
    _add_data_dir(doctor)
    doctor.set_defaults(command=_doctor)


def _add_reset_password(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    reset = commands.add_parser("reset-password", help="generate a new password for an account")
    reset.add_argument("--username", default="admin", help="the account (default: %(default)s)")
    _add_data_dir(reset)
    reset.set_defaults(command=_reset_password)


def _add_address(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port",
        default=8000,
        type=_parse_port,
        help="port to listen on; 0 takes a free one (default: %(default)s)",
    )


def _add_data_dir(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        help="the data directory (default: $SLIPWAY_DATA_DIR, else /var/lib/slipway for root "
        "and ~/.local/share/slipway for others)",
    )


def _parse_port(text: str) -> int:
    if not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: use a number from 0 to 65535")
    return int(text)


# --- Commands -------------------------------------------------------------------------------------


def _up(options: argparse.Namespace) -> int:
    import signal

    from console.local.parent_death import follow_parent
    from console.local.refusal import Refused
    from console.local.up import up

    if options.with_parent:
        follow_parent(signal.SIGTERM)
    try:
        return up(host=options.host, port=options.port, data_dir=options.data_dir)
    except Refused as refusal:
        return _refuse(str(refusal))


def _doctor(options: argparse.Namespace) -> int:
    from console.local.doctor import examine

    findings = examine(host=options.host, port=options.port, data_dir=options.data_dir)
    for finding in findings:
        _say(str(finding))
    return EXIT_FINDINGS if any(finding.is_failure for finding in findings) else EXIT_OK


def _reset_password(options: argparse.Namespace) -> int:
    from console.local.refusal import Refused
    from console.local.up import reset_password

    try:
        password = reset_password(username=options.username, data_dir=options.data_dir)
    except Refused as refusal:
        return _refuse(str(refusal))
    _say(f"The new password of {options.username}: {password}")
    return EXIT_OK


def _print_version(_: argparse.Namespace) -> int:
    _say(f"slipway {__version__}")
    return EXIT_OK


def _say(text: str) -> None:
    print(text)  # noqa: T201


def _refuse(text: str) -> int:
    print(f"slipway: {text}", file=sys.stderr)  # noqa: T201
    return EXIT_REFUSED
