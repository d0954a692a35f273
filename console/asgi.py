"""The console as an ASGI application: pages and API, the runners' endpoints, and the sockets."""

import os
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "console.settings")

from django.core.asgi import get_asgi_application

pages = get_asgi_application()

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from channels.sessions import SessionMiddlewareStack

from console.accounts.authentication import SocketSessionMiddleware
from console.live.beat import start_beating
from console.routing import websocket_urlpatterns
from console.wire import WireHandler

start_beating()
wire = WireHandler()
wire.load_middleware(is_async=True)

#: Runners send a credential of this form; attempts reach their state below this path.
RUNNER_CREDENTIAL = b"Bearer slr_"
WIRE_PATHS = ("/api/runners/", "/api/state/")


async def http(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Route runners' requests to the wire handler, everything else to pages and the API."""
    to_wire = scope["path"].startswith(WIRE_PATHS) or any(
        name == b"authorization" and value.startswith(RUNNER_CREDENTIAL) for name, value in scope["headers"]
    )
    await (wire if to_wire else pages)(scope, receive, send)


sockets = SocketSessionMiddleware(URLRouter(websocket_urlpatterns))

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": AllowedHostsOriginValidator(SessionMiddlewareStack(sockets)),
    }
)
