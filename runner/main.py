"""The command `slipway-runner`."""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import dataclasses
import logging
import os
import platform
import resource
import signal
import sys
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from runner import __version__
from runner.attempt import Equipment
from runner.check import check
from runner.client import ConsoleAway, ConsoleClient, CredentialRefused, Refused, RegistrationRefused
from runner.clouds.registry import CLOUDS
from runner.config import Settings, SettingsError, load_settings
from runner.goodbye import send_goodbye
from runner.loop import JOB_TYPES, Runner
from runner.protocol import HelloAnswer, RegistrationRequest, RunnerFacts
from runner.runner_credential import (
    RunnerCredential,
    read_credential,
    require_space_for_credential,
    write_credential,
)
from runner.terraform.binary import TerraformBinary, TerraformMissing, find_terraform
from runner.terraform.relay import Relay
from runner.terraform.watchdog import Watchdog
from runner.terraform.workdir import DataDirectory

logger = logging.getLogger("runner")

_PR_SET_DUMPABLE = 4

#: A wrong setting or a refused credential: trying again without a change is pointless.
EXIT_REFUSED = 2
#: Interrupted before the first job could be claimed; the shell's convention for Ctrl-C.
EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    _log_to_stderr()
    try:
        settings = load_settings(options, os.environ)
        command: Callable[[Settings], int] = options.command
        return command(settings)
    except (SettingsError, TerraformMissing, Refused, ConsoleAway) as error:
        sys.stderr.write(f"slipway-runner: {error}\n")
        return EXIT_REFUSED
    except OSError as error:
        # Such as a disk that is full from the start; attempts report their own errors.
        sys.stderr.write(f"slipway-runner: {error}\n")
        return EXIT_REFUSED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def start(settings: Settings) -> int:
    _close_memory()
    terraform = find_terraform()
    data = DataDirectory(settings.data_dir)
    data.prepare()
    data.hold()
    data.sweep(grace_seconds=settings.stop_grace_seconds)
    client = ConsoleClient(console_url=settings.console_url, ca_file=settings.ca_file)
    with contextlib.closing(client):
        return _serve(_equip(settings, client, terraform, data))


def rotate(settings: Settings) -> int:
    """Replace the credential, also while the runner is running: it reads the file again when needed."""
    credential = settings.credential or read_credential(settings.credential_file)
    if not credential:
        raise SettingsError(f"No credential in {settings.credential_file}: there is nothing to replace.")
    client = ConsoleClient(console_url=settings.console_url, credential=credential, ca_file=settings.ca_file)
    with contextlib.closing(client):
        credential_file = RunnerCredential(settings, client)
        fresh = credential_file.rotate(facts_beside_runner(find_terraform(), settings))
    if credential_file.is_configured:
        # It was configured from elsewhere, such as a secret store, where only people can replace it.
        sys.stdout.write(f"{fresh}\n")
    else:
        logger.info("A new credential is in %s; the old one ends in ten minutes.", settings.credential_file)
    return 0


def _equip(
    settings: Settings, client: ConsoleClient, terraform: TerraformBinary, data: DataDirectory
) -> Equipment:
    facts = dataclasses.replace(runner_facts(terraform, settings), start_id=uuid.uuid4().hex)
    client.use_credential(_credential(settings, client, facts))
    client.on_refusal(RunnerCredential(settings, client).read_again)
    answer = _say_hello(client, facts)
    if settings.sends_in_clear:
        logger.warning("%s is not encrypted: others may read credentials and logs.", settings.console_url)
    logger.info("Runner %s of %s, %s.", answer.name, answer.organization, _describe(terraform, settings))
    return Equipment(
        settings=settings,
        name=answer.name,
        facts=facts,
        client=client,
        terraform=terraform,
        data=data,
        watchdog=Watchdog(inherited=[data.attempts_lock]),
        relay=Relay(environ=os.environ, ca_file=settings.ca_file),
        environ=_without_secrets(),
    )


def runner_facts(terraform: TerraformBinary, settings: Settings) -> RunnerFacts:
    return RunnerFacts(
        version=__version__,
        terraform_version=terraform.label,
        platform=f"{platform.system()}/{platform.machine()}".lower(),
        slots=settings.slots,
        types=JOB_TYPES,
        pools=list(settings.pools),
    )


def facts_beside_runner(terraform: TerraformBinary, settings: Settings) -> RunnerFacts:
    """Return facts without slots: this command has other options, and must not replace the runner's."""
    return dataclasses.replace(runner_facts(terraform, settings), slots=0)


def _serve(equipment: Equipment) -> int:
    runner = Runner(equipment)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: runner.interrupt(received))
    equipment.watchdog.start()
    try:
        runner.run()
    finally:
        equipment.watchdog.close()
        equipment.relay.close()
    if not runner.credential_refused:
        send_goodbye(equipment.client, equipment.facts)
    logger.info("Stopped.")
    return EXIT_REFUSED if runner.credential_refused else 0


def _credential(settings: Settings, client: ConsoleClient, facts: RunnerFacts) -> str:
    """Return the configured or stored credential, or exchange a registration token for one."""
    if credential := settings.credential or read_credential(settings.credential_file):
        return credential
    if not settings.token:
        raise SettingsError(
            f"No credential in {settings.credential_file} and no registration token: create a token in the "
            "console under Runners, then set SLIPWAY_REGISTRATION_TOKEN."
        )
    require_space_for_credential(settings.credential_file)
    request = RegistrationRequest(token=settings.token, name=settings.name, facts=facts)
    try:
        answer = client.register(request, give_up=lambda: False)
    except RegistrationRefused as error:
        raise SettingsError(
            f"The console refused the registration token: {error}. Create a new one."
        ) from error
    write_credential(settings.credential_file, answer.credential)
    logger.info("Registered as %s.", answer.name)
    return answer.credential


def _say_hello(client: ConsoleClient, facts: RunnerFacts) -> HelloAnswer:
    try:
        return client.hello(facts, give_up=lambda: False)
    except CredentialRefused as error:
        raise SettingsError(
            f"The console refused this runner's credential: {error}. Register it again with a new token, "
            "after removing the old credential file."
        ) from error


def _describe(terraform: TerraformBinary, settings: Settings) -> str:
    slots = "one slot" if settings.slots == 1 else f"{settings.slots} slots"
    return f"{terraform.product} {terraform.version} from {terraform.path}, {slots}, {settings.console_url}"


def _without_secrets() -> dict[str, str]:
    """Return the environment, of which jobs may see a part; remove the runner's own secrets from it."""
    for name in ("SLIPWAY_REGISTRATION_TOKEN", "SLIPWAY_RUNNER_CREDENTIAL"):
        os.environ.pop(name, None)
    return dict(os.environ)


def _close_memory() -> None:
    """Hide the runner's memory and first environment from jobs, which run under the same account.

    Core dumps are forbidden for jobs too: such a file would hold all their secrets.
    """
    with contextlib.suppress(OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _log_to_stderr() -> None:
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", stream=sys.stderr
    )
    clouds = [name for cloud in CLOUDS.values() for name in cloud.loggers]
    for name in ("httpx", "httpcore", "urllib3", *clouds):
        logging.getLogger(name).setLevel(logging.WARNING)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slipway-runner", description="Runs Slipway's jobs with Terraform.")
    parser.add_argument("--version", action="version", version=f"slipway-runner {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    start_command = commands.add_parser("start", help="take jobs from a console until stopped")
    start_command.set_defaults(command=start)
    check_command = commands.add_parser(
        "check", help="try everything that a runner needs, and report problems"
    )
    check_command.set_defaults(command=lambda settings: check(settings, facts_of=facts_beside_runner))
    rotate_command = commands.add_parser(
        "rotate", help="replace the runner's credential, without stopping it"
    )
    rotate_command.set_defaults(command=rotate)
    for command in (start_command, check_command, rotate_command):
        _add_options(command)
    return parser


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--console", metavar="URL", help="the console's address (SLIPWAY_CONSOLE)")
    parser.add_argument(
        "--credential-file", type=Path, metavar="F", help="file that stores the runner's credential"
    )
    parser.add_argument(
        "--data-dir", type=Path, metavar="D", help="directory for working directories and the provider cache"
    )
    parser.add_argument("--name", help="name of the runner (default: the host name)")
    parser.add_argument(
        "--pool",
        action="append",
        default=[],
        metavar="NAME",
        help="serve only this one of the runner's pools; can be repeated (SLIPWAY_RUNNER_POOLS)",
    )
    parser.add_argument(
        "--slots",
        type=int,
        default=1,
        metavar="N",
        help="number of jobs to run at the same time (default: 1)",
    )
    parser.add_argument("--once", action="store_true", help="take one job, then exit")
    parser.add_argument("--ca-file", type=Path, metavar="F", help="certificate authorities of the console")
    parser.add_argument(
        "--terraform-config",
        type=Path,
        metavar="F",
        help="Terraform's own CLI configuration, such as mirrors",
    )
    parser.add_argument(
        "--pass-env", metavar="NAMES", help="variables that jobs may also see, such as COMPANY_*,BUILD_ID"
    )
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="a limit of the operating system for jobs, such as nproc=2048; can be repeated "
        "(SLIPWAY_RUNNER_LIMITS)",
    )


if __name__ == "__main__":
    raise SystemExit(main())
