"""A second search for secrets in incoming log lines: anyone may write a runner, and a runner may miss one."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from console.jobs.models import Job
from console.jobs.queue import Held
from console.json_walk import texts, with_leaves
from runner.protocol import MASK, Claim
from specs.variables import Revealed, reveal

#: Masking shorter ones would make the log unreadable and hide nothing.
MIN_SECRET_CHARS = 4
#: Claims whose secrets this process remembers. A claim ends, is lost, or was answered by another process.
MOST_REMEMBERED = 1_000

Secrets = re.Pattern[str] | None

_remembered: dict[UUID, Secrets] = {}


def remember_secrets(claim: Claim) -> None:
    """Remember the secrets of a claim that is being answered: they are unsealed for that anyway."""
    values = [*_values_of(claim.variables, claim.sensitive_variables)]
    values += _values_of(claim.environment, claim.sensitive_variables)
    _remember(UUID(claim.claim_id), values)


def forget_secrets(claim_id: UUID) -> None:
    _remembered.pop(claim_id, None)


def secrets_of(held: Held) -> Secrets:
    """Return the pattern of this claim's secrets; None when it has none."""
    if held.claim_id not in _remembered:
        row = (
            Job.objects.filter(pk=held.job_id, claim__claim_id=held.claim_id)
            .values_list("config_snapshot", "organization_id")
            .first()
        )
        if row is None:
            return None
        _remember(held.claim_id, _sensitive(reveal(row[0], organization_id=row[1])))
    return _remembered.get(held.claim_id)


def mask_value(value: Any, secrets: re.Pattern[str]) -> Any:
    """Mask every secret in texts at any depth. Keys are the protocol's own, and stay."""
    return with_leaves(value, lambda leaf: secrets.sub(MASK, leaf) if isinstance(leaf, str) else leaf)


def _remember(claim_id: UUID, values: Iterable[Any]) -> None:
    if len(_remembered) >= MOST_REMEMBERED:
        _remembered.clear()
    lines = {line for value in values for text in texts(value) for line in _lines(text)}
    longest_first = sorted(lines, key=lambda text: (-len(text), text))
    _remembered[claim_id] = re.compile("|".join(map(re.escape, longest_first))) if lines else None


def _sensitive(revealed: Revealed) -> list[Any]:
    return [
        *_values_of(revealed.variables, revealed.sensitive),
        *_values_of(revealed.environment, revealed.sensitive),
    ]


def _values_of(values: dict[str, Any], names: Iterable[str]) -> Iterator[Any]:
    return (values[name] for name in names if name in values)


def _lines(text: str) -> Iterator[str]:
    """Return the lines of a text: the log is in lines, so each line of a secret is a secret."""
    return (line.strip() for line in [text, *text.splitlines()] if len(line.strip()) >= MIN_SECRET_CHARS)
