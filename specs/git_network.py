"""Which addresses the console's Git client may reach, checked by name and again by the connection itself.

A name is looked up twice, by this check and by the connection, and the answers may differ; a server may
also point elsewhere by a redirect. So every address is checked when it is asked for, and every connection
by whom it has reached.
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


#: Some hosts speak Git only with what calls itself git.
HEADERS = {"User-Agent": "git/slipway"}


class AddressRefused(ValueError):
    """The address is not one that the console goes to; says why."""


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
        raise AddressRefused("it names no host")
    if parts.scheme == "http" and not is_allowed(host):
        raise AddressRefused("plain http is allowed only for hosts in SLIPWAY_GIT_ALLOWED_HOSTS; use https")
    if not is_allowed(host):
        _require_public(host)


def is_allowed(host: str) -> bool:
    """Whether an operator has said that this host may be reached, wherever it is."""
    return host in settings.SLIPWAY_GIT_ALLOWED_HOSTS


def pool_manager(url: str) -> urllib3.PoolManager:
    """Connections for one repository, direct or through the proxy that the environment names."""
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


class _Tidy(urllib3.PoolManager):
    """Checks each address, and closes every answer in the end: what is refused half-way is read by nobody."""

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


class _CheckedManager(_Tidy):
    def __init__(self) -> None:
        super().__init__(headers=HEADERS, retries=urllib3.Retry(connect=1, read=0, redirect=3))
        self.pool_classes_by_scheme = {"http": _CheckedPool, "https": _CheckedTlsPool}


class _ProxiedManager(_Tidy, urllib3.ProxyManager):
    """Whom the proxy reaches is the proxy's to decide."""
