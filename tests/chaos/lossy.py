"""A network between runner and console that loses things: answers on their way back, or some requests."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit


class LossyNetwork:
    """Passes each connection on to the console; it is cut where something is to be lost."""

    def __init__(self, console_url: str) -> None:
        parts = urlsplit(console_url)
        self._console = (parts.hostname or "", parts.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.losing = threading.Event()
        self.lost = 0
        #: Requests with this in them never arrive.
        self.swallowed: bytes | None = None
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        self._listening.close()

    def _serve(self) -> None:
        while True:
            try:
                caller, _ = self._listening.accept()
            except OSError:
                return  # closed
            console = socket.create_connection(self._console)
            threading.Thread(target=self._pass, args=(caller, console, False), daemon=True).start()
            threading.Thread(target=self._pass, args=(console, caller, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        try:
            while data := source.recv(65536):
                if is_answer and self.losing.is_set():
                    self.lost += 1
                    break
                if not is_answer and self.swallowed and self.swallowed in data:
                    break
                sink.sendall(data)
        except OSError:
            pass  # the other direction was cut
        for end in (source, sink):
            _cut(end)


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it is cut already
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def lossy_network(console_url: str) -> Iterator[LossyNetwork]:
    network = LossyNetwork(console_url)
    yield network
    network.close()
