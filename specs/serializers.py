"""The API's representation of Specs, revisions, variables, outputs and blueprints, and its request bodies."""

from typing import Any

from rest_framework import serializers

from console.runners.models import DEFAULT_POOL
from runner.protocol import MASK
from specs import selectors
from specs.comparison import Comparison
from specs.document import Blueprint
from specs.models import Output, OwnBlueprint, Revision, Spec, VariableSet
from specs.spec_settings import SETTINGS
from specs.variables import EffectiveVariable


class SpecSerializer(serializers.ModelSerializer[Spec]):
    organization = serializers.SlugRelatedField("slug", read_only=True)  # type: ignore[var-annotated]
    pool = serializers.SlugRelatedField("name", read_only=True)  # type: ignore[var-annotated]
    identity = serializers.PrimaryKeyRelatedField(read_only=True, allow_null=True)  # type: ignore[var-annotated]
    revision = serializers.SerializerMethodField()
    components = serializers.SerializerMethodField()
    expired = serializers.BooleanField(
        source="is_expired",
        read_only=True,
        help_text="Nothing more is applied to it until its expiry changes.",
    )

    class Meta:
        model = Spec
        fields = (
            "id", "organization", "slug", "source_kind", "blueprint", "pool", "revision", "components",
            "created_at", "deployed_at", "destroyed_at", "expired", *SETTINGS,
        )  # fmt: skip

    def get_revision(self, spec: Spec) -> int:
        return selectors.current_number(spec)

    def get_components(self, spec: Spec) -> dict[str, Any]:
        return {
            component.kind: component.value
            for component in selectors.components_of(spec)
            if component.gone_at is None
        }


class VariableInput(serializers.Serializer[Any]):
    category = serializers.ChoiceField(choices=["variables", "environment"], default="variables")
    value = serializers.JSONField(required=False, allow_null=True)
    sensitive = serializers.BooleanField(default=False)


class SpecRequestSerializer(serializers.Serializer[Any]):
    """The body of `POST /api/specs`."""

    organization = serializers.SlugField()
    name = serializers.CharField(max_length=100)
    slug = serializers.SlugField(max_length=60, required=False, default="")
    pool = serializers.SlugField(default=DEFAULT_POOL)
    source = serializers.JSONField(  # type: ignore[assignment]
        help_text='{"kind": "blueprint", "name": …}, {"kind": "inline", "files": {…}}, '
        '{"kind": "inline", "archive": base64} or {"kind": "git", "url": …, "ref": …, "path": …, "token": …}'
    )
    variables = serializers.DictField(child=serializers.JSONField(allow_null=True), default=dict)
    sensitive_variables = serializers.DictField(child=serializers.JSONField(), default=dict)
    environment = serializers.DictField(child=serializers.CharField(), default=dict)
    sensitive_environment = serializers.DictField(child=serializers.CharField(), default=dict)
    settings = serializers.JSONField(default=dict)


class SourceRequestSerializer(serializers.Serializer[Any]):
    source = serializers.JSONField()  # type: ignore[assignment]
    message = serializers.CharField(max_length=200, default="", allow_blank=True)
    based_on = serializers.IntegerField(
        required=False, default=None, allow_null=True, help_text="The revision that was edited."
    )


class RevisionSerializer(serializers.ModelSerializer[Revision]):
    author = serializers.SlugRelatedField(  # type: ignore[var-annotated]
        "username", read_only=True, allow_null=True
    )
    sha256 = serializers.CharField(source="document_sha256", read_only=True)

    class Meta:
        model = Revision
        fields = ("number", "author", "message", "created_at", "sha256", "document")


class RevisionSummarySerializer(serializers.ModelSerializer[Revision]):
    """A line of the history; the document has its own endpoint."""

    author = serializers.SlugRelatedField(  # type: ignore[var-annotated]
        "username", read_only=True, allow_null=True
    )

    class Meta:
        model = Revision
        fields = ("number", "author", "message", "created_at")


class VariableSetSerializer(serializers.ModelSerializer[VariableSet]):
    specs = serializers.SlugRelatedField("slug", many=True, read_only=True)  # type: ignore[var-annotated]

    class Meta:
        model = VariableSet
        fields = (
            "id", "name", "description", "priority", "for_all_specs", "specs", "variables", "updated_at",
        )  # fmt: skip


class VariableSetRequestSerializer(serializers.Serializer[Any]):
    """The full content of a set. A sensitive variable without a value keeps its current value."""

    name = serializers.CharField(max_length=100)
    description = serializers.CharField(default="", allow_blank=True)
    priority = serializers.IntegerField(default=0, min_value=-1000, max_value=1000)
    for_all_specs = serializers.BooleanField(default=False)
    specs = serializers.ListField(child=serializers.SlugField(), default=list)
    variables = serializers.DictField(child=VariableInput(), default=dict)


class OutputSerializer(serializers.ModelSerializer[Output]):
    """An output without its sensitive value, which is revealed on request and recorded."""

    class Meta:
        model = Output
        fields = ("name", "type", "sensitive", "value", "updated_at", "gone_at")


class OwnBlueprintSerializer(serializers.ModelSerializer[OwnBlueprint]):
    class Meta:
        model = OwnBlueprint
        fields = ("name", "url", "ref", "path", "commit", "created_at", "updated_at")


class OwnBlueprintRequestSerializer(serializers.Serializer[Any]):
    name = serializers.SlugField(max_length=60)
    url = serializers.CharField(max_length=500)
    ref = serializers.CharField(max_length=200, default="main")
    path = serializers.CharField(max_length=200, default="", allow_blank=True)
    token = serializers.CharField(
        max_length=2_000,
        default="",
        allow_blank=True,
        help_text="The token of a private repository; sealed, never shown.",
    )


class DeclaredInSerializer(serializers.Serializer[Any]):
    file = serializers.CharField()
    line = serializers.IntegerField()


class EffectiveSerializer(serializers.Serializer[Any]):
    """A variable as the next job would see it: the schema of `effective_json`."""

    name = serializers.CharField()
    category = serializers.ChoiceField(choices=["variables", "environment"])
    value = serializers.JSONField(allow_null=True)
    sensitive = serializers.BooleanField()
    origin = serializers.CharField(help_text="Where the value comes from.")
    overrides = serializers.ListField(child=serializers.CharField())
    used = serializers.BooleanField(help_text="Whether the configuration declares it.")
    missing = serializers.BooleanField()
    type = serializers.CharField(allow_null=True)
    description = serializers.CharField()
    default = serializers.JSONField(allow_null=True)
    required = serializers.BooleanField()  # type: ignore[assignment]
    declared_in = DeclaredInSerializer(allow_null=True)


class BlueprintSerializer(serializers.Serializer[Any]):
    """A catalogue entry: the schema of `blueprint_json`."""

    name = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    clouds = serializers.ListField(child=serializers.CharField())
    own = serializers.BooleanField()
    commit = serializers.CharField(allow_null=True)
    variables = serializers.DictField()
    components = serializers.DictField(child=serializers.CharField())
    last_step = serializers.DictField(allow_null=True)


def effective_json(variable: EffectiveVariable) -> dict[str, Any]:
    """Return a variable as the Variables page shows it, with a sensitive value masked."""
    declared = variable.declared
    return {
        "name": variable.name,
        "category": variable.category,
        "value": MASK if variable.sensitive and not variable.is_missing else variable.value,
        "sensitive": variable.sensitive,
        "origin": variable.origin,
        "overrides": list(variable.overrides),
        "used": not variable.is_unused,
        "missing": variable.is_missing,
        "type": str(declared.type) if declared else None,
        "description": declared.description if declared else "",
        "default": None if declared is None or declared.sensitive else declared.default,
        "required": bool(declared and declared.required),
        "declared_in": {"file": declared.file, "line": declared.line} if declared else None,
    }


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "from": comparison.older.number,
        "to": comparison.newer.number,
        "source": {
            change.name: {"before": change.before, "after": change.after} for change in comparison.source
        },
        "files": [
            {
                "name": change.name,
                "kind": change.kind,
                "rows": [
                    [row.kind, row.left_number, row.left, row.right_number, row.right] for row in change.rows
                ],
            }
            for change in comparison.files
        ],
        "variables": [
            {
                "name": change.name,
                "category": change.category,
                "kind": change.kind,
                "sensitive": change.sensitive,
                "before": change.before,
                "after": change.after,
            }
            for change in comparison.variables
        ],
        "unreadable": comparison.unreadable,
    }


def blueprint_json(blueprint: Blueprint) -> dict[str, Any]:
    return {
        "name": blueprint.name,
        "title": blueprint.title,
        "description": blueprint.description,
        "clouds": list(blueprint.clouds),
        "own": bool(blueprint.commit),
        "commit": blueprint.commit or None,
        "variables": blueprint.variables,
        "components": blueprint.components,
        "last_step": blueprint.last_step,
    }
