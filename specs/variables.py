"""Variables: plain and sealed values, the sets they come from, and their precedence.

A bundle of variables has the same form on a revision, on a set and in a snapshot:

    {"variables": {name: value}, "environment": {name: text},
     "secrets": {"variables": {name: digest}, "environment": {name: digest}}}

A sensitive value is stored once, sealed, and named by its keyed digest everywhere else. Only the claim of a
job opens it.
"""

import hmac
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from console.errors import BadInput
from console.vault import seal, unseal
from specs.configuration import Configuration, Variable
from specs.models import DigestKey, SealedValue, Spec, VariableSet
from specs.snapshot import canonical

CATEGORIES = ("variables", "environment")
DIGEST_KEY_BYTES = 32
#: Names that Terraform and the runner use.
RESERVED_ENVIRONMENT = re.compile(r"^(TF_|SLIPWAY_|LD_|PATH$|HOME$|SHELL$|IFS$|BASH_ENV$|ENV$|PYTHON)")
#: Linux hands a program at most 128 KiB in one variable, its name included.
MAX_ENVIRONMENT_BYTES = 100 * 1024
NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,199}$")

Bundle = dict[str, Any]


#: The origin of a value, as pages show it.
OWN, DEFAULT, NOWHERE = "this Spec", "default", "no value"


@dataclass(frozen=True, slots=True)
class EffectiveVariable:
    """One variable as a job would see it, and where its value comes from."""

    name: str
    category: str
    value: Any
    sensitive: bool
    origin: str
    overrides: tuple[str, ...]
    declared: Variable | None = None

    @property
    def is_own(self) -> bool:
        return self.origin == OWN

    @property
    def is_missing(self) -> bool:
        return self.origin == NOWHERE

    @property
    def is_unused(self) -> bool:
        """Return true if the configuration does not declare it: a set may have more than a Spec needs."""
        return self.category == "variables" and self.declared is None


def empty_bundle() -> Bundle:
    return {"variables": {}, "environment": {}, "secrets": {"variables": {}, "environment": {}}}


def bundle_of(document: Mapping[str, Any]) -> Bundle:
    """Return the bundle inside a document; absent parts are empty."""
    secrets = document.get("secrets", {})
    return {
        "variables": dict(document.get("variables", {})),
        "environment": dict(document.get("environment", {})),
        "secrets": {category: dict(secrets.get(category, {})) for category in CATEGORIES},
    }


def set_plain(bundle: Bundle, *, category: str, name: str, value: Any) -> Bundle:
    _check(category, name, value)
    new_bundle = without_variable(bundle, category=category, name=name)
    new_bundle[category][name] = value
    return new_bundle


def set_secret(bundle: Bundle, *, category: str, name: str, value: Any, organization_id: UUID) -> Bundle:
    """Seal a value. It can be replaced or removed later, but not read."""
    _check(category, name, value)
    new_bundle = without_variable(bundle, category=category, name=name)
    new_bundle["secrets"][category][name] = keep_secret(value, organization_id=organization_id)
    return new_bundle


def without_variable(bundle: Bundle, *, category: str, name: str) -> Bundle:
    new_bundle = bundle_of(bundle)
    new_bundle[category].pop(name, None)
    new_bundle["secrets"][category].pop(name, None)
    return new_bundle


def keep_secret(value: Any, *, organization_id: UUID) -> str:
    """Seal and store the value once, and return its digest."""
    text = canonical({"value": value})
    digest = digest_of(text, organization_id)
    SealedValue.objects.get_or_create(
        organization_id=organization_id,
        digest=digest,
        defaults={"sealed": seal(text, context=value_context(organization_id, digest))},
    )
    return digest


def open_secret(digest: str) -> Any:
    """Unseal the value of that digest, to use it, never to show it."""
    sealed_value = SealedValue.objects.filter(digest=digest).first()
    if sealed_value is None:
        raise BadInput("The token of this source is no longer stored. Enter it again.", field="source.token")
    context = value_context(sealed_value.organization_id, digest)
    return json.loads(unseal(sealed_value.sealed, context=context))["value"]


def digest_of(text: bytes, organization_id: UUID) -> str:
    """Return a keyed digest, so that a reader of a snapshot cannot test guesses."""
    return hmac.new(_digest_key(organization_id), organization_id.bytes + text, "sha256").hexdigest()


def _digest_key(organization_id: UUID) -> bytes:
    """Return the organization's key, so that new secret or encryption keys change no digest."""
    context = digest_key_context(organization_id)
    digest_key, _ = DigestKey.objects.get_or_create(
        organization_id=organization_id,
        defaults={"sealed": seal(os.urandom(DIGEST_KEY_BYTES), context=context)},
    )
    return unseal(digest_key.sealed, context=context)


def digest_key_context(organization_id: UUID) -> str:
    return f"digest-key:{organization_id}"


@dataclass(frozen=True, slots=True)
class Revealed:
    """A snapshot's variables with every secret unsealed, only for a claim."""

    variables: dict[str, Any]
    environment: dict[str, str]
    sensitive: list[str]


def reveal(snapshot: Mapping[str, Any], *, organization_id: UUID) -> Revealed:
    bundle = bundle_of(snapshot)
    opened = _unseal_all(bundle["secrets"], organization_id)
    return Revealed(
        variables={**bundle["variables"], **opened["variables"]},
        environment={
            **bundle["environment"],
            **{name: str(value) for name, value in opened["environment"].items()},
        },
        sensitive=sorted({*opened["variables"], *opened["environment"]}),
    )


def secret_values(bundle: Mapping[str, Any], *, organization_id: UUID) -> list[Any]:
    """Unseal every secret of a document, to mask them elsewhere, never to show them."""
    opened = _unseal_all(bundle_of(bundle)["secrets"], organization_id)
    return [secret for values in opened.values() for secret in values.values()]


def sets_of(spec: Spec) -> list[VariableSet]:
    """Return the sets that apply to a Spec, the lowest precedence first."""
    attached = VariableSet.specs.through.objects.filter(variableset=OuterRef("pk"), spec=spec)
    sets = VariableSet.objects.filter(
        Q(for_all_specs=True) | Exists(attached), organization=spec.organization_id
    )
    return list(sets.order_by("-for_all_specs", "priority", "name"))


def resolve_variables(spec: Spec, own: Mapping[str, Any], *, declared: Configuration) -> Bundle:
    """Merge the variables of a job: the Spec's own values over the declared ones of its sets."""
    merged = empty_bundle()
    for variable_set in sets_of(spec):
        merged = _merge(merged, _keep_declared(bundle_of(variable_set.variables), declared))
    # The configuration may declare a value as sensitive that is plain in its set.
    return seal_declared_secrets(
        _merge(merged, bundle_of(own)), declared=declared, organization_id=spec.organization_id
    )


def effective_variables(
    spec: Spec, own: Mapping[str, Any], *, declared: Configuration
) -> list[EffectiveVariable]:
    """Return all declared and set variables with their origins and the origins that they override."""
    by_name = {
        ("variables", name): _from_declaration(variable) for name, variable in declared.variables.items()
    }
    layers = [
        (f"set {variable_set.name}", bundle_of(variable_set.variables)) for variable_set in sets_of(spec)
    ]
    for origin, layer in [*layers, (OWN, bundle_of(own))]:
        for category, name in _names(layer):
            before = by_name.get((category, name))
            by_name[category, name] = _from_layer(layer, category, name, origin=origin, before=before)
    return sorted(by_name.values(), key=lambda variable: (variable.category != "variables", variable.name))


def list_variables(bundle: Bundle) -> list[EffectiveVariable]:
    """Return the variables of one bundle by name, for the page of a set."""
    return [_from_layer(bundle, category, name, origin="", before=None) for category, name in _names(bundle)]


def seal_declared_secrets(bundle: Bundle, *, declared: Configuration, organization_id: UUID) -> Bundle:
    """Seal the plain variables that the configuration declares as sensitive."""
    for name, variable in declared.variables.items():
        if variable.sensitive and name in bundle["variables"]:
            value = bundle["variables"][name]
            bundle = set_secret(
                bundle, category="variables", name=name, value=value, organization_id=organization_id
            )
    return bundle


def _keep_declared(bundle: Bundle, declared: Configuration) -> Bundle:
    unknown = {
        name for category, name in _names(bundle) if category == "variables"
    } - declared.variables.keys()
    for name in unknown:
        bundle = without_variable(bundle, category="variables", name=name)
    return bundle


def _names(bundle: Bundle) -> list[tuple[str, str]]:
    return [
        (category, name)
        for category in CATEGORIES
        for name in sorted({*bundle[category], *bundle["secrets"][category]})
    ]


def _from_declaration(variable: Variable) -> EffectiveVariable:
    return EffectiveVariable(
        name=variable.name,
        category="variables",
        value=None if variable.sensitive else variable.default,
        sensitive=variable.sensitive,
        origin=_declaration_origin(variable),
        overrides=(),
        declared=variable,
    )


def _declaration_origin(variable: Variable) -> str:
    """Return the origin of a value inside the configuration."""
    if variable.required:
        return NOWHERE
    return f"file {variable.given_in}" if variable.given_in else DEFAULT


def _from_layer(
    layer: Bundle, category: str, name: str, *, origin: str, before: EffectiveVariable | None
) -> EffectiveVariable:
    declared = before.declared if before else None
    overridden = () if before is None or before.is_missing else (*before.overrides, before.origin)
    sensitive = name in layer["secrets"][category] or (declared is not None and declared.sensitive)
    return EffectiveVariable(
        name=name,
        category=category,
        value=None if sensitive else layer[category].get(name),
        sensitive=sensitive,
        origin=origin,
        overrides=overridden,
        declared=declared,
    )


def _merge(lower: Bundle, upper: Bundle) -> Bundle:
    merged = bundle_of(lower)
    for category in CATEGORIES:
        for name, value in upper[category].items():
            merged = without_variable(merged, category=category, name=name)
            merged[category][name] = value
        for name, digest in upper["secrets"][category].items():
            merged = without_variable(merged, category=category, name=name)
            merged["secrets"][category][name] = digest
    return merged


def _unseal_all(secrets: Mapping[str, Mapping[str, str]], organization_id: UUID) -> dict[str, dict[str, Any]]:
    digests = [digest for digests_by_name in secrets.values() for digest in digests_by_name.values()]
    if not digests:
        return {category: {} for category in CATEGORIES}
    sealed_values = dict(
        SealedValue.objects.filter(organization_id=organization_id, digest__in=digests).values_list(
            "digest", "sealed"
        )
    )
    return {
        category: {
            name: json.loads(unseal(sealed_values[digest], context=value_context(organization_id, digest)))[
                "value"
            ]
            for name, digest in digests_by_name.items()
        }
        for category, digests_by_name in secrets.items()
    }


def value_context(organization_id: UUID, digest: str) -> str:
    return f"variable:{organization_id}:{digest}"


def _check(category: str, name: str, value: Any) -> None:
    if category not in CATEGORIES:
        raise BadInput(f"category: expected {' or '.join(CATEGORIES)}", field="category")
    if not NAME.match(name):
        raise BadInput(
            f"{name!r} is not a name: letters, digits, _ and -, not beginning with a digit.", field="name"
        )
    if category == "environment" and RESERVED_ENVIRONMENT.match(name):
        raise BadInput(f"{name} is used by the runner itself. Choose another name.", field="name")
    if category == "environment" and not isinstance(value, str):
        raise BadInput(f"{name}: an environment variable is text.", field="value")
    if category == "environment" and len(value.encode("utf-8", "replace")) > MAX_ENVIRONMENT_BYTES:
        raise BadInput(
            f"{name}: an environment variable has at most {MAX_ENVIRONMENT_BYTES // 1024} KiB. Use a "
            "Terraform variable for more.",
            field="value",
        )
