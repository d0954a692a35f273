"""The addresses that the console's Git client may reach, checked by name and again at the connection.

A name is resolved twice, by this check and by the connection, and the answers may differ; a server may
also redirect elsewhere. So every URL is checked before its request, and every connection by its peer.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from django.conf import settings
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.response import BaseHTTPResponse

#: Networks that carry the addresses of other networks inside their own.
TRANSLATING = tuple(map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))


#: Some hosts serve Git only to user agents that begin with git.
HEADERS = {"User-Agent": "git/slipway"}


class AddressRefused(ValueError):
    """The console does not connect to this address; the text is the reason."""


def check_address(url: str) -> None:
    """Refuse other schemes, credentials, and hosts inside our own network."""
    if any(ord(char) <= 32 or char in "\\\x7f" for char in url):
        raise AddressRefused("it has spaces or control characters")
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise AddressRefused("it is not a URL") from error
    if parts.scheme not in ("https", "http"):
        raise AddressRefused(f"the scheme {parts.scheme or '(none)'!r} is not allowed; use https")
    if parts.username is not None or parts.password is not None:
        raise AddressRefused(
            "it carries credentials, which would end up in logs; remove them from the address"
        )
    if not host:
        raise AddressRefused("it has no host")
    if parts.scheme == "http" and not is_allowed(host):
        raise AddressRefused("plain http is allowed only for hosts in SLIPWAY_GIT_ALLOWED_HOSTS; use https")
    if not is_allowed(host):
        _require_public(host)


def is_allowed(host: str) -> bool:
    """Return true for a host that the operator allows, even on an internal network."""
    return host in settings.SLIPWAY_GIT_ALLOWED_HOSTS


def pool_manager(url: str) -> urllib3.PoolManager:
    """Return a connection pool for one repository, direct or through the environment's proxy."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        return _ProxiedManager(proxy, headers=HEADERS)
    return _CheckedManager()


def is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.split("%", maxsplit=1)[0])
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped is not None:
            return ip.ipv4_mapped.is_global
        if any(ip in network for network in TRANSLATING):
            return False
    return ip.is_global and not ip.is_multicast


def _require_public(host: str) -> None:
    try:
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError) as error:
        raise AddressRefused(f"the host {host} cannot be found") from error
    if not all(map(is_public, addresses)):
        raise AddressRefused(
            f"{host} is an internal address; an operator can allow it in SLIPWAY_GIT_ALLOWED_HOSTS"
        )


def _require_public_peer(host: str, connected: socket.socket) -> None:
    if is_allowed(host) or is_public(connected.getpeername()[0]):
        return
    connected.close()
    raise AddressRefused(f"{host} is an internal address")


class _Checked(HTTPConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        _require_public_peer(self.host, connected)
        return connected


class _CheckedTls(HTTPSConnection):
    def _new_conn(self) -> socket.socket:
        connected = super()._new_conn()
        _require_public_peer(self.host, connected)
        return connected


class _CheckedPool(HTTPConnectionPool):
    ConnectionCls = _Checked


class _CheckedTlsPool(HTTPSConnectionPool):
    ConnectionCls = _CheckedTls


class _ClosingManager(urllib3.PoolManager):
    """A pool that checks each URL, and closes every response at the end, also those never read."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._answers: list[BaseHTTPResponse] = []

    def urlopen(  # type: ignore[override]  # as urllib3's own PoolManager does
        self, method: str, url: str, redirect: bool = True, **options: Any
    ) -> BaseHTTPResponse:
        check_address(url)  # also for each redirect, which comes through here again
        answer = super().urlopen(method, url, redirect=redirect, **options)
        self._answers.append(answer)
        return answer

    def clear(self) -> None:
        for answer in self._answers:
            answer.close()
        self._answers.clear()
        super().clear()


class _CheckedManager(_ClosingManager):
    def __init__(self) -> None:
        super().__init__(headers=HEADERS, retries=urllib3.Retry(connect=1, read=0, redirect=3))
        self.pool_classes_by_scheme = {"http": _CheckedPool, "https": _CheckedTlsPool}


class _ProxiedManager(_ClosingManager, urllib3.ProxyManager):
    """A pool behind a proxy, which decides itself where it connects."""
