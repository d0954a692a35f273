"""The JSON of identities and discovered resources in the API, and the bodies that it takes."""

from dataclasses import asdict
from typing import Any

from rest_framework import serializers

from console.identities.clouds import cloud_choices
from console.identities.issuer import issuer
from console.identities.models import CloudIdentity
from console.identities.resources import Resource
from console.identities.selectors import allowed_names


class AllowedSerializer(serializers.Serializer[Any]):
    """The names of those that may use the identity; `["*"]` allows all of the organization."""

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
    """A partial change: absent fields stay, also those of `settings` and `allowed`."""

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


def resource_json(resource: Resource) -> dict[str, Any]:
    return {
        "region": resource.region,
        "kind": resource.kind,
        "id": resource.id,
        "name": resource.name,
        "label": resource.label,
        "fetched_at": resource.fetched_at,
        "resource": resource.resource,
    }
