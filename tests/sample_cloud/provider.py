"""The Terraform provider of the suite's cloud: one resource, `suite_server`.

Run as a program by Terraform, through the executable that tests/sample_cloud/mirror.py writes.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.error
import urllib.request
from typing import Any

import tf.runner
from tf.iface import (
    CreateContext,
    DataSource,
    DeleteContext,
    ImportContext,
    Provider,
    ReadContext,
    Resource,
    UpdateContext,
)
from tf.schema import Attribute, Schema
from tf.types import Number, String
from tf.utils import Diagnostics

#: With this in its environment the provider stops at once when Terraform is interrupted, as careless ones do.
CARELESS_VARIABLE = "SUITE_CARELESS_PROVIDER"

State = dict[str, Any]


class Api:
    """The cloud, as the provider sees it."""

    def __init__(self, address: str) -> None:
        self._address = address

    def ask(self, method: str, path: str = "", body: State | None = None) -> State | None:
        """The answer, or None where there is nothing."""
        content = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"{self._address}/servers{path}", data=content, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                answer: State = json.loads(response.read())
                return answer
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise


class Server(Resource):
    """A server with a name that cannot change, a size that can, and a password that nobody should see."""

    def __init__(self, provider: SuiteProvider) -> None:
        self._api = provider.api

    @classmethod
    def get_name(cls) -> str:
        return "server"

    @classmethod
    def get_schema(cls) -> Schema:
        return Schema(
            attributes=[
                Attribute("id", String(), computed=True),
                Attribute("name", String(), required=True, requires_replace=True),
                Attribute("size", Number(), optional=True),
                Attribute("password", String(), optional=True, sensitive=True),
            ]
        )

    def create(self, ctx: CreateContext, planned: State) -> State | None:
        attributes = {key: planned[key] for key in ("name", "size", "password")}
        try:
            return _as_state(self._api.ask("POST", body=attributes))
        except urllib.error.HTTPError as error:
            ctx.diagnostics.add_error(
                f"The cloud refused server {planned['name']}", f"It answered {error.code}. Try again later."
            )
            return None

    def read(self, ctx: ReadContext, current: State) -> State | None:
        return _as_state(self._api.ask("GET", f"/{current['id']}"))

    def update(self, ctx: UpdateContext, current: State, planned: State) -> State | None:
        attributes = {key: planned[key] for key in ("size", "password")}
        return _as_state(self._api.ask("PUT", f"/{current['id']}", attributes))

    def delete(self, ctx: DeleteContext, current: State) -> None:
        self._api.ask("DELETE", f"/{current['id']}")

    def import_(self, ctx: ImportContext, id: str) -> State | None:
        return _as_state(self._api.ask("GET", f"/{id}"))


def _as_state(server: State | None) -> State | None:
    if server is None:
        return None
    return {key: server.get(key) for key in ("id", "name", "size", "password")}


class SuiteProvider(Provider):
    def __init__(self) -> None:
        self.api = Api("")

    def get_model_prefix(self) -> str:
        return "suite_"

    def full_name(self) -> str:
        return "registry.terraform.io/slipway/suite"

    def get_provider_schema(self, diags: Diagnostics) -> Schema:
        return Schema(attributes=[Attribute("address", String(), required=True)])

    def validate_config(self, diags: Diagnostics, config: State) -> None:
        pass

    def configure_provider(self, diags: Diagnostics, config: State) -> None:
        self.api = Api(str(config["address"]))

    def get_data_sources(self) -> list[type[DataSource]]:
        return []

    def get_resources(self) -> list[type[Resource]]:
        return [Server]


class _PatientShutdown(tf.runner._ShutdownInterceptor):
    """Ends with Terraform's last word only.

    The package's own ends all calls when Terraform is interrupted: what is being made is then finished in the
    cloud and missing in the state. Providers in the field let such calls finish, and so does this one.
    """

    def intercept_service(self, continuation: Any, handler_call_details: Any) -> Any:
        if handler_call_details.method == "/tfplugin6.Provider/StopProvider":
            return continuation(handler_call_details)
        return super().intercept_service(continuation, handler_call_details)


def main() -> None:
    # An interrupt reaches the whole process group; what it means for the provider is Terraform's to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if CARELESS_VARIABLE not in os.environ:
        tf.runner._ShutdownInterceptor = _PatientShutdown
    tf.runner.run_provider(SuiteProvider())
