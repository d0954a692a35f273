"""Ambient credentials: a job gets those of the runner's machine, by a list of names."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path

from runner.clouds.contract import Cloud, CloudClients, CredentialRequest, TerraformCredentials
from runner.clouds.secret_files import secrets_in_files
from runner.terraform.environment import matches, secret_values


class AmbientCredentials:
    """The runner's own credentials, in use by one attempt."""

    def __init__(self, request: CredentialRequest, clouds: Mapping[str, Cloud]) -> None:
        self._request = request
        hint = str(request.settings.get("provider_hint") or "")
        self._cloud = clouds.get(hint)
        self._clouds = [self._cloud] if self._cloud else list(clouds.values())

    def open(self) -> TerraformCredentials:
        environ = dict(self._environ())
        self._request.hide(*secret_values(environ, ()))
        for cloud in self._clouds:
            self._request.hide(*secrets_in_files(environ, cloud.ambient.secret_files))
        return TerraformCredentials(
            environ={}, defaults=environ, renewable=False, principal="the runner itself"
        )

    def close(self) -> None:
        """Do nothing: nothing was made."""

    @functools.cached_property
    def clients(self) -> CloudClients | None:
        """Clients that act as the runner in the cloud that the identity names; None where it names none."""
        return self._cloud.connect_ambient(self._request) if self._cloud else None

    def _environ(self) -> Iterator[tuple[str, str]]:
        environ = self._request.environ
        for cloud in self._clouds:
            for name, file in cloud.ambient.files.items():
                path = Path(environ.get("HOME", "/nonexistent")) / file
                if path.exists():
                    yield name, str(path)
            for name, value in environ.items():
                if matches(name, cloud.ambient.names):
                    yield name, value
