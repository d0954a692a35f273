"""Variables: plain and sealed values, the sets they come from, and which of them wins.

A bundle of variables has the same form on a revision, on a set and in a snapshot:

    {"variables": {name: value}, "environment": {name: text},
     "secrets": {"variables": {name: digest}, "environment": {name: digest}}}

A sensitive value is kept once, sealed, and named by its keyed digest everywhere else. It is opened
only for the claim of a job.
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
#: Terraform and the runner use these themselves.
RESERVED_ENVIRONMENT = re.compile(r"^(TF_|SLIPWAY_|LD_|PATH$|HOME$|SHELL$|IFS$|BASH_ENV$|ENV$|PYTHON)")
#: Linux hands a program at most 128 KiB in one variable, its name included.
MAX_ENVIRONMENT_BYTES = 100 * 1024
NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_-]{0,199}$")

Bundle = dict[str, Any]


#: Where a value comes from, as the page says it.
OWN, DEFAULT, NOWHERE = "this Spec", "default", "no value"


@dataclass(frozen=True, slots=True)
class Effective:
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
        """A set may have more than one Spec needs; what is not declared is left out."""
        return self.category == "variables" and self.declared is None


def empty() -> Bundle:
    return {"variables": {}, "environment": {}, "secrets": {"variables": {}, "environment": {}}}


def bundle_of(document: Mapping[str, Any]) -> Bundle:
    """The bundle inside a document; parts that are absent are empty."""
    secrets = document.get("secrets", {})
    return {
        "variables": dict(document.get("variables", {})),
        "environment": dict(document.get("environment", {})),
        "secrets": {category: dict(secrets.get(category, {})) for category in CATEGORIES},
    }


def set_plain(bundle: Bundle, *, category: str, name: str, value: Any) -> Bundle:
    _check(category, name, value)
    changed = without(bundle, category=category, name=name)
    changed[category][name] = value
    return changed


def set_secret(bundle: Bundle, *, category: str, name: str, value: Any, organization_id: UUID) -> Bundle:
    """Seal a value; from here on it can be replaced or removed, not read."""
    _check(category, name, value)
    changed = without(bundle, category=category, name=name)
    changed["secrets"][category][name] = keep_secret(value, organization_id=organization_id)
    return changed


def without(bundle: Bundle, *, category: str, name: str) -> Bundle:
    changed = bundle_of(bundle)
    changed[category].pop(name, None)
    changed["secrets"][category].pop(name, None)
    return changed


def keep_secret(value: Any, *, organization_id: UUID) -> str:
    """Store the value sealed, once, and return the digest that names it."""
    text = canonical({"value": value})
    digest = digest_of(text, organization_id)
    SealedValue.objects.get_or_create(
        organization_id=organization_id,
        digest=digest,
        defaults={"sealed": seal(text, context=value_context(organization_id, digest))},
    )
    return digest


def open_secret(digest: str) -> Any:
    """The one sealed value of that digest: for whoever acts with it, never for showing."""
    kept = SealedValue.objects.filter(digest=digest).first()
    if kept is None:
        raise BadInput("The token of this source is no longer kept. Give it again.", field="source.token")
    context = value_context(kept.organization_id, digest)
    return json.loads(unseal(kept.sealed, context=context))["value"]


def digest_of(text: bytes, organization_id: UUID) -> str:
    """Keyed, so that nobody who reads a snapshot can try out guesses."""
    return hmac.new(_digest_key(organization_id), organization_id.bytes + text, "sha256").hexdigest()


def _digest_key(organization_id: UUID) -> bytes:
    """Of its own, so that neither a new SLIPWAY_SECRET_KEY nor a new encryption key changes any digest."""
    context = digest_key_context(organization_id)
    kept, _ = DigestKey.objects.get_or_create(
        organization_id=organization_id,
        defaults={"sealed": seal(os.urandom(DIGEST_KEY_BYTES), context=context)},
    )
    return unseal(kept.sealed, context=context)


def digest_key_context(organization_id: UUID) -> str:
    return f"digest-key:{organization_id}"


@dataclass(frozen=True, slots=True)
class Revealed:
    """A snapshot's variables with every secret opened: for a claim, and for nothing else."""

    variables: dict[str, Any]
    environment: dict[str, str]
    sensitive: list[str]


def reveal(snapshot: Mapping[str, Any], *, organization_id: UUID) -> Revealed:
    bundle = bundle_of(snapshot)
    opened = _open(bundle["secrets"], organization_id)
    return Revealed(
        variables={**bundle["variables"], **opened["variables"]},
        environment={
            **bundle["environment"],
            **{name: str(value) for name, value in opened["environment"].items()},
        },
        sensitive=sorted({*opened["variables"], *opened["environment"]}),
    )


def secret_values(bundle: Mapping[str, Any], *, organization_id: UUID) -> list[Any]:
    """Every sealed value of a document, opened: to hide them where they turn up, never to show them."""
    opened = _open(bundle_of(bundle)["secrets"], organization_id)
    return [value for named in opened.values() for value in named.values()]


def sets_of(spec: Spec) -> list[VariableSet]:
    """The sets that a spec takes variables from, the weakest first."""
    attached = VariableSet.specs.through.objects.filter(variableset=OuterRef("pk"), spec=spec)
    sets = VariableSet.objects.filter(
        Q(for_all_specs=True) | Exists(attached), organization=spec.organization_id
    )
    return list(sets.order_by("-for_all_specs", "priority", "name"))


def resolved(spec: Spec, own: Mapping[str, Any], *, declared: Configuration) -> Bundle:
    """What a job sees: the spec's own values over those of its sets that the configuration knows."""
    merged = empty()
    for one in sets_of(spec):
        merged = _over(merged, _known(bundle_of(one.variables), declared))
    # A set does not know which configuration calls a value sensitive that is none of its own secrets.
    return sealed_as_declared(
        _over(merged, bundle_of(own)), declared=declared, organization_id=spec.organization_id
    )


def effective(spec: Spec, own: Mapping[str, Any], *, declared: Configuration) -> list[Effective]:
    """The same with everything that is declared, where each value comes from and what it overrides."""
    found = {("variables", name): _undecided(one) for name, one in declared.variables.items()}
    layers = [(f"set {one.name}", bundle_of(one.variables)) for one in sets_of(spec)]
    for origin, layer in [*layers, (OWN, bundle_of(own))]:
        for category, name in _names(layer):
            before = found.get((category, name))
            found[category, name] = _decided(layer, category, name, origin=origin, before=before)
    return sorted(found.values(), key=lambda one: (one.category != "variables", one.name))


def listed(bundle: Bundle) -> list[Effective]:
    """The variables of one bundle by name, for a page that shows a set."""
    return [_decided(bundle, category, name, origin="", before=None) for category, name in _names(bundle)]


def sealed_as_declared(bundle: Bundle, *, declared: Configuration, organization_id: UUID) -> Bundle:
    """The bundle with everything sealed that the configuration itself calls sensitive."""
    for name, variable in declared.variables.items():
        if variable.sensitive and name in bundle["variables"]:
            value = bundle["variables"][name]
            bundle = set_secret(
                bundle, category="variables", name=name, value=value, organization_id=organization_id
            )
    return bundle


def _known(bundle: Bundle, declared: Configuration) -> Bundle:
    unknown = {
        name for category, name in _names(bundle) if category == "variables"
    } - declared.variables.keys()
    for name in unknown:
        bundle = without(bundle, category="variables", name=name)
    return bundle


def _names(bundle: Bundle) -> list[tuple[str, str]]:
    return [
        (category, name)
        for category in CATEGORIES
        for name in sorted({*bundle[category], *bundle["secrets"][category]})
    ]


def _undecided(variable: Variable) -> Effective:
    return Effective(
        name=variable.name,
        category="variables",
        value=None if variable.sensitive else variable.default,
        sensitive=variable.sensitive,
        origin=_where(variable),
        overrides=(),
        declared=variable,
    )


def _where(variable: Variable) -> str:
    """Where the configuration itself has the value from."""
    if variable.required:
        return NOWHERE
    return f"file {variable.given_in}" if variable.given_in else DEFAULT


def _decided(layer: Bundle, category: str, name: str, *, origin: str, before: Effective | None) -> Effective:
    declared = before.declared if before else None
    overridden = () if before is None or before.is_missing else (*before.overrides, before.origin)
    sensitive = name in layer["secrets"][category] or (declared is not None and declared.sensitive)
    return Effective(
        name=name,
        category=category,
        value=None if sensitive else layer[category].get(name),
        sensitive=sensitive,
        origin=origin,
        overrides=overridden,
        declared=declared,
    )


def _over(lower: Bundle, upper: Bundle) -> Bundle:
    merged = bundle_of(lower)
    for category in CATEGORIES:
        for name, value in upper[category].items():
            merged = without(merged, category=category, name=name)
            merged[category][name] = value
        for name, digest in upper["secrets"][category].items():
            merged = without(merged, category=category, name=name)
            merged["secrets"][category][name] = digest
    return merged


def _open(secrets: Mapping[str, Mapping[str, str]], organization_id: UUID) -> dict[str, dict[str, Any]]:
    digests = [digest for named in secrets.values() for digest in named.values()]
    if not digests:
        return {category: {} for category in CATEGORIES}
    kept = dict(
        SealedValue.objects.filter(organization_id=organization_id, digest__in=digests).values_list(
            "digest", "sealed"
        )
    )
    return {
        category: {
            name: json.loads(unseal(kept[digest], context=value_context(organization_id, digest)))["value"]
            for name, digest in named.items()
        }
        for category, named in secrets.items()
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
