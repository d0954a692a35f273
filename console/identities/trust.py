"""The texts that set an account up, and the subjects that it should trust: those of the identity's tokens."""

from console.identities.clouds import Snippet, Trust
from console.identities.clouds.cloud import SpecSubjects
from console.identities.issuer import Named, escape, issuer, subject
from console.identities.models import ANY, CloudIdentity
from specs.models import Spec

#: The actions of a Spec's jobs.
ACTIONS = ("plan", "deploy", "destroy")


def setup_snippets(identity: CloudIdentity) -> list[Snippet]:
    """Return what a person runs in the account: policies, commands, configurations.

    Everything that is put into a text is a checked setting, a slug, or ours; all of it is quoted for the
    language that it stands in, all the same.
    """
    return identity.cloud.setup(identity.settings, trust_of(identity))


def trust_of(identity: CloudIdentity) -> Trust:
    return Trust(
        issuer=issuer(),
        audience=identity.audience,
        organization_id=identity.organization_id,
        identity_id=identity.pk,
        identity_slug=identity.slug,
        external_id=identity.external_id or "",
        test_subject=_test_subject(identity),
        specs=tuple(_spec_subjects(identity, spec) for spec in _allowed_specs(identity)),
        patterns=tuple(_subject_patterns(identity)),
    )


def _test_subject(identity: CloudIdentity) -> str:
    """Return the subject of a CONNECTION_TEST and a FETCH_RESOURCES."""
    return subject(
        organization=_organization(identity),
        action="test",
        spec=None,
        environment="",
        identity=Named(identity.slug, identity.pk),
    )


def _spec_subjects(identity: CloudIdentity, spec: Spec) -> SpecSubjects:
    by_action = {
        action: subject(
            organization=_organization(identity),
            action=action,
            spec=Named(spec.slug, spec.pk),
            environment=spec.environment,
            identity=Named(identity.slug, identity.pk),
        )
        for action in ACTIONS
    }
    return SpecSubjects(spec.slug, by_action)


def _subject_patterns(identity: CloudIdentity) -> list[str]:
    prefix = f"organization:{_organization(identity)}"
    environments = _escape_names(identity.allowed_environments)
    if ANY in identity.allowed_specs:
        specs = ["*"]
    else:
        specs = [str(Named(spec.slug, spec.pk)) for spec in _allowed_specs(identity)]
    patterns = [
        f"{prefix}:spec:{spec}:environment:{name}:action:*" for spec in specs for name in environments
    ]
    return [_test_subject(identity), *patterns]


def _allowed_specs(identity: CloudIdentity) -> list[Spec]:
    """Return the Specs that the identity names; where it allows all, those that use it now."""
    if ANY in identity.allowed_specs:
        return list(Spec.objects.filter(identity=identity).order_by("slug"))
    return list(Spec.objects.filter(pk__in=identity.allowed_specs).order_by("slug"))


def _organization(identity: CloudIdentity) -> Named:
    return Named(identity.organization.slug, identity.organization_id)


def _escape_names(names: list[str]) -> list[str]:
    return ["*"] if ANY in names else [escape(name) for name in names]
