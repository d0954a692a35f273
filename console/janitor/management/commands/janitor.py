"""`manage.py janitor`: run a janitor until SIGTERM. Any number may run; one is the leader."""

import signal
import threading
from typing import Any

from django.core.management.base import BaseCommand

from console.janitor.leader import run


class Command(BaseCommand):
    help = "Take back lost jobs, enforce timeouts, rotate keys. Any number may run; one is the leader."

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        run(stop)
