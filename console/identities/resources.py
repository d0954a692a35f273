"""The resources of an account: parts are kept as they come, and shown when the last of a list is in."""

import json
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models.functions import Now

from console.accounts.tokens import ANY_TOKEN
from console.errors import InvalidMessage, PartsMissing, TooLarge
from console.identities.models import CloudIdentity, ResourceList, ResourcePart
from runner.protocol import MASK, FoundResources

#: What one part, and one list, may have.
MAX_PART_RESOURCES, MAX_PARTS = 2_000, 500
MAX_ERROR_CHARS = 2_000

KIND = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)
REGION = re.compile(r"[a-z0-9-]{1,60}", re.ASCII)


@transaction.atomic
def store_part(*, identity: CloudIdentity, claim_id: UUID, part: FoundResources) -> ResourceList:
    """Keep one part. The last one replaces the list of the scan before.

    When the scan failed part-way, the list before stays, with the reason beside it.
    """
    _check(part)
    resource_list = _lock_list(identity, part)
    ResourcePart.objects.update_or_create(
        list=resource_list, claim_id=claim_id, number=part.part, defaults={"resources": part.resources}
    )
    resource_list.looked_at = Now()
    if part.is_last:
        _complete(resource_list, claim_id, part)
    resource_list.save()
    return resource_list


@transaction.atomic
def delete_lists_not_scanned_since(*, identity_id: UUID, at: Any) -> None:
    """Delete the lists that a scan did not reach. Lists of a kind that failed somewhere stay."""
    lists = ResourceList.objects.filter(identity_id=identity_id)
    failed = set(lists.filter(failed_at__gte=at).values_list("kind", flat=True))
    lists.filter(looked_at__lt=at).exclude(kind__in=failed).delete()


def _lock_list(identity: CloudIdentity, part: FoundResources) -> ResourceList:
    resource_list, _ = ResourceList.objects.get_or_create(
        identity=identity, region=part.region, kind=part.kind
    )
    return ResourceList.objects.select_for_update().get(pk=resource_list.pk)


def _complete(resource_list: ResourceList, claim_id: UUID, part: FoundResources) -> None:
    own = resource_list.parts.filter(claim_id=claim_id)
    own.filter(number__gt=part.part).delete()  # of a longer list that was sent before and is repeated
    counts = {row.number: len(row.resources) for row in own}
    missing = sorted(set(range(part.part + 1)) - counts.keys())
    if missing:
        raise PartsMissing(
            f"Part {missing[0]} of {part.kind} in {part.region} has not arrived. Send them again from 0.",
            missing=missing[:20],
        )
    error = ANY_TOKEN.sub(MASK, part.error or "")[:MAX_ERROR_CHARS]
    resource_list.error, resource_list.failed_at = error, Now() if error else None
    if error and resource_list.shown_claim not in (None, claim_id):
        own.delete()
        return
    resource_list.parts.exclude(claim_id=claim_id).delete()
    resource_list.shown_claim, resource_list.fetched_at = claim_id, Now()
    resource_list.resource_count = sum(counts.values())


def _check(part: FoundResources) -> None:
    if not KIND.fullmatch(part.kind):
        raise InvalidMessage("kind: expected a word such as subnet")
    if not REGION.fullmatch(part.region):
        raise InvalidMessage("region: expected the name of a region, or global")
    if not 0 <= part.part < MAX_PARTS:
        raise InvalidMessage(f"part: expected a number from 0 to {MAX_PARTS - 1}")
    if len(part.resources) > MAX_PART_RESOURCES:
        raise TooLarge(f"A part has at most {MAX_PART_RESOURCES} resources. Send more parts.")
    for index, resource in enumerate(part.resources):
        id = resource.get("id") if isinstance(resource, dict) else None
        if not isinstance(id, str) or not 0 < len(id) <= 500:
            raise InvalidMessage(f"resources[{index}]: expected an object with an id")


# ── reading ──────────────────────────────────────────────────────────────────────────────────────

#: Every value of a resource is searched, whatever it is called. Parts that are not shown are left out.
FIND = """
SELECT list.identity_id, list.region, list.kind, list.fetched_at, found.resource::text
FROM identities_resourcelist AS list
JOIN identities_resourcepart AS part ON part.list_id = list.id AND part.claim_id = list.shown_claim
CROSS JOIN LATERAL jsonb_array_elements(part.resources) WITH ORDINALITY AS found(resource, position)
WHERE list.identity_id = ANY(%(identities)s::uuid[])
  AND (%(kind)s::text IS NULL OR list.kind = %(kind)s)
  AND (%(region)s::text IS NULL OR list.region IN (%(region)s, 'global'))
  AND (%(pattern)s::text IS NULL OR EXISTS (
      SELECT FROM jsonb_each_text(found.resource) AS said WHERE said.value ILIKE %(pattern)s))
ORDER BY list.kind, list.region, list.id, part.number, found.position
LIMIT %(limit)s OFFSET %(offset)s
"""


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource, with its kind and region."""

    identity_id: UUID
    region: str
    kind: str
    fetched_at: Any
    resource: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.resource["id"])

    @property
    def name(self) -> str:
        return str(self.resource.get("name") or "")

    @property
    def details(self) -> str:
        """Return its other values in one line."""
        others = (value for key, value in self.resource.items() if key not in ("id", "name"))
        return " · ".join(_shorten(value) for value in others if value not in (None, "", [], {}))

    @property
    def label(self) -> str:
        return " · ".join(part for part in (self.name, self.details, self.region) if part)


def find_resources(
    *,
    identity_ids: list[UUID],
    kind: str | None = None,
    region: str | None = None,
    search: str = "",
    offset: int = 0,
    limit: int = 50,
) -> list[Resource]:
    values = {
        "identities": identity_ids,
        "kind": kind or None,
        "region": region or None,
        "pattern": _pattern(search),
        "offset": offset,
        "limit": limit,
    }
    with connection.cursor() as cursor:
        cursor.execute(FIND, values)
        rows = cursor.fetchall()
    return [
        Resource(identity_id, region, kind, fetched_at, json.loads(resource))
        for identity_id, region, kind, fetched_at, resource in rows
    ]


def _pattern(search: str) -> str | None:
    """Return a LIKE pattern for the text anywhere in a value, with wildcards escaped."""
    text = search.strip().replace("\0", "")[:200]
    if not text:
        return None
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"


def _shorten(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value[:5]))
    return str(value)[:200]
