"""Serve the console over HTTP: `python -m console.local.serve --host 127.0.0.1 --port 8000`."""

from __future__ import annotations

import argparse

import uvicorn

APPLICATION = "console.asgi:application"

#: Longer than the idle time after which a runner or a proxy closes its own end.
KEEP_ALIVE_SECONDS = 75
#: Time for pending answers. A long-poll claim request is cut off: its runner retries.
GRACE_SECONDS = 2


def serve(*, host: str, port: int) -> None:
    """Run the server until SIGINT or SIGTERM."""
    uvicorn.run(
        APPLICATION,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan="off",
        log_config=None,  # Django's settings say what is logged.
        # A line for each heartbeat would hide what matters; pages log their errors themselves.
        access_log=False,
        server_header=False,
        # The installation configures its public URL (SLIPWAY_PUBLIC_URL); forwarded headers are not trusted.
        proxy_headers=False,
        # Fifty viewers of one log would each have it compressed anew, which costs more than all the rest.
        ws_per_message_deflate=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m console.local.serve", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    serve(host=options.host, port=options.port)


if __name__ == "__main__":
    main()
