"""Registration, credentials, hello and goodbye of runners."""

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
    """Return the pool of that name, created where there is none: a pool begins with its first runner."""
    if not POOL_NAME.match(name):
        raise BadInput("A pool's name has up to 60 lowercase letters, digits and hyphens.", field="new_pool")
    pool, created = Pool.objects.get_or_create(organization=organization, name=name)
    if created:
        record(
            organization=organization, actor=made_by, action=AuditAction.POOL_CREATED, target=pool, name=name
        )
    return pool


def create_registration_token(*, organization: Organization, pool: Pool, created_by: User | None) -> str:
    """Create a token that one new runner can register with. Its text is returned once and never stored."""
    return offer_registration(organization=organization, pool=pool, created_by=created_by)[1]


@transaction.atomic
def offer_registration(
    *, organization: Organization, pool: Pool, created_by: User | None
) -> tuple[RegistrationToken, str]:
    """Create a token and return its row too, for the page that waits for the runner."""
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
    """Keep the reason for the page that waits for this runner."""
    tokens = RegistrationToken.objects.filter(token_sha256=digest(token), used_at=None)
    if tokens.update(contacted_at=Now(), refusal=str(refusal)[:300]):
        publish_on_commit(topics.organization(tokens.get().organization_id, "runners"))


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
    # The new process is the runner of that name from now on; credentials of the one before end.
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
    """Store what a runner that starts says of itself, with the credential that it will use from now on."""
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
    """Let older credentials end soon: the runner has shown that it has this one."""
    current = _credential(credential)
    older = current.runner.credentials.filter(
        created_at__lt=current.created_at, revoked_at=None, expires_at=None
    )
    older.update(expires_at=timezone.now() + CREDENTIAL_OVERLAP)


def pools_to_serve(*, runner_id: UUID, names: list[str]) -> list[UUID]:
    """Return the runner's pools of these names, or refuse a pool that it does not belong to."""
    pools = dict(Pool.objects.filter(runners=runner_id).values_list("name", "pk"))
    if missing := sorted(set(names) - pools.keys()):
        raise InvalidMessage(
            f"This runner does not belong to pool {missing[0]}; it belongs to {', '.join(sorted(pools))}. "
            "Register it with a token for that pool, or leave the pool out."
        )
    return [pools[name] for name in names]


@transaction.atomic
def revoke_runner(*, runner: Runner, revoked_by: User) -> None:
    """Refuse every request of this runner from now on."""
    runner.credentials.filter(revoked_at=None).update(revoked_at=timezone.now())
    record(
        organization=runner.organization, actor=revoked_by, action=AuditAction.RUNNER_REVOKED, target=runner
    )
    presence.announce(runner)


@transaction.atomic
def set_runner_drain(*, runner: Runner, draining: bool, requested_by: User) -> None:
    """Pause or resume new jobs for this runner, to update or move it. Running jobs will finish."""
    runners = Runner.objects.filter(pk=runner.pk, draining_since__isnull=draining)
    if not runners.update(draining_since=Now() if draining else None):
        return  # It was so before: keep since when.
    action = AuditAction.RUNNER_DRAIN_STARTED if draining else AuditAction.RUNNER_DRAIN_ENDED
    record(organization=runner.organization, actor=requested_by, action=action, target=runner)
    presence.announce(runner)
    publish_on_commit(*(topics.pool(pool_id) for pool_id in runner.pools.values_list("pk", flat=True)))


@dataclass(frozen=True, slots=True)
class KnownRunner:
    """The sender of a request, as far as the wire needs it."""

    id: UUID
    name: str
    organization_id: UUID
    pool_ids: list[UUID]
    #: The digest of a remembered runner's credential, which its request's own statement still has to verify.
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
    """Return the runner that a credential belongs to, and note that it is alive."""
    runner, presence_before = _look_up(credential)
    if not presence_before.is_noted:
        presence.note_contact(runner_id=runner.id, organization_id=runner.organization_id)
    return runner


def say_goodbye(*, credential: str, start_id: str) -> None:
    """Note the end of a runner's process: the one request that is no sign of life."""
    runner, _ = _look_up(credential)
    presence.note_goodbye(runner_id=runner.id, start_id=start_id)


def _look_up(credential: str) -> tuple[KnownRunner, presence.Presence]:
    row = fetch_one(RECOGNIZE, {"digest": digest(credential)})
    if row is None:
        raise RunnerUnknown
    runner = KnownRunner(id=row[0], name=row[1], organization_id=row[2], pool_ids=row[3])
    return runner, presence.Presence(status=row[4], silent_for=row[5])


def _credential(text: str) -> RunnerCredential:
    credentials = RunnerCredential.objects.select_related("runner__organization").filter(
        credential_sha256=digest(text), revoked_at=None
    )
    credential = credentials.first()
    if credential is None:
        raise RunnerUnknown
    return credential


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
    fields = presence.arrive(runner, facts)
    runner.save(update_fields=["version", "terraform_version", "platform", "slots", "types", *fields])
