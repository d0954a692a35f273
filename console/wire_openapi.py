"""Describe the runners' endpoints in the OpenAPI document, from the messages of the protocol.

The generator of the document only sees the API for people. The table below lists the messages of each
endpoint; their schemas come from the dataclasses, and a test compares the table with the URLs.
"""

import dataclasses
import types
import typing
from typing import Any

from runner import protocol
from runner.protocol import (
    Claim,
    ClaimRequest,
    FoundResources,
    Goodbye,
    HeartbeatAnswer,
    HeartbeatRequest,
    HelloAnswer,
    IdentityTokenAnswer,
    IdentityTokenRequest,
    LogAnswer,
    LogBatch,
    RegistrationAnswer,
    RegistrationRequest,
    RotationAnswer,
    RunnerFacts,
    StatusAnswer,
    StatusReport,
)

Schema = dict[str, Any]

TAG = "runners"
BINARY = {"type": "string", "format": "binary"}
CLAIM_ID = {
    "name": "claim_id", "in": "query", "required": True, "schema": {"type": "string", "format": "uuid"},
}  # fmt: skip
PLAN_FORM = {
    "type": "object",
    "required": ["plan", "json", "lock", "fingerprint"],
    "properties": {
        "plan": BINARY,
        "json": BINARY,
        "lock": BINARY,
        "fingerprint": {
            "type": "string",
            "description": "JSON: state_lineage, state_serial, terraform_version, provider_lock_sha256",
        },
    },
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One request of the protocol. `takes` and `gives` are messages; `body` and `answer`, schemas."""

    method: str
    path: str
    title: str
    takes: type | None = None
    gives: type | None = None
    status: int = 200
    body: Schema | None = None
    answer: Schema | None = None
    needs_claim_id: bool = False
    empty_status: int | None = None
    scheme: str = "runnerCredential"


ENDPOINTS = (
    Endpoint(
        method="post", path="/api/runners/register", title="Exchange a registration token for a credential",
        takes=RegistrationRequest, gives=RegistrationAnswer, status=201, scheme="",
    ),
    Endpoint(
        method="post", path="/api/runners/hello", title="Say what this runner is, at its start",
        takes=RunnerFacts, gives=HelloAnswer,
    ),
    Endpoint(
        method="post", path="/api/runners/rotate", title="Get a second credential",
        gives=RotationAnswer, status=201,
    ),
    Endpoint(
        method="post", path="/api/runners/goodbye", title="Say that this start has stopped in good order",
        takes=Goodbye, answer={"type": "object"},
    ),
    Endpoint(
        method="post", path="/api/jobs/claim", title="Wait for a job, at most 30 s; 204 when there was none",
        takes=ClaimRequest, gives=Claim, empty_status=204,
    ),
    Endpoint(
        method="post", path="/api/jobs/{job_id}/heartbeat", title="Renew the lease",
        takes=HeartbeatRequest, gives=HeartbeatAnswer,
    ),
    Endpoint(
        method="put", path="/api/jobs/{job_id}/status", title="Report PROCESSING, then one final status",
        takes=StatusReport, gives=StatusAnswer,
    ),
    Endpoint(
        method="post", path="/api/jobs/{job_id}/logs", title="Append log lines",
        takes=LogBatch, gives=LogAnswer,
    ),
    Endpoint(
        method="put", path="/api/jobs/{job_id}/plan", title="Upload the plan that a PLAN made",
        body={"multipart/form-data": {"schema": PLAN_FORM}}, status=201, needs_claim_id=True,
        answer={
            "type": "object",
            "properties": {"plan_id": {"type": "string"}, "number": {"type": "integer"}},
        },
    ),
    Endpoint(
        method="get", path="/api/jobs/{job_id}/plan", title="Download the reviewed plan file",
        answer=BINARY, needs_claim_id=True,
    ),
    Endpoint(
        method="put", path="/api/jobs/{job_id}/errored-state",
        title="Keep a state that Terraform could not save; accepted after the end of the claim as well",
        body={"application/octet-stream": {"schema": BINARY}}, status=201, needs_claim_id=True,
        answer={"type": "object"},
    ),
    Endpoint(
        method="post", path="/api/jobs/{job_id}/identity-token",
        title="Get a signed token for the cloud that this attempt acts in; again while the claim lives",
        takes=IdentityTokenRequest, gives=IdentityTokenAnswer,
    ),
    Endpoint(
        method="put", path="/api/jobs/{job_id}/resources",
        title="Send a part of what a FETCH_RESOURCES found of one kind in one region",
        takes=FoundResources, answer={"type": "object"},
    ),
    *(
        Endpoint(
            method=method, path=path, title=f"Terraform's http backend: {title}", scheme="stateToken",
            body={"application/json": {"schema": {"type": "object"}}} if method == "post" else None,
            answer={"type": "object"} if method == "get" else None,
            empty_status=204 if method == "get" else None,
        )
        for method, path, title in (
            ("get", "/api/state/{spec_id}", "read the state; 204 when there is none"),
            ("post", "/api/state/{spec_id}", "write it"),
            ("delete", "/api/state/{spec_id}", "empty it"),
            ("post", "/api/state/{spec_id}/lock", "take the lock; 423 with the holder's document"),
            ("delete", "/api/state/{spec_id}/lock", "give the lock back"),
        )
    ),
)  # fmt: skip

SECURITY = {
    "runnerCredential": {"type": "http", "scheme": "bearer", "description": "A runner's: `slr_…`."},
    "stateToken": {
        "type": "http", "scheme": "basic", "description": "As in `Claim.state`, while the claim lives.",
    },
}  # fmt: skip


def add_runner_endpoints(result: Schema, **_: Any) -> Schema:
    """Add the runners' endpoints to the finished document; the generator calls this hook."""
    components = result.setdefault("components", {})
    components.setdefault("securitySchemes", {}).update(SECURITY)
    components.setdefault("schemas", {}).update(_schemas())
    for endpoint in ENDPOINTS:
        result["paths"].setdefault(endpoint.path, {})[_free_method(result, endpoint)] = _operation(endpoint)
    return result


def _free_method(result: Schema, endpoint: Endpoint) -> str:
    """Check that the API for people does not use the same method of this URL."""
    assert endpoint.method not in result["paths"].get(endpoint.path, {}), endpoint.path
    return endpoint.method


def _operation(endpoint: Endpoint) -> Schema:
    operation: Schema = {
        "operationId": f"runner_{endpoint.method}_{_words(endpoint.path)}",
        "summary": endpoint.title,
        "tags": [TAG],
        "security": [{endpoint.scheme: []}] if endpoint.scheme else [],
        "parameters": _parameters(endpoint),
        "responses": _responses(endpoint),
    }
    content = (
        {"application/json": {"schema": _reference(endpoint.takes)}} if endpoint.takes else endpoint.body
    )
    if content:
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _words(path: str) -> str:
    return "_".join(part.strip("{}").replace("-", "_") for part in path.split("/")[2:])


def _parameters(endpoint: Endpoint) -> list[Schema]:
    in_path = [part.strip("{}") for part in endpoint.path.split("/") if part.startswith("{")]
    path_parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
        for name in in_path
    ]
    return [*path_parameters, CLAIM_ID] if endpoint.needs_claim_id else path_parameters


def _responses(endpoint: Endpoint) -> Schema:
    schema = _reference(endpoint.gives) if endpoint.gives else endpoint.answer
    kind = "application/octet-stream" if schema == BINARY else "application/json"
    content = {"content": {kind: {"schema": schema}}} if schema else {}
    responses: Schema = {str(endpoint.status): {"description": "", **content}}
    if endpoint.empty_status:
        responses[str(endpoint.empty_status)] = {"description": "There is none."}
    responses["default"] = {
        "description": "A refusal. Act on its `code`.",
        "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return responses


def _schemas() -> Schema:
    """Return the schema of every message of the protocol, by its name."""
    messages = [kind for kind in vars(protocol).values() if _is_message(kind)]
    problem = {
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "code": {"type": "string"},
        },
    }
    return {f"Runner.{kind.__name__}": _message_schema(kind) for kind in messages} | {"Problem": problem}


def _is_message(kind: Any) -> bool:
    return isinstance(kind, type) and dataclasses.is_dataclass(kind)


def _message_schema(kind: type) -> Schema:
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    return {
        "type": "object",
        "description": (kind.__doc__ or "").split("\n\n", maxsplit=1)[0]
        if not _has_made_up_doc(kind)
        else "",
        "properties": {field.name: _field_schema(hints[field.name]) for field in fields},
        "required": [field.name for field in fields if _is_required(field)],
    }


def _has_made_up_doc(kind: type) -> bool:
    """Return true for a dataclass without its own docstring: Python then fills in the signature."""
    return (kind.__doc__ or "").startswith(f"{kind.__name__}(")


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _field_schema(hint: Any) -> Schema:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        (value,) = (argument for argument in arguments if argument is not type(None))
        return {"anyOf": [_field_schema(value), {"type": "null"}]}
    if _is_message(hint):
        return _reference(hint)
    if origin is list:
        return {"type": "array", "items": _field_schema(arguments[0])}
    if origin is dict or hint is dict:
        return {"type": "object", "additionalProperties": True}
    return {str: {"type": "string"}, int: {"type": "integer"}, float: {"type": "number"},
            bool: {"type": "boolean"}}.get(hint, {})  # fmt: skip


def _reference(kind: type) -> Schema:
    return {"$ref": f"#/components/schemas/Runner.{kind.__name__}"}
