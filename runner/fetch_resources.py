"""FETCH_RESOURCES: lists an account, region by region; each part is kept even if others fail."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from runner.attempt import Attempt
from runner.clouds.contract import GLOBAL, KINDS, Inventory, Resource
from runner.identity import IdentityInUse, require_identity
from runner.outcome import StepFailed
from runner.protocol import FoundResources, LogLevel
from runner.stopping import Stopped

#: Regions that are listed at the same time: enough to hide latency, too few to be throttled for it.
_AT_ONCE = 8
#: Resources of one upload: about 100 KB, well below what the console takes.
PART_SIZE = 500
#: The most failures in a report; the log has them all.
_MAX_FAILURES = 50


def fetch_resources(attempt: Attempt) -> None:
    identity = require_identity(attempt)
    with attempt.phase("credentials", "Obtaining credentials"):
        identity.open()
    with attempt.phase("fetch", "Listing resources"):
        survey = attempt.stop.unless_stopped(lambda: _survey_account(attempt, identity))
    attempt.result.update(survey.result())
    if survey.failures and not survey.lists_read:
        raise StepFailed("resources_unreadable", f"Nothing could be read: {survey.failures[0].error}")


def _survey_account(attempt: Attempt, identity: IdentityInUse) -> _Survey:
    survey = _Survey(attempt, identity.inventory())
    survey.run()
    return survey


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    region: str
    kind: str
    error: str


class _Survey:
    """One pass over the account."""

    def __init__(self, attempt: Attempt, inventory: Inventory) -> None:
        self._attempt = attempt
        self._inventory = inventory
        kinds = attempt.claim.snapshot.get("kinds") or KINDS
        self._everywhere = [kind for kind in inventory.everywhere if kind in kinds]
        self._regional = [kind for kind in inventory.regional if kind in kinds]
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.lists_read = 0
        self.failures: list[_Failure] = []

    def run(self) -> None:
        regions = self._regions() if self._regional else []
        lists = [partial(self._list_region, GLOBAL, self._everywhere)]
        lists += [partial(self._list_region, region, self._regional) for region in regions]
        self._attempt.stop.all_unless_stopped(lists, at_once=_AT_ONCE)

    def result(self) -> dict[str, Any]:
        failures = [dataclasses.asdict(failure) for failure in self.failures[:_MAX_FAILURES]]
        return {"found": dict(self._counts), "failed": failures, "failed_count": len(self.failures)}

    def _regions(self) -> list[str]:
        try:
            return self._inventory.regions()
        except Exception as error:
            self._warn(f"The regions cannot be listed: {self._inventory.explain(error)}")
            with self._lock:
                self.failures.append(_Failure(GLOBAL, "region", self._inventory.explain(error)))
            return []

    def _list_region(self, region: str, kinds: Sequence[str]) -> None:
        for index, kind in enumerate(kinds):
            resources, error = self._collect(kind, region)
            if error and self._inventory.is_off(error, region):
                explanation = f"The region {region} is off for this account. Turn it on, or leave it out."
                self._warn(explanation)
                for skipped in kinds[index:]:
                    self._send(skipped, region, [], explanation)
                return
            explanation = self._inventory.explain(error) if error else ""
            if explanation:
                self._warn(f"{region}, {kind.replace('_', ' ')}: {explanation}")
            self._send(kind, region, resources, explanation)

    def _collect(self, kind: str, region: str) -> tuple[list[Resource], Exception | None]:
        """Read all pages, or those before an error."""
        resources: list[Resource] = []
        try:
            for page in self._inventory.pages(kind, region):
                self._attempt.stop.check()
                resources += page
        except Stopped:
            raise
        except Exception as error:
            return resources, error
        return resources, None

    def _send(self, kind: str, region: str, resources: list[Resource], error: str) -> None:
        by_region: dict[str, list[Resource]] = {}
        for resource in resources:
            by_region.setdefault(str(resource.pop("region", None) or region), []).append(resource)
        for place, part in (by_region or {region: []}).items():
            self._send_list(kind, place, part, error)
        with self._lock:
            self._counts[kind] += len(resources)
            self.lists_read += not error
            if error:
                self.failures.append(_Failure(region, kind, error))

    def _send_list(self, kind: str, region: str, resources: list[Resource], error: str) -> None:
        attempt = self._attempt
        starts = range(0, max(1, len(resources)), PART_SIZE)
        for part, start in enumerate(starts):
            is_last = start == starts[-1]
            attempt.client.send_resources(
                attempt.claim.job_id,
                FoundResources(
                    claim_id=attempt.claim.claim_id,
                    region=region,
                    kind=kind,
                    resources=attempt.redactor.mask_all(resources[start : start + PART_SIZE]),
                    part=part,
                    is_last=is_last,
                    error=(error or None) if is_last else None,
                ),
                give_up=attempt.stop.requested,
            )

    def _warn(self, message: str) -> None:
        self._attempt.log.write(message, LogLevel.WARN)
