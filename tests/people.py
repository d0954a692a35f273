"""The people, organizations, runners and jobs that tests are about. Everyone is named by their role."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, transaction

from console.accounts.models import Membership, Organization, User
from console.accounts.services import create_api_token, create_organization
from console.jobs.models import Job
from console.jobs.services import request_job
from console.live.connection import conninfo
from console.runners.models import Pool, Runner
from console.runners.services import create_registration_token, default_pool, register_runner
from runner.protocol import JobType, RunnerFacts
from specs.models import Spec
from specs.services import create_spec_from_blueprint

ALL_TYPES = [type.value for type in JobType]


@dataclass(frozen=True)
class Tenant:
    """One organization with a person of each role, a pool and a Spec."""

    organization: Organization
    pool: Pool
    admin: User
    operator: User
    second_operator: User
    viewer: User

    @cached_property
    def spec(self) -> Spec:
        return self.new_spec("network")

    def new_spec(
        self, name: str, *, pool: Pool | None = None, gates: list[dict[str, Any]] | None = None
    ) -> Spec:
        spec = create_spec_from_blueprint(
            organization=self.organization,
            name=name,
            slug=name,
            blueprint="demo",
            pool_id=(pool or self.pool).pk,
            author=self.operator,
        )
        if gates:
            spec.gates = gates
            spec.save(update_fields=["gates"])
        return spec

    def new_pool(self, name: str) -> Pool:
        return Pool.objects.create(organization=self.organization, name=name)

    def new_runner(
        self,
        name: str = "runner",
        *,
        pool: Pool | None = None,
        slots: int = 1,
        types: list[str] | None = None,
    ) -> tuple[Runner, str]:
        """A registered runner and its credential."""
        token = create_registration_token(
            organization=self.organization, pool=pool or self.pool, created_by=self.admin
        )
        return register_runner(token=token, name=name, facts=facts(slots=slots, types=types))

    def token_of(self, person: User) -> str:
        """The text of an API token of this person's in this organization."""
        return create_api_token(user=person, organization=self.organization, name="test")[1]

    def request(self, type: JobType = JobType.PLAN, *, spec: Spec | None = None) -> Job:
        return request_job(spec=spec or self.spec, type=type, requested_by=self.operator)


def facts(*, slots: int = 1, types: list[str] | None = None) -> RunnerFacts:
    return RunnerFacts(
        version="1.0",
        terraform_version="1.11.4",
        platform="linux/x86_64",
        slots=slots,
        types=types or ALL_TYPES,
    )


def make_tenant(slug: str) -> Tenant:
    admin = _person(f"{slug}-admin")
    organization = create_organization(name=slug.capitalize(), slug=slug, admin=admin)
    members = {}
    for name, role in (
        ("operator", "operator"),
        ("second-operator", "operator"),
        ("viewer", "viewer"),
    ):
        members[name] = _person(f"{slug}-{name}")
        Membership.objects.create(user=members[name], organization=organization, role=role)
    return Tenant(
        organization=organization,
        pool=default_pool(organization),
        admin=admin,
        operator=members["operator"],
        second_operator=members["second-operator"],
        viewer=members["viewer"],
    )


def fresh(job: Job) -> Job:
    """The job as the database has it now."""
    return Job.objects.get(pk=job.pk)


def new_key() -> str:
    return str(uuid.uuid4())


def some_uuid() -> UUID:
    return uuid.uuid4()


def _person(username: str) -> User:
    return User.objects.create(username=username)


@pytest.fixture(scope="session")
def ended_connections(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """End the connections that threads of the console hold: a database in use cannot be dropped."""
    yield
    with django_db_blocker.unblock(), psycopg.connect(conninfo(), autocommit=True) as own_connection:
        own_connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def transactional_db(ended_connections: None, django_db_blocker: Any) -> Iterator[None]:
    """Commit for real, then empty the database: pytest-django's fixture with a quicker end."""
    with django_db_blocker.unblock():
        yield
        empty_database()
        connection.close()


#: Tables with content from migrations, which stays.
KEPT_TABLES = {"django_migrations", "django_content_type", "auth_permission"}


def empty_database() -> None:
    """Empty all tables, faster than Django's flush. Triggers are off: the audit record refuses deletes."""
    with transaction.atomic(), connection.cursor() as cursor:
        tables = [name for name in connection.introspection.table_names(cursor) if name not in KEPT_TABLES]
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table in tables:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")


@pytest.fixture
def ours(transactional_db: None) -> Tenant:
    """Our organization."""
    return make_tenant("ours")


@pytest.fixture
def theirs(transactional_db: None) -> Tenant:
    """Another organization, whose people are strangers to ours."""
    return make_tenant("theirs")
