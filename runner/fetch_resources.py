"""FETCH_RESOURCES: what is in an account, region by region; a part is kept whatever happens to the rest."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

from runner.attempt import Attempt
from runner.clouds.contract import GLOBAL, KINDS, Inventory, Resource
from runner.identity import HeldIdentity, hold_identity
from runner.outcome import StepFailed
from runner.protocol import FoundResources, LogLevel
from runner.stopping import Stopped

#: Regions that are looked at side by side: enough to hide the distance, too few to be throttled for it.
_AT_ONCE = 8
#: Resources of one upload: about 100 KB, well below what the console takes.
PART_SIZE = 500
#: A report names so many failures; the log has them all.
_MAX_TOLD = 50


def fetch_resources(attempt: Attempt) -> None:
    held = hold_identity(attempt)
    with attempt.phase("credentials", "Obtaining credentials"):
        held.open()
    with attempt.phase("fetch", "Looking at what is in the account"):
        survey = attempt.stop.unless_stopped(lambda: _surveyed(attempt, held))
    attempt.result.update(survey.result())
    if survey.failures and not survey.looks_that_worked:
        raise StepFailed("resources_unreadable", f"Nothing could be read: {survey.failures[0].error}")


def _surveyed(attempt: Attempt, held: HeldIdentity) -> _Survey:
    survey = _Survey(attempt, held.inventory())
    survey.run()
    return survey


@dataclasses.dataclass(frozen=True, slots=True)
class _Failure:
    region: str
    kind: str
    error: str


class _Survey:
    """One round through the account."""

    def __init__(self, attempt: Attempt, inventory: Inventory) -> None:
        self._attempt = attempt
        self._inventory = inventory
        wanted = attempt.claim.snapshot.get("kinds") or KINDS
        self._everywhere = [kind for kind in inventory.everywhere if kind in wanted]
        self._regional = [kind for kind in inventory.regional if kind in wanted]
        self._lock = threading.Lock()
        self._found: Counter[str] = Counter()
        self.looks_that_worked = 0
        self.failures: list[_Failure] = []

    def run(self) -> None:
        regions = self._regions() if self._regional else []
        looks = [partial(self._look, GLOBAL, self._everywhere)]
        looks += [partial(self._look, region, self._regional) for region in regions]
        self._attempt.stop.all_unless_stopped(looks, at_once=_AT_ONCE)

    def result(self) -> dict[str, Any]:
        told = [dataclasses.asdict(failure) for failure in self.failures[:_MAX_TOLD]]
        return {"found": dict(self._found), "failed": told, "failed_count": len(self.failures)}

    def _regions(self) -> list[str]:
        try:
            return self._inventory.regions()
        except Exception as error:
            self._tell(f"The regions cannot be listed: {self._inventory.explain(error)}")
            with self._lock:
                self.failures.append(_Failure(GLOBAL, "region", self._inventory.explain(error)))
            return []

    def _look(self, region: str, kinds: Sequence[str]) -> None:
        for index, kind in enumerate(kinds):
            found, error = self._collect(kind, region)
            if error and self._inventory.is_off(error, region):
                said = f"The region {region} is off for this account. Turn it on, or leave it out."
                self._tell(said)
                for one in kinds[index:]:
                    self._send(one, region, [], said)
                return
            said = self._inventory.explain(error) if error else ""
            if said:
                self._tell(f"{region}, {kind.replace('_', ' ')}: {said}")
            self._send(kind, region, found, said)

    def _collect(self, kind: str, region: str) -> tuple[list[Resource], Exception | None]:
        """All of it, or as much as there was before something went wrong."""
        found: list[Resource] = []
        try:
            for page in self._inventory.pages(kind, region):
                self._attempt.stop.check()
                found += page
        except Stopped:
            raise
        except Exception as error:
            return found, error
        return found, None

    def _send(self, kind: str, region: str, found: list[Resource], error: str) -> None:
        by_region: dict[str, list[Resource]] = {}
        for resource in found:
            by_region.setdefault(str(resource.pop("region", None) or region), []).append(resource)
        for place, resources in (by_region or {region: []}).items():
            self._send_list(kind, place, resources, error)
        with self._lock:
            self._found[kind] += len(found)
            self.looks_that_worked += not error
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

    def _tell(self, message: str) -> None:
        self._attempt.log.write(message, LogLevel.WARN)
