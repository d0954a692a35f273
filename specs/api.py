"""The specs API for people and programs, over the same services as the pages."""

import base64
import binascii
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.access import organization_to_view
from console.accounts.authentication import person
from console.errors import BadInput, NotFound
from console.inputs import whole_number
from console.parsers import validate_body
from console.runners.models import DEFAULT_POOL, Pool
from console.runners.services import default_pool
from specs import access, catalogue, selectors, services, variable_sets
from specs.archive import read_archive
from specs.comparison import compare
from specs.outputs import reveal_output
from specs.serializers import (
    BlueprintSerializer,
    EffectiveSerializer,
    OutputSerializer,
    OwnBlueprintRequestSerializer,
    OwnBlueprintSerializer,
    RevisionSerializer,
    RevisionSummarySerializer,
    SourceRequestSerializer,
    SpecRequestSerializer,
    SpecSerializer,
    VariableInput,
    VariableSetRequestSerializer,
    VariableSetSerializer,
    blueprint_json,
    comparison_json,
    effective_json,
)
from specs.variable_sets import VariableAssignment
from specs.variables import CATEGORIES, Bundle, bundle_of, empty_bundle, set_plain

SETTINGS = services.SETTINGS


class SpecsView(APIView):
    @extend_schema(responses=SpecSerializer(many=True))
    def get(self, request: Request) -> Response:
        """The specs of the organization named by `organization`."""
        organization = organization_to_view(request.user, request.query_params.get("organization", ""))
        return Response({"data": SpecSerializer(selectors.specs_of(organization), many=True).data})

    @extend_schema(request=SpecRequestSerializer, responses={201: SpecSerializer})
    def post(self, request: Request) -> Response:
        """Create a Spec with its first revision."""
        body = validate_body(SpecRequestSerializer(data=request.data))
        organization = access.organization_to_manage_specs(request.user, body["organization"])
        spec = services.create_spec(
            organization=organization,
            name=body["name"],
            slug=body["slug"],
            source=source_of(body["source"]),
            pool_id=pool_of(organization, body["pool"]).pk,
            author=person(request),
            bundle=_plain_bundle(body),
            sensitive={
                "variables": body["sensitive_variables"],
                "environment": body["sensitive_environment"],
            },
            settings=require_object(body["settings"], "settings"),
        )
        return Response(SpecSerializer(spec).data, status=201, headers={"Location": f"/api/specs/{spec.pk}"})


class SpecView(APIView):
    @extend_schema(responses=SpecSerializer)
    def get(self, request: Request, spec_id: UUID) -> Response:
        return Response(SpecSerializer(access.spec_to_view_by_id(request.user, spec_id)).data)

    @extend_schema(request=dict[str, Any], responses=SpecSerializer)
    def patch(self, request: Request, spec_id: UUID) -> Response:
        """Change settings or the pool; the source and the variables have addresses of their own."""
        settings = dict(require_object(request.data, "body"))
        pool = settings.pop("pool", None)
        spec = access.spec_to_change_by_id(request.user, spec_id, settings)
        new_pool = None if pool is None else pool_of(spec.organization, str(pool))
        services.change_settings(spec=spec, settings=settings, changed_by=person(request), pool=new_pool)
        return Response(SpecSerializer(spec).data)


class SourceView(APIView):
    @extend_schema(request=SourceRequestSerializer, responses=RevisionSerializer)
    def put(self, request: Request, spec_id: UUID) -> Response:
        """Create a revision with other files."""
        spec = access.spec_to_manage_by_id(request.user, spec_id)
        body = validate_body(SourceRequestSerializer(data=request.data))
        revision = services.change_source(
            spec=spec,
            source=source_of(body["source"]),
            author=person(request),
            message=body["message"],
            based_on=body["based_on"],
        )
        return Response(RevisionSerializer(revision).data)


class VariablesView(APIView):
    @extend_schema(responses=EffectiveSerializer(many=True))
    def get(self, request: Request, spec_id: UUID) -> Response:
        """Every variable as the next job would see it, where its value comes from, what it overrides."""
        spec = access.spec_to_view_by_id(request.user, spec_id)
        return Response({"data": [effective_json(variable) for variable in selectors.variables_of(spec)]})


class VariableView(APIView):
    @extend_schema(request=VariableInput, responses=RevisionSerializer)
    def put(self, request: Request, spec_id: UUID, name: str) -> Response:
        """Set a variable. A sensitive one can be replaced or removed from then on, not read."""
        spec = access.spec_to_manage_by_id(request.user, spec_id)
        body = validate_body(VariableInput(data=request.data))
        if "value" not in body:
            raise BadInput("value: is required", field="value")
        revision = services.change_variable(spec=spec, name=name, author=person(request), **body)
        return Response(RevisionSerializer(revision).data)

    @extend_schema(responses=RevisionSerializer)
    def delete(self, request: Request, spec_id: UUID, name: str) -> Response:
        spec = access.spec_to_manage_by_id(request.user, spec_id)
        category = request.query_params.get("category", "variables")
        revision = services.remove_variable(spec=spec, category=category, name=name, author=person(request))
        return Response(RevisionSerializer(revision).data)


class RevisionsView(APIView):
    @extend_schema(
        parameters=[OpenApiParameter("before", int, description="Only those with a lower number.")],
        responses=RevisionSummarySerializer(many=True),
    )
    def get(self, request: Request, spec_id: UUID) -> Response:
        """The newest hundred, or the hundred before the number given."""
        spec = access.spec_to_view_by_id(request.user, spec_id)
        before = _revision_number(request, "before") if "before" in request.query_params else None
        revisions = selectors.revisions_of(spec, before=before, limit=100)
        return Response({"data": RevisionSummarySerializer(revisions, many=True).data})


class RevisionView(APIView):
    @extend_schema(responses=RevisionSerializer)
    def get(self, request: Request, spec_id: UUID, number: int) -> Response:
        """One revision with its document, with digests in place of sensitive values."""
        spec = access.spec_to_view_by_id(request.user, spec_id)
        return Response(RevisionSerializer(selectors.revision_of(spec, number)).data)


class ComparisonView(APIView):
    @extend_schema(
        parameters=[OpenApiParameter("from", int, required=True), OpenApiParameter("to", int, required=True)],
        responses=OpenApiTypes.OBJECT,
    )
    def get(self, request: Request, spec_id: UUID) -> Response:
        """The differences between two revisions. A sensitive variable is listed without its values."""
        spec = access.spec_to_view_by_id(request.user, spec_id)
        older, newer = (_revision_number(request, name) for name in ("from", "to"))
        comparison = compare(selectors.revision_of(spec, older), selectors.revision_of(spec, newer))
        return Response(comparison_json(comparison))


class RestoreView(APIView):
    @extend_schema(request=None, responses=RevisionSerializer)
    def post(self, request: Request, spec_id: UUID, number: int) -> Response:
        """Create a revision with the content of an older one."""
        spec = access.spec_to_manage_by_id(request.user, spec_id)
        revision = services.restore_revision(spec=spec, number=number, author=person(request))
        return Response(RevisionSerializer(revision).data)


class OutputsView(APIView):
    @extend_schema(responses=OutputSerializer(many=True))
    def get(self, request: Request, spec_id: UUID) -> Response:
        """The outputs that the last deploy reported."""
        spec = access.spec_to_view_by_id(request.user, spec_id)
        return Response({"data": OutputSerializer(selectors.outputs_of(spec), many=True).data})


class RevealView(APIView):
    @extend_schema(request=None, responses=OpenApiTypes.OBJECT)
    def post(self, request: Request, spec_id: UUID, name: str) -> Response:
        """Reveal the value of a sensitive output, and record who asked."""
        spec = access.spec_to_read_secrets_by_id(request.user, spec_id)
        value = reveal_output(spec=spec, name=name, revealed_to=person(request))
        return Response({"name": name, "value": value}, headers={"Cache-Control": "no-store"})


class VariableSetsView(APIView):
    @extend_schema(responses=VariableSetSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        organization = organization_to_view(request.user, slug)
        variable_set_rows = organization.variable_sets.prefetch_related("specs").order_by("name")
        return Response({"data": VariableSetSerializer(variable_set_rows, many=True).data})

    @extend_schema(request=VariableSetRequestSerializer, responses=VariableSetSerializer)
    def put(self, request: Request, slug: str) -> Response:
        """Create the variable set of this name, or replace its content."""
        organization = access.organization_to_manage_variable_sets(request.user, slug)
        body = validate_body(VariableSetRequestSerializer(data=request.data))
        existing = organization.variable_sets.filter(name=body["name"]).first()
        assignments = [
            VariableAssignment(name=name, keep="value" not in fields, **fields)
            for name, fields in body.pop("variables").items()
        ]
        bundle = variable_sets.build_bundle(
            assignments,
            organization=organization,
            previous=bundle_of(existing.variables) if existing else None,
        )
        saved = variable_sets.save_variable_set(
            organization=organization, bundle=bundle, saved_by=person(request), **body
        )
        return Response(VariableSetSerializer(saved).data)


class VariableSetView(APIView):
    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        organization = access.organization_to_manage_variable_sets(request.user, slug)
        variable_set = variable_sets.variable_set_of(organization, name)
        variable_sets.delete_variable_set(variable_set=variable_set, deleted_by=person(request))
        return Response(status=204)


class BlueprintsView(APIView):
    @extend_schema(responses=BlueprintSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The catalogue: the organization's own blueprints and the built-in ones."""
        organization = organization_to_view(request.user, slug)
        return Response(
            {"data": [blueprint_json(blueprint) for blueprint in catalogue.catalogue_of(organization)]}
        )

    @extend_schema(request=OwnBlueprintRequestSerializer, responses={201: OwnBlueprintSerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Add a folder of a Git repository to the organization's catalogue."""
        organization = access.organization_to_manage_blueprints(request.user, slug)
        body = validate_body(OwnBlueprintRequestSerializer(data=request.data))
        blueprint = catalogue.add_blueprint(organization=organization, added_by=person(request), **body)
        return Response(OwnBlueprintSerializer(blueprint).data, status=201)


class BlueprintView(APIView):
    @extend_schema(
        operation_id="organizations_blueprints_refresh", request=None, responses=OwnBlueprintSerializer
    )
    def post(self, request: Request, slug: str, name: str) -> Response:
        """Read one of the organization's own blueprints again, at the current commit of its ref."""
        organization = access.organization_to_manage_blueprints(request.user, slug)
        blueprint = catalogue.own_blueprint(organization, name)
        refreshed = catalogue.refresh_blueprint(blueprint=blueprint, refreshed_by=person(request))
        return Response(OwnBlueprintSerializer(refreshed).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, slug: str, name: str) -> Response:
        organization = access.organization_to_manage_blueprints(request.user, slug)
        blueprint = catalogue.own_blueprint(organization, name)
        catalogue.remove_blueprint(blueprint=blueprint, removed_by=person(request))
        return Response(status=204)


def source_of(source: Any) -> dict[str, Any]:
    """Return the source as the services expect it; unpack an archive first."""
    fields = require_object(source, "source")
    if fields.get("kind") == "inline" and "archive" in fields:
        try:
            content = base64.b64decode(str(fields["archive"]), validate=True)
        except (binascii.Error, ValueError) as error:
            raise BadInput("source.archive: expected base64", field="source.archive") from error
        return {"kind": "inline", "files": read_archive(content)}
    return fields


def pool_of(organization: Any, name: str) -> Pool:
    if name == DEFAULT_POOL:
        return default_pool(organization)
    pool = Pool.objects.filter(organization=organization, name=name).first()
    if pool is None:
        raise NotFound(f"There is no pool {name!r}.")
    return pool


def _plain_bundle(body: dict[str, Any]) -> Bundle:
    bundle = empty_bundle()
    for category in CATEGORIES:
        for name, value in body[category].items():
            bundle = set_plain(bundle, category=category, name=name, value=value)
    return bundle


def _revision_number(request: Request, name: str) -> int:
    if (number := whole_number(request.query_params.get(name))) is None:
        raise BadInput(f"{name}: expected the number of a revision", field=name)
    return number


def require_object(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(f"{name}: expected an object", field=name)
    return value
