"""`manage.py drain on|off`: stop or resume taking and handing out jobs, in every organization."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from console.accounts.services import set_installation_drain


class Command(BaseCommand):
    help = "Stop (on) or resume (off) taking and handing out jobs. What runs, finishes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("switch", choices=["on", "off"])

    def handle(self, *args: Any, **options: Any) -> None:
        draining = options["switch"] == "on"
        set_installation_drain(draining=draining)
        self.stdout.write("Draining: no new jobs; running ones finish." if draining else "Taking jobs again.")
