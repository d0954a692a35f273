"""One installation for its own commands: its environment, its database, and Django."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from console.local.data_directory import DataDirectory, Secrets
from console.local.embedded_postgres import EmbeddedPostgres
from console.local.refusal import Refused

if TYPE_CHECKING:
    from django.db.migrations.loader import MigrationLoader

#: The oldest version that our SQL is tested with.
OLDEST_POSTGRES = 15

#: Two consoles on one database must not migrate it at the same time. The number is arbitrary and ours.
MIGRATION_LOCK = 7_547_492_901


@dataclass(frozen=True)
class Installation:
    """A data directory with its secrets, and the environment of its processes."""

    data: DataDirectory
    secrets: Secrets
    base_environment: Mapping[str, str]

    @property
    def external_database_url(self) -> str | None:
        return self.base_environment.get("DATABASE_URL") or None

    def embedded_postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(
            self.data.postgres,
            self.secrets.database_password,
            log_file=self.data.log / "postgres.log",
        )

    def console_environment(self, *, database_url: str) -> dict[str, str]:
        """Return the environment of the console and the janitor. Variables that a person has set win."""
        environment = dict(self.base_environment)
        if self.external_database_url is None:
            environment = without_libpq_variables(environment)
        environment.setdefault("SLIPWAY_SECRET_KEY", self.secrets.secret_key)
        environment.setdefault("SLIPWAY_ENCRYPTION_KEYS", ",".join(self.secrets.encryption_keys))
        return environment | {
            "DATABASE_URL": database_url,
            "DJANGO_SETTINGS_MODULE": "console.settings",
            "SLIPWAY_DATA_DIR": str(self.data.root),
            "PYTHONUNBUFFERED": "1",
        }

    def runner_environment(self) -> dict[str, str]:
        """Return the runner's environment without the console's secrets: it runs other people's Terraform."""
        console_only = {
            "DATABASE_URL",
            "DJANGO_SETTINGS_MODULE",
            "SLIPWAY_SECRET_KEY",
            "SLIPWAY_ENCRYPTION_KEYS",
        }
        environment = {
            name: value for name, value in self.base_environment.items() if name not in console_only
        }
        # The console is on this machine: requests to it must not go through the environment's proxy.
        no_proxy = environment.get("NO_PROXY") or environment.get("no_proxy")
        environment["NO_PROXY"] = environment["no_proxy"] = ",".join(
            filter(None, [no_proxy, "127.0.0.1", "localhost", "::1"])
        )
        return environment | {"PYTHONUNBUFFERED": "1"}


def without_libpq_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Remove PGPORT, PGOPTIONS and the like, which are meant for another server than the embedded one."""
    return {name: value for name, value in environment.items() if not name.startswith("PG")}


def require_database(url: str) -> None:
    """Refuse a DATABASE_URL that cannot be reached or is too old."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            version = connection.info.server_version // 10_000
    except psycopg.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise Refused(
            f"The database of DATABASE_URL does not answer: {reason}. "
            "Correct DATABASE_URL, or unset it to use the embedded PostgreSQL."
        ) from None
    if version < OLDEST_POSTGRES:
        raise Refused(
            f"The database of DATABASE_URL is PostgreSQL {version}; Slipway needs {OLDEST_POSTGRES} or "
            "newer. Upgrade it, or unset DATABASE_URL to use the embedded PostgreSQL."
        )


def set_up_django(environment: Mapping[str, str], *, log_file: Path) -> None:
    """Set up Django in this process, with its log in a file: the terminal is for messages to people."""
    import django
    from django.core.exceptions import ImproperlyConfigured

    os.environ.clear()
    os.environ.update(environment)
    try:
        django.setup()
    except ImproperlyConfigured as error:
        raise Refused(str(error)) from None
    log_to(log_file)


def log_to(log_file: Path) -> None:
    handler = logging.FileHandler(log_file)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    root.handlers = [handler]


def migrate(*, database_url: str) -> None:
    """Migrate the database to this version. Refuse a newer one."""
    from django.core.management import call_command
    from django.db import connection as django_connection
    from django.db.migrations.executor import MigrationExecutor

    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        executor = MigrationExecutor(django_connection)
        refuse_newer_database(executor.loader)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", interactive=False, verbosity=0)


def refuse_newer_database(loader: MigrationLoader) -> None:
    """Refuse a database with a migration that this code does not have: a newer version applied it."""
    known_migrations = set(loader.disk_migrations)
    for migration in loader.disk_migrations.values():
        known_migrations.update((app, name) for app, name in migration.replaces)
    unknown = sorted(set(loader.applied_migrations) - known_migrations)
    if unknown:
        app, name = unknown[0]
        raise Refused(
            f"The database was migrated by a newer Slipway (it has {app}.{name}, unknown here). "
            "Nothing was changed. Start that newer Slipway, or restore a backup of this version."
        )


@contextlib.contextmanager
def own_connections() -> Iterator[None]:
    """Leave no connection of this process open: the database may restart while we only watch."""
    from django.db import connections

    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()
            if hasattr(connection, "close_pool"):
                connection.close_pool()
