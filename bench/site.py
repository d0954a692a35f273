"""A throw-away installation to measure: its own PostgreSQL with real commits, and sample data."""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from console.local.embedded_postgres import EmbeddedPostgres
from console.local.installation import migrate, own_connections, set_up_django, without_libpq_variables

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Site:
    """One installation: its folder, and the environment of its processes."""

    folder: Path
    postgres: EmbeddedPostgres
    environment: dict[str, str]

    @property
    def database_url(self) -> str:
        return self.environment["DATABASE_URL"]


@contextlib.contextmanager
def throw_away_site() -> Iterator[Site]:
    """Start PostgreSQL, set Django up on it, and remove everything afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="slipway-bench-"))
    folder.chmod(0o711)  # As root, the database runs under another account, which passes through here.
    try:
        # Durable: a commit that does not reach the disk would flatter everybody, and the fastest most.
        with EmbeddedPostgres(folder / "postgres", secrets.token_urlsafe(), durable=True) as postgres:
            postgres.ensure_database()
            site = Site(folder, postgres, _environment(postgres.url()))
            set_up_django(site.environment, log_file=folder / "bench.log")
            migrate(database_url=site.database_url)
            with own_connections():
                yield site
    finally:
        shutil.rmtree(folder)


def _environment(database_url: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLIPWAY_")}
    return without_libpq_variables(inherited) | {
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "console.settings",
        "PYTHONPATH": str(ROOT),
        "SLIPWAY_SECRET_KEY": secrets.token_urlsafe(48),
        "SLIPWAY_ENCRYPTION_KEYS": f"bench:{base64.b64encode(secrets.token_bytes(32)).decode()}",
        "SLIPWAY_INSECURE_COOKIES": "1",
    }
