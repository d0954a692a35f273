"""What happens to runners: registration, credentials, hello and goodbye."""

import re
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from console.accounts.models import Organization, User
from console.accounts.tokens import digest, new_token
from console.audit.actions import AuditAction
from console.audit.services import record
from console.errors import (
    BadInput,
    Conflict,
    InvalidMessage,
    RegistrationRefused,
    RunnerUnknown,
    SlipwayError,
)
from console.live import topics
from console.live.publish import publish_on_commit
from console.prepared_statements import fetch_one
from console.runners import presence
from console.runners.models import (
    DEFAULT_POOL,
    Pool,
    RegistrationToken,
    Runner,
    RunnerCredential,
    RunnerStatus,
)
from runner.protocol import RotationAnswer, RunnerFacts

POOL_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,59}$")
REGISTRATION_TOKEN_LIFETIME = timedelta(hours=1)
#: How long a credential that was replaced still works: longer than any request takes.
CREDENTIAL_OVERLAP = timedelta(minutes=10)


def default_pool(organization: Organization) -> Pool:
    return Pool.objects.get_or_create(organization=organization, name=DEFAULT_POOL)[0]


def pool_named(*, organization: Organization, name: str, made_by: User) -> Pool:
    """The pool of that name, made where there is none: a runner is how a pool begins."""
    if not POOL_NAME.match(name):
        raise BadInput("A pool's name has up to 60 small letters, digits and -.", field="new_pool")
    pool, made = Pool.objects.get_or_create(organization=organization, name=name)
    if made:
        record(
            organization=organization, actor=made_by, action=AuditAction.POOL_CREATED, target=pool, name=name
        )
    return pool


def create_registration_token(*, organization: Organization, pool: Pool, created_by: User | None) -> str:
    """Make a token that one new runner can register with. Its text is returned once and never stored."""
    return offer_registration(organization=organization, pool=pool, created_by=created_by)[1]


@transaction.atomic
def offer_registration(
    *, organization: Organization, pool: Pool, created_by: User | None
) -> tuple[RegistrationToken, str]:
    """The same with the token's row, for the page that waits for whoever comes with it."""
    text = new_token("slt")
    token = RegistrationToken.objects.create(
        organization=organization,
        pool=pool,
        token_sha256=digest(text),
        created_by=created_by,
        expires_at=timezone.now() + REGISTRATION_TOKEN_LIFETIME,
    )
    record(
        organization=organization,
        actor=created_by,
        action=AuditAction.REGISTRATION_TOKEN_CREATED,
        target=token,
        pool=pool.name,
    )
    return token, text


def register_runner(*, token: str, name: str, facts: RunnerFacts) -> tuple[Runner, str]:
    """Exchange a registration token for a runner with a credential of its own."""
    try:
        return _register(token=token, name=name, facts=facts)
    except SlipwayError as refusal:
        _note_refusal(token, refusal)
        raise


def _note_refusal(token: str, refusal: SlipwayError) -> None:
    """Whoever waits for this runner on a page learns why it does not come."""
    offered = RegistrationToken.objects.filter(token_sha256=digest(token), used_at=None)
    if offered.update(contacted_at=Now(), refusal=str(refusal)[:300]):
        publish_on_commit(topics.organization(offered.get().organization_id, "runners"))


@transaction.atomic
def _register(*, token: str, name: str, facts: RunnerFacts) -> tuple[Runner, str]:
    registration = _spend(token)
    runner, created = Runner.objects.get_or_create(
        organization=registration.organization, name=name, defaults={"status": RunnerStatus.OFFLINE}
    )
    if (
        not created
        and runner.credentials.filter(revoked_at=None).exists()
        and runner.status == RunnerStatus.ONLINE
    ):
        raise Conflict(f"A runner named {name} is online. Choose another --name, or stop that one first.")
    # The name's new holder is the runner from now on; whoever had it before is out.
    runner.credentials.filter(revoked_at=None).update(revoked_at=timezone.now())
    runner.pools.add(registration.pool)
    Runner.objects.filter(pk=runner.pk).update(draining_since=None)
    _store_facts(runner, facts)
    credential = new_token("slr")
    RunnerCredential.objects.create(runner=runner, credential_sha256=digest(credential))
    RegistrationToken.objects.filter(pk=registration.pk).update(runner=runner, contacted_at=Now(), refusal="")
    record(
        organization=runner.organization,
        actor=None,
        action=AuditAction.RUNNER_REGISTERED,
        target=runner,
        name=name,
    )
    presence.announce(runner)
    return runner, credential


@transaction.atomic
def greet_runner(*, runner_id: UUID, facts: RunnerFacts, credential: str) -> Runner:
    """A runner has started and says what it is, with the credential that it will go on using."""
    pools_to_serve(runner_id=runner_id, names=facts.pools)
    retire_older_credentials(credential=credential)
    runner = Runner.objects.select_related("organization").prefetch_related("pools").get(pk=runner_id)
    if facts.slots:  # else it is `check` or `rotate`, beside a runner that has said what it is
        _store_facts(runner, facts)
    presence.announce(runner)
    return runner


@transaction.atomic
def rotate_credential(*, credential: str) -> RotationAnswer:
    """Give the runner a second credential. Both work until it says hello with the new one.

    A runner that dies before it has stored the new one comes back with the old one, and asks again.
    """
    current = _credential(credential)
    newer = current.runner.credentials.filter(created_at__gt=current.created_at, revoked_at=None)
    newer.update(revoked_at=timezone.now())  # nobody has ever used them
    text = new_token("slr")
    RunnerCredential.objects.create(runner=current.runner, credential_sha256=digest(text))
    record(
        organization=current.runner.organization,
        actor=None,
        action=AuditAction.RUNNER_CREDENTIAL_ROTATED,
        target=current.runner,
    )
    return RotationAnswer(credential=text)


def retire_older_credentials(*, credential: str) -> None:
    """The runner has shown that it knows this credential: those before it end soon."""
    current = _credential(credential)
    older = current.runner.credentials.filter(
        created_at__lt=current.created_at, revoked_at=None, expires_at=None
    )
    older.update(expires_at=timezone.now() + CREDENTIAL_OVERLAP)


def pools_to_serve(*, runner_id: UUID, names: list[str]) -> list[UUID]:
    """Those of the runner's pools that it asks for; a pool it does not belong to is refused by name."""
    pools = dict(Pool.objects.filter(runners=runner_id).values_list("name", "pk"))
    if missing := sorted(set(names) - pools.keys()):
        raise InvalidMessage(
            f"This runner does not belong to pool {missing[0]}; it belongs to {', '.join(sorted(pools))}. "
            "Register it with a token for that pool, or leave the pool out."
        )
    return [pools[name] for name in names]


@transaction.atomic
def revoke_runner(*, runner: Runner, revoked_by: User) -> None:
    """Refuse everything this runner says from now on."""
    runner.credentials.filter(revoked_at=None).update(revoked_at=timezone.now())
    record(
        organization=runner.organization, actor=revoked_by, action=AuditAction.RUNNER_REVOKED, target=runner
    )
    presence.announce(runner)


@transaction.atomic
def set_runner_drain(*, runner: Runner, draining: bool, requested_by: User) -> None:
    """Give this runner no more jobs, or go on: before it is updated or moved. What it runs, finishes."""
    changed = Runner.objects.filter(pk=runner.pk, draining_since__isnull=draining)
    if not changed.update(draining_since=Now() if draining else None):
        return  # It was so before, and since when must not be lost.
    action = AuditAction.RUNNER_DRAIN_STARTED if draining else AuditAction.RUNNER_DRAIN_ENDED
    record(organization=runner.organization, actor=requested_by, action=action, target=runner)
    presence.announce(runner)
    publish_on_commit(*(topics.pool(pool_id) for pool_id in runner.pools.values_list("pk", flat=True)))


@dataclass(frozen=True, slots=True)
class KnownRunner:
    """Who sent a request, as far as the wire needs to know."""

    id: UUID
    name: str
    organization_id: UUID
    pool_ids: list[UUID]
    #: The digest of the credential, when the runner was remembered and nobody has looked at it again.
    credential: str | None = None


#: One statement: the credential, its runner and the pools it serves.
RECOGNIZE = """
SELECT runner.id, runner.name, runner.organization_id,
       ARRAY(SELECT pool_id FROM runners_runner_pools WHERE runner_id = runner.id),
       runner.status, now() - runner.last_contact_at
FROM runners_runnercredential credential
JOIN runners_runner runner ON runner.id = credential.runner_id
WHERE credential.credential_sha256 = %(digest)s AND credential.revoked_at IS NULL
  AND (credential.expires_at IS NULL OR credential.expires_at > now())
"""


def recognize(credential: str) -> KnownRunner:
    """The runner that a credential belongs to. That it says something is a sign of life."""
    known, seen = _look_up(credential)
    if not seen.is_noted:
        presence.note_contact(runner_id=known.id, organization_id=known.organization_id)
    return known


def say_goodbye(*, credential: str, start_id: str) -> None:
    """The one request that is no sign of life: it comes from a process that ends."""
    known, _ = _look_up(credential)
    presence.note_goodbye(runner_id=known.id, start_id=start_id)


def _look_up(credential: str) -> tuple[KnownRunner, presence.Seen]:
    row = fetch_one(RECOGNIZE, {"digest": digest(credential)})
    if row is None:
        raise RunnerUnknown
    known = KnownRunner(id=row[0], name=row[1], organization_id=row[2], pool_ids=row[3])
    return known, presence.Seen(status=row[4], silent_for=row[5])


def _credential(text: str) -> RunnerCredential:
    known = RunnerCredential.objects.select_related("runner__organization").filter(
        credential_sha256=digest(text), revoked_at=None
    )
    found = known.first()
    if found is None:
        raise RunnerUnknown
    return found


def _spend(token: str) -> RegistrationToken:
    now = timezone.now()
    matching = RegistrationToken.objects.filter(token_sha256=digest(token), used_at=None, expires_at__gt=now)
    if not matching.update(used_at=now):
        raise RegistrationRefused
    return RegistrationToken.objects.select_related("organization", "pool").get(token_sha256=digest(token))


def _store_facts(runner: Runner, facts: RunnerFacts) -> None:
    runner.version, runner.terraform_version = facts.version[:40], facts.terraform_version[:60]
    runner.platform, runner.slots, runner.types = (
        facts.platform[:100],
        max(1, min(facts.slots, 1_000)),
        facts.types,
    )
    changed = presence.arrive(runner, facts)
    runner.save(update_fields=["version", "terraform_version", "platform", "slots", "types", *changed])
