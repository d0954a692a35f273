"""`manage.py rotate_identity_keys`: rotate the signing key by hand; the janitor does it automatically."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.identities.keys import PUBLISHED_BEFORE_USE, begin_rotation, drop_retired, finish_rotation


class Command(BaseCommand):
    help = "Publish the next signing key of the issuer."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--now", action="store_true", help="sign with it before clouds have read it")
        parser.add_argument(
            "--revoke",
            action="store_true",
            help="also delete all older keys, as after a theft; implies --now",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not (options["now"] or options["revoke"]):
            key = begin_rotation()
            self.stdout.write(
                f"{key.kid} is published. The console signs with it in {PUBLISHED_BEFORE_USE.days} days."
            )
            return
        key = finish_rotation()
        self.stdout.write(f"The console signs with {key.kid} from now on.")
        if options["revoke"]:
            self.stdout.write(
                f"{drop_retired(at_once=True)} older keys are deleted; clouds refuse their tokens."
            )
