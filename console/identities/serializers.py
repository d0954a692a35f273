"""How identities and discovered resources look in the API, and what it takes."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from console.identities.clouds import cloud_choices
from console.identities.issuer import issuer
from console.identities.models import CloudIdentity
from console.identities.resources import Found
from console.identities.selectors import allowed_names


class AllowedSerializer(serializers.Serializer[Any]):
    """Who may use the identity; `["*"]` is everybody of the organization's."""

    specs = serializers.ListField(child=serializers.CharField(), required=False)
    environments = serializers.ListField(child=serializers.CharField(), required=False)
    pools = serializers.ListField(child=serializers.CharField(), required=False)


class ProviderField(serializers.ChoiceField):
    """The name of a cloud of the registry."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=cloud_choices(), **options)


class IdentityRequestSerializer(serializers.Serializer[Any]):
    """The body of `POST /api/organizations/{slug}/identities`."""

    name = serializers.CharField(max_length=100)
    slug = serializers.SlugField(max_length=60, required=False, default="")
    provider = ProviderField()
    settings = serializers.JSONField(
        default=dict, help_text="What the provider takes: see docs/identities.md."
    )
    allowed = AllowedSerializer(required=False)


class IdentityChangeSerializer(serializers.Serializer[Any]):
    """What is absent stays; of `settings` and `allowed` too."""

    name = serializers.CharField(max_length=100, required=False)
    settings = serializers.JSONField(required=False)
    allowed = AllowedSerializer(required=False)


class IdentitySerializer(serializers.ModelSerializer[CloudIdentity]):
    organization = serializers.SlugRelatedField("slug", read_only=True)  # type: ignore[var-annotated]
    account = serializers.CharField(read_only=True)
    allowed = serializers.SerializerMethodField()
    issuer = serializers.SerializerMethodField()
    audience = serializers.CharField(read_only=True)
    session_seconds = serializers.IntegerField(read_only=True)

    class Meta:
        model = CloudIdentity
        fields = (
            "id", "organization", "name", "slug", "provider", "account", "settings", "external_id", "allowed",
            "issuer", "audience", "session_seconds", "tested_at", "test_passed", "last_test", "fetched_at",
            "last_fetch", "created_at", "changed_at",
        )  # fmt: skip

    def get_allowed(self, identity: CloudIdentity) -> dict[str, list[str]]:
        return asdict(allowed_names(identity))

    def get_issuer(self, identity: CloudIdentity) -> str:
        return issuer()


class ResourceQuerySerializer(serializers.Serializer[Any]):
    kind = serializers.RegexField(r"^[a-z][a-z0-9_]{0,39}$", required=False)
    region = serializers.CharField(max_length=60, required=False)
    q = serializers.CharField(max_length=200, required=False, default="", help_text="Anywhere in any value.")
    page = serializers.IntegerField(min_value=1, max_value=10_000, default=1)
    limit = serializers.IntegerField(min_value=1, max_value=500, default=50)


def found_json(found: Found) -> dict[str, Any]:
    return {
        "region": found.region,
        "kind": found.kind,
        "id": found.id,
        "name": found.name,
        "label": found.label,
        "fetched_at": found.fetched_at,
        "resource": found.resource,
    }
