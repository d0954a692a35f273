"""Create and edit Specs as people do, through the API and the pages."""

from __future__ import annotations

from typing import Any

import httpx
from django.db import connection
from django.test import Client

from console.accounts.models import User
from specs.models import Spec
from tests.console_app import Http
from tests.page_source import source_of
from tests.people import Tenant

#: A configuration that needs nothing, with one variable of each kind that a form must know.
FILES = {
    "main.tf": """resource "terraform_data" "one" {
  input = var.size
}

output "size" {
  value = var.size
}
""",
    "variables.tf": """variable "size" {
  type        = number
  description = "How large it is."
  default     = 3
}

variable "zones" {
  type    = list(string)
  default = ["a"]
}

variable "password" {
  type      = string
  sensitive = true
  default   = "none"
}
""",
}
INLINE: dict[str, Any] = {"kind": "inline", "files": FILES}


def post_spec(api: Http, tenant: Tenant, *, name: str = "shop", **body: Any) -> httpx.Response:
    body = {"organization": tenant.organization.slug, "name": name, "source": INLINE, **body}
    return api.post("/api/specs", json=body)


def new_spec(api: Http, tenant: Tenant, **body: Any) -> Spec:
    answer = post_spec(api, tenant, **body)
    assert answer.status_code == 201, answer.text
    return Spec.objects.select_related("organization").get(pk=answer.json()["id"])


def address(spec: Spec, rest: str = "") -> str:
    return f"/api/specs/{spec.pk}{rest}"


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    """The status, the field and the sentence of a refusal."""
    problem = answer.json()
    return answer.status_code, problem.get("field", ""), problem["detail"]


class Browser:
    """A signed-in person who reads pages and posts forms, without a real browser."""

    def __init__(self, tenant: Tenant, user: User, *, scripts: bool = True) -> None:
        self._client = Client(headers={"HX-Request": "true"} if scripts else {})
        self._client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        self._org = tenant.organization.slug

    def get(self, path: str, **query: Any) -> Any:
        return self._client.get(f"/{self._org}/{path}", query)

    def post(self, path: str, fields: dict[str, Any] | None = None, **more: Any) -> Any:
        return self._client.post(f"/{self._org}/{path}", {**(fields or {}), **more})

    def reads(self, path: str, **query: Any) -> str:
        answer = self.get(path, **query)
        assert answer.status_code == 200, answer.content.decode()
        return source_of(answer)


def everything_stored() -> str:
    """Every row of every table as text: what a thief of the database would read."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        dumped = []
        for table in tables:
            cursor.execute(f"SELECT coalesce(string_agg(t::text, E'\\n'), '') FROM {table} AS t")
            dumped.append(f"{table}: {cursor.fetchone()[0]}")
    return "\n".join(dumped)
