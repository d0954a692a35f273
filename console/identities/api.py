"""The API of identities for people and programs. Testing and refreshing are jobs."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.access import organization_to_view
from console.accounts.authentication import person
from console.identities import access, selectors, services
from console.identities.jobs import request_connection_test, request_fetch
from console.identities.models import CloudIdentity
from console.identities.resources import find_resources
from console.identities.serializers import (
    IdentityChangeSerializer,
    IdentityRequestSerializer,
    IdentitySerializer,
    ResourceQuerySerializer,
    resource_json,
)
from console.identities.services import Allowed
from console.identities.trust import setup_snippets
from console.jobs.api import accepted
from console.jobs.serializers import JobDetailSerializer
from console.parsers import validate_body


class IdentitiesView(APIView):
    @extend_schema(responses=IdentitySerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The organization's cloud identities by name."""
        organization = organization_to_view(request.user, slug)
        identities = selectors.identities_of(organization)
        return Response({"data": IdentitySerializer(identities, many=True).data})

    @extend_schema(request=IdentityRequestSerializer, responses={201: IdentitySerializer})
    def post(self, request: Request, slug: str) -> Response:
        """Create an identity. Admins only; the answer has the external id, where the cloud asks for one."""
        organization = access.organization_to_manage_identities(request.user, slug)
        body = validate_body(IdentityRequestSerializer(data=request.data))
        allowed = Allowed(**body.pop("allowed", {}))
        identity = services.create_identity(
            organization=organization, created_by=person(request), allowed=allowed, **body
        )
        location = f"/api/identities/{identity.pk}"
        return Response(IdentitySerializer(identity).data, status=201, headers={"Location": location})


class IdentityView(APIView):
    @extend_schema(responses=IdentitySerializer)
    def get(self, request: Request, identity_id: UUID) -> Response:
        return Response(IdentitySerializer(access.identity_to_view_by_id(request.user, identity_id)).data)

    @extend_schema(request=IdentityChangeSerializer, responses=IdentitySerializer)
    def patch(self, request: Request, identity_id: UUID) -> Response:
        """Change what is given. Admins only; plans that were made with other settings become stale."""
        identity = access.identity_to_manage_by_id(request.user, identity_id)
        body = validate_body(IdentityChangeSerializer(data=request.data))
        identity = services.change_identity(
            identity=identity,
            changed_by=person(request),
            name=body.get("name"),
            settings=body.get("settings"),
            allowed=_merge_restrictions(identity, body.get("allowed")),
        )
        return Response(IdentitySerializer(identity).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, identity_id: UUID) -> Response:
        """Delete an identity that no Spec uses. Admins only."""
        identity = access.identity_to_manage_by_id(request.user, identity_id)
        services.delete_identity(identity=identity, deleted_by=person(request))
        return Response(status=204)


class SetupView(APIView):
    @extend_schema(responses={200: dict[str, Any]})
    def get(self, request: Request, identity_id: UUID) -> Response:
        """Return what to run in the account: commands, Terraform, and what else the cloud takes."""
        identity = access.identity_to_view_by_id(request.user, identity_id)
        return Response({"data": [asdict(snippet) for snippet in setup_snippets(identity)]})


class ResourcesView(APIView):
    @extend_schema(parameters=[ResourceQuerySerializer], responses={200: dict[str, Any]})
    def get(self, request: Request, identity_id: UUID) -> Response:
        """List the discovered resources, and of each list its age and its error."""
        identity = access.identity_to_view_by_id(request.user, identity_id)
        query = validate_body(ResourceQuerySerializer(data=request.query_params))
        page, limit = query["page"], query["limit"]
        matches = find_resources(
            identity_ids=[identity.pk],
            kind=query.get("kind"),
            region=query.get("region"),
            search=query["q"],
            offset=(page - 1) * limit,
            limit=limit + 1,
        )
        return Response(
            {
                "data": [resource_json(match) for match in matches[:limit]],
                "pagination": {"page": page, "limit": limit, "has_more": len(matches) > limit},
                "lists": _lists(identity),
            }
        )


def _lists(identity: CloudIdentity) -> list[dict[str, Any]]:
    fields = ("region", "kind", "resource_count", "fetched_at", "error", "failed_at")
    return list(identity.lists.order_by("region", "kind").values(*fields))


def _merge_restrictions(identity: CloudIdentity, changes: dict[str, Any] | None) -> Allowed | None:
    """Merge the given restrictions into the stored ones."""
    if changes is None:
        return None
    return Allowed(**{**asdict(selectors.allowed_names(identity)), **changes})


class TestView(APIView):
    @extend_schema(request=None, responses={202: JobDetailSerializer})
    def post(self, request: Request, identity_id: UUID) -> Response:
        """Queue a CONNECTION_TEST; when it passes, resources are scanned automatically. Operators."""
        identity = access.identity_to_test_by_id(request.user, identity_id)
        return accepted(request_connection_test(identity=identity, requested_by=person(request)))


class RefreshView(APIView):
    @extend_schema(request=None, responses={202: JobDetailSerializer})
    def post(self, request: Request, identity_id: UUID) -> Response:
        """Queue a FETCH_RESOURCES. Operators."""
        identity = access.identity_to_test_by_id(request.user, identity_id)
        return accepted(request_fetch(identity=identity, requested_by=person(request)))
