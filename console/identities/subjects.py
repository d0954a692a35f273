"""The subjects that an account should trust: what the tokens of an identity's jobs will say."""

from console.identities.issuer import Named, escaped, subject
from console.identities.models import ANY, CloudIdentity
from specs.models import Spec

#: What jobs of a Spec do.
ACTIONS = ("plan", "deploy", "destroy")


def test_subject(identity: CloudIdentity) -> str:
    """Of a CONNECTION_TEST and a FETCH_RESOURCES."""
    return subject(
        organization=_organization(identity),
        action="test",
        spec=None,
        environment="",
        identity=Named(identity.slug, identity.pk),
    )


def spec_subjects(identity: CloudIdentity, spec: Spec) -> list[str]:
    """Exactly, one for each thing that its jobs do."""
    return [
        subject(
            organization=_organization(identity),
            action=action,
            spec=Named(spec.slug, spec.pk),
            environment=spec.environment,
            identity=Named(identity.slug, identity.pk),
        )
        for action in ACTIONS
    ]


def subject_patterns(identity: CloudIdentity) -> list[str]:
    """With `*`, for clouds that match patterns: as wide as the identity itself allows, and no wider."""
    begin = f"organization:{_organization(identity)}"
    environments = _or_any(identity.allowed_environments)
    specs = (
        ["*"]
        if ANY in identity.allowed_specs
        else [str(Named(s.slug, s.pk)) for s in allowed_specs(identity)]
    )
    patterns = [f"{begin}:spec:{spec}:environment:{name}:action:*" for spec in specs for name in environments]
    return [test_subject(identity), *patterns]


def allowed_specs(identity: CloudIdentity) -> list[Spec]:
    """Those that it names; where it allows all, those that use it now."""
    if ANY in identity.allowed_specs:
        return list(Spec.objects.filter(identity=identity).order_by("slug"))
    return list(Spec.objects.filter(pk__in=identity.allowed_specs).order_by("slug"))


def _organization(identity: CloudIdentity) -> Named:
    return Named(identity.organization.slug, identity.organization_id)


def _or_any(names: list[str]) -> list[str]:
    return ["*"] if ANY in names else [escaped(name) for name in names]
