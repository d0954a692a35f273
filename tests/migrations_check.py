"""Compares the models with the migrations, on a database of its own. `make lint` runs this as a program."""

from __future__ import annotations

import os

from tests.throwaway_postgres import throwaway_postgres


def main() -> None:
    with throwaway_postgres() as postgres:
        postgres.ensure_database()
        os.environ["DJANGO_SETTINGS_MODULE"] = "console.settings"
        from django.core.management import execute_from_command_line

        execute_from_command_line(["manage.py", "makemigrations", "--check", "--dry-run"])


if __name__ == "__main__":
    main()
