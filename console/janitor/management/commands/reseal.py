"""`manage.py reseal`: encrypt everything again with the first key, and report whether older keys can go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.janitor.resealing import reseal_everything, still_sealed_with_older_keys


class Command(BaseCommand):
    help = "Encrypt everything again with the first of SLIPWAY_ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        for kind, count in reseal_everything().items():
            self.stdout.write(f"{kind}: {count} encrypted again")
        remaining = still_sealed_with_older_keys()
        if remaining:
            places = ", ".join(f"{place} ({count})" for place, count in remaining.items())
            raise CommandError(f"Keep the older keys: {places} still need them. Run this command again.")
        self.stdout.write("Everything is encrypted with the first key: the others can be removed.")
