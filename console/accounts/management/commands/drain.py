"""`manage.py drain on|off`: pause or resume new jobs in all organizations."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.accounts.services import set_installation_drain


class Command(BaseCommand):
    help = "Pause (on) or resume (off) new jobs in all organizations. Running jobs finish."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("switch", choices=["on", "off"])

    def handle(self, *args: Any, **options: Any) -> None:
        draining = options["switch"] == "on"
        set_installation_drain(draining=draining)
        self.stdout.write(
            "New jobs are paused; running ones finish." if draining else "New jobs are resumed."
        )
