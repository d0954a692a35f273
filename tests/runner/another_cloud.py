"""A cloud that the runner does not have: all of its folder, for the test that adds it.

Its API knows whose token it is shown, and lists networks.
"""

from __future__ import annotations

from typing import Any

from runner.clouds.contract import (
    AmbientSources,
    Cloud,
    CloudClients,
    CredentialRequest,
    TerraformCredentials,
)
from runner.clouds.identity_token import TOKEN, IdentityToken
from runner.clouds.rest import Reader, WholeInventory


class AcmeClients(CloudClients):
    def __init__(self, request: CredentialRequest, bearer: str) -> None:
        self.address = request.setting("address")
        self.bearer = bearer

    def document(self, path: str) -> dict[str, Any]:
        return Reader(lambda: self.bearer).document(f"{self.address}/{path}")

    def principal(self) -> dict[str, str]:
        return {"account": str(self.document("account")["name"])}

    def explain(self, error: Exception) -> str:
        return f"Acme answered: {error}. Ask Acme."


class AcmeAccount(AcmeClients):
    def __init__(self, request: CredentialRequest) -> None:
        self._token = IdentityToken(request)
        super().__init__(request, self._token.text)

    @property
    def clients(self) -> AcmeClients:
        return self

    def open(self) -> TerraformCredentials:
        account = self.principal()["account"]
        return TerraformCredentials(
            environ={"ACME_TOKEN_FILE": str(self._token.path)},
            expires_at=self._token.expires_at,
            renewed_by=TOKEN,
            principal=f"account {account}",
        )

    def close(self) -> None:
        pass


def connect_ambient(request: CredentialRequest) -> AcmeClients:
    return AcmeClients(request, request.environ["ACME_KEY"])


class AcmeInventory(WholeInventory):
    everywhere: tuple[str, ...] = ("vpc",)

    def __init__(self, clients: AcmeClients, regions: list[str]) -> None:
        super().__init__(regions, bearer=lambda: clients.bearer)
        self._clients = clients

    def explain(self, error: Exception) -> str:
        return self._clients.explain(error)

    def _vpc(self) -> Any:
        yield self._clients.document("networks")["networks"]


CLOUD = Cloud(
    name="acme",
    connect=AcmeAccount,
    connect_ambient=connect_ambient,
    ambient=AmbientSources(names=("ACME_*",), files={}, secret_files={}),
    region_variables=("ACME_REGION",),
    inventory=AcmeInventory,
    probes={"acme": lambda clients, settings: clients.document(f"buckets/{settings['bucket']}")},
)
