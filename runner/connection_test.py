"""CONNECTION_TEST: tries what an identity is for, and reports for each thing what works and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

from runner.attempt import Attempt
from runner.clouds.contract import (
    FAIL,
    GLOBAL,
    PASS,
    UNKNOWN,
    Check,
    Inventory,
    ShortSession,
    detail_and_remedy,
)
from runner.identity import CLOUD_UNKNOWN, IdentityInUse, require_identity
from runner.outcome import StepFailed
from runner.protocol import LogLevel
from runner.stopping import Stopped


def test_connection(attempt: Attempt) -> None:
    identity = require_identity(attempt)
    with attempt.phase("test", "Testing the connection"):
        test = _Test(attempt, identity)
        attempt.stop.unless_stopped(test.run)
    attempt.result.update(
        checks=[dataclasses.asdict(check) for check in test.checks],
        principal=test.principal,
        session_seconds=test.session_seconds,
    )
    if failures := [check for check in test.checks if check.outcome == FAIL]:
        raise StepFailed(
            "connection_test_failed",
            f"{len(failures)} of {len(test.checks)} checks failed. {failures[0].title}: {failures[0].detail}",
            fatal=True,
        )


class _Test:
    """Collects checks; one that cannot be made because of an earlier one is unknown."""

    def __init__(self, attempt: Attempt, identity: IdentityInUse) -> None:
        self._attempt = attempt
        self._identity = identity
        self._has_credentials = False
        self.checks: list[Check] = []
        self.principal: dict[str, str] = {}
        self.session_seconds = 0

    def run(self) -> None:
        self._has_credentials = self._check_credentials()
        if self._has_credentials:
            self._check_principal()
            self._check_cloud()
            self._check_reading()
        for backend in self._attempt.claim.snapshot.get("backends") or ():
            self._check_backend(str(backend.get("kind")), backend.get("settings") or {})

    def _add(self, check: Check) -> None:
        self._attempt.stop.check()
        self.checks.append(check)
        level = LogLevel.INFO if check.outcome == PASS else LogLevel.WARN
        detail = f" ({check.detail})" if check.detail else ""
        self._attempt.log.write(f"{check.title}: {check.outcome}{detail}", level)

    def _check_credentials(self) -> bool:
        title = "Temporary credentials can be obtained"
        try:
            credentials = self._identity.open()
        except StepFailed as error:
            return self._check_short_session(error, title)
        self._add(Check("credentials", title, PASS, credentials.principal))
        if credentials.expires_at:
            self._add_session_length(credentials.expires_at)
        return True

    def _check_short_session(self, error: StepFailed, title: str) -> bool:
        """Go on with the test if the cloud only refuses the length of the session."""
        detail, remedy = detail_and_remedy(str(error))
        if error.code == "credentials_refused" and (session := self._shorten_session()):
            self._add(Check("credentials", title, PASS, session.principal))
            self._add(Check("session", "A session is long enough", FAIL, detail, session.remedy))
            self.session_seconds = session.seconds
            return True
        self._add(Check("credentials", title, FAIL, detail, remedy))
        return False

    def _shorten_session(self) -> ShortSession | None:
        cloud, clients = self._identity.cloud, self._identity.credentials.clients
        return cloud.shorten(clients) if cloud and clients else None

    def _add_session_length(self, expires_at: datetime) -> None:
        self.session_seconds = round((expires_at - datetime.now(UTC)).total_seconds())
        detail = f"{self.session_seconds} s, and renewed while a job runs"
        self._add(Check("session", "A session is long enough", PASS, detail))

    def _check_principal(self) -> None:
        add = partial(Check, "principal", "The account is the right one")
        clients = self._identity.credentials.clients
        if clients is None:
            self._add(add(UNKNOWN, *detail_and_remedy(CLOUD_UNKNOWN)))
            return
        try:
            self.principal = clients.principal()
        except Stopped:
            raise
        except Exception as error:
            self._add(add(FAIL, *detail_and_remedy(clients.explain_denial(error))))
            return
        detail = ", ".join(f"{name} {value}" for name, value in self.principal.items() if value)
        account = clients.expected_account
        if account and self.principal.get("account") != account:
            remedy = "Check the role's ARN, and where the runner's endpoints lead."
            self._add(add(FAIL, f"{detail}, expected account {account}", remedy))
        else:
            self._add(add(PASS, detail))

    def _check_cloud(self) -> None:
        """Make the checks that only this cloud has."""
        cloud, clients = self._identity.cloud, self._identity.credentials.clients
        if cloud and clients:
            for check in cloud.checks(clients):
                self._add(check)

    def _check_reading(self) -> None:
        try:
            inventory = self._identity.inventory()
        except StepFailed as error:
            detail = detail_and_remedy(str(error))
            self._add(Check("read", "The account can be read", UNKNOWN, *detail))
            return
        clients = self._identity.credentials.clients
        region = [*self._identity.regions, clients.region if clients else GLOBAL][0]
        for kind, read_page in _first_pages(inventory, region=region):
            add = partial(Check, f"read.{kind}", f"May read {kind.replace('_', ' ')}")
            try:
                read_page()
            except Stopped:
                raise
            except Exception as error:
                self._add(add(FAIL, *detail_and_remedy(inventory.explain(error))))
            else:
                self._add(add(PASS))

    def _check_backend(self, kind: str, settings: dict[str, Any]) -> None:
        place = str(settings.get("bucket") or settings.get("container_name") or kind)
        add = partial(Check, f"state.{kind}", f"The state in {place} can be reached")
        if not self._has_credentials:
            self._add(add(UNKNOWN, "Not tried: credentials could not be obtained."))
            return
        cloud, clients = self._identity.cloud, self._identity.credentials.clients
        if cloud is None or clients is None or kind not in cloud.probes:
            self._add(add(UNKNOWN, f"Not tried: this identity is not for {kind}."))
            return
        try:
            cloud.probes[kind](clients, settings)
        except Stopped:
            raise
        except Exception as error:
            detail, _ = detail_and_remedy(clients.explain_denial(error))
            self._add(add(FAIL, detail, f"Allow this identity to list, read and write {place}."))
        else:
            self._add(add(PASS))


def _first_pages(inventory: Inventory, *, region: str) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield each kind, with a call that reads its first page."""
    places = [(kind, GLOBAL) for kind in inventory.everywhere]
    places += [(kind, region) for kind in inventory.regional]
    for kind, place in places:
        yield kind, partial(_read_first_page, inventory, kind, place)


def _read_first_page(inventory: Inventory, kind: str, region: str) -> None:
    next(inventory.pages(kind, region), None)
