"""`manage.py rotate_identity_keys`: what the janitor does by itself, begun or hurried by a person."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.identities.keys import PUBLISHED_BEFORE_USE, begin_rotation, drop_retired, finish_rotation


class Command(BaseCommand):
    help = "Publish the issuer's next signing key; with --now sign with it at once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--now", action="store_true", help="do not wait until clouds have seen it")
        parser.add_argument(
            "--revoke", action="store_true", help="--now, and forget all older keys: one of them was stolen"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if not (options["now"] or options["revoke"]):
            key = begin_rotation()
            self.stdout.write(
                f"{key.kid} is published. It signs {PUBLISHED_BEFORE_USE.days} days later by itself."
            )
            return
        key = finish_rotation()
        self.stdout.write(f"{key.kid} signs from now on.")
        if options["revoke"]:
            self.stdout.write(
                f"{drop_retired(at_once=True)} older keys are gone, and their tokens with them."
            )
