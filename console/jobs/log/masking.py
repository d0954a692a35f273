"""A second look for secrets, as log lines come in: anyone may write a runner, and a runner may miss one."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from console.jobs.models import Job
from console.jobs.queue import Held
from console.json_walk import texts, with_leaves
from runner.protocol import MASK, Claim
from specs.variables import Revealed, reveal

#: Shorter ones would ruin the log and hide nothing.
MIN_SECRET_CHARS = 4
#: Claims whose secrets this process remembers. A claim ends, is lost, or was answered by another process.
MOST_REMEMBERED = 1_000

Secrets = re.Pattern[str] | None

_remembered: dict[UUID, Secrets] = {}


def remember_secrets(claim: Claim) -> None:
    """While the claim is answered its secrets are open anyway, so the log need not open them again."""
    values = [*_named(claim.variables, claim.sensitive_variables)]
    values += _named(claim.environment, claim.sensitive_variables)
    _remember(UUID(claim.claim_id), values)


def forget_secrets(claim_id: UUID) -> None:
    _remembered.pop(claim_id, None)


def secrets_of(held: Held) -> Secrets:
    """What must not stand in the log of this claim; None when there is nothing."""
    if held.claim_id not in _remembered:
        found = (
            Job.objects.filter(pk=held.job_id, claim__claim_id=held.claim_id)
            .values_list("config_snapshot", "organization_id")
            .first()
        )
        if found is None:
            return None
        _remember(held.claim_id, _sensitive(reveal(found[0], organization_id=found[1])))
    return _remembered.get(held.claim_id)


def masked(value: Any, secrets: re.Pattern[str]) -> Any:
    """The same with every secret covered, in texts at any depth. Keys are the protocol's own words."""
    return with_leaves(value, lambda leaf: secrets.sub(MASK, leaf) if isinstance(leaf, str) else leaf)


def _remember(claim_id: UUID, values: Iterable[Any]) -> None:
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    lines = {line for value in values for text in texts(value) for line in _lines(text)}
    longest_first = sorted(lines, key=lambda text: (-len(text), text))
    _remembered[claim_id] = re.compile("|".join(map(re.escape, longest_first))) if lines else None


def _sensitive(revealed: Revealed) -> list[Any]:
    return [
        *_named(revealed.variables, revealed.sensitive),
        *_named(revealed.environment, revealed.sensitive),
    ]


def _named(values: dict[str, Any], names: Iterable[str]) -> Iterator[Any]:
    return (values[name] for name in names if name in values)


def _lines(text: str) -> Iterator[str]:
    """A log has lines, so each line of a secret is a secret."""
    return (line.strip() for line in [text, *text.splitlines()] if len(line.strip()) >= MIN_SECRET_CHARS)
