"""`manage.py reseal`: seals everything with the first key again, and says whether older keys can go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from console.janitor.resealing import reseal_everything, still_sealed_with_older_keys


class Command(BaseCommand):
    help = "Seal everything again with the first of SLIPWAY_ENCRYPTION_KEYS."

    def handle(self, *args: Any, **options: Any) -> None:
        for kind, count in reseal_everything().items():
            self.stdout.write(f"{kind}: {count} sealed again")
        remaining = still_sealed_with_older_keys()
        if remaining:
            places = ", ".join(f"{place} ({count})" for place, count in remaining.items())
            raise CommandError(f"Keep the older keys: they still open {places}. Run this again.")
        self.stdout.write("Everything is sealed with the first key: the others can be removed.")
