"""The state API for people and programs. Terraform itself speaks to `wire`."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.authentication import person
from console.parsers import validate_body
from console.state import access, services
from console.state.abandoned import abandoned_locks
from console.state.backends import backend_document, choose_backend, environment_of
from console.state.locks import force_unlock, held_lock, holder_name, lock_document
from console.state.models import Backend, BackendKind, StateVersion
from console.state.selectors import versions_of
from specs.models import Spec

#: How many versions one answer lists; `before` asks for older ones.
LISTED = 100


class StateVersionSerializer(serializers.ModelSerializer[StateVersion]):
    author = serializers.CharField(source="author.username", default=None)

    class Meta:
        model = StateVersion
        fields = (
            "serial", "lineage", "terraform_version", "resource_count", "size_bytes", "sha256", "origin",
            "job", "author", "restored_serial", "created_at",
        )  # fmt: skip


class StateView(APIView):
    class StateQuery(serializers.Serializer[Any]):
        before = serializers.IntegerField(min_value=0, required=False, help_text="Only older serials.")

    @extend_schema(parameters=[StateQuery], responses={200: dict[str, Any]})
    def get(self, request: Request, spec_id: UUID) -> Response:
        """Return a Spec's state backend, its lock, and its versions, newest first."""
        query = validate_body(self.StateQuery(data=request.query_params))
        return Response(
            _state_json(access.state_to_view_by_id(request.user, spec_id), before=query.get("before"))
        )


class NamedStateView(APIView):
    @extend_schema(responses={200: dict[str, Any]})
    def get(self, request: Request, slug: str, spec_slug: str) -> Response:
        """Return the same for a Spec by its name."""
        return Response(_state_json(access.state_to_view(request.user, slug, spec_slug)))


class UnlockView(APIView):
    class UnlockRequest(serializers.Serializer[Any]):
        lock_id = serializers.CharField(max_length=100)

    @extend_schema(request=UnlockRequest, responses={200: dict[str, Any]})
    def post(self, request: Request, spec_id: UUID) -> Response:
        """Release exactly this lock: one's own as an operator, anybody's as an admin."""
        spec = access.state_to_write_by_id(request.user, spec_id)
        access.require_may_unlock(person(request), spec)
        lock_id = validate_body(self.UnlockRequest(data=request.data))["lock_id"]
        force_unlock(spec=spec, unlocked_by=person(request), lock_id=lock_id)
        return Response(_state_json(spec))


class RollBackView(APIView):
    class RollBackRequest(serializers.Serializer[Any]):
        confirmation = serializers.CharField(max_length=100, help_text="The Spec's name.")

    @extend_schema(request=RollBackRequest, responses={201: StateVersionSerializer})
    def post(self, request: Request, spec_id: UUID, serial: int) -> Response:
        """Make an older version the newest again, as a new version with a higher serial. Admins only."""
        version = services.roll_back(
            spec=access.state_to_manage_by_id(request.user, spec_id),
            serial=serial,
            confirmation=validate_body(self.RollBackRequest(data=request.data))["confirmation"],
            requested_by=person(request),
        )
        return Response(StateVersionSerializer(version).data, status=201)


class BackendView(APIView):
    class BackendRequest(serializers.Serializer[Any]):
        kind = serializers.ChoiceField(choices=BackendKind.choices)
        settings = serializers.DictField(default=dict)
        environment = serializers.DictField(
            child=serializers.CharField(), required=False, help_text="Sealed; absent: what is sealed stays."
        )
        state_was_moved = serializers.BooleanField(default=False)

    @extend_schema(responses={200: dict[str, Any]})
    def get(self, request: Request, spec_id: UUID) -> Response:
        """Return the backend of the Spec's next job, and the names of its sealed variables."""
        spec = access.state_to_manage_by_id(request.user, spec_id)
        own = Backend.objects.filter(spec=spec).first()
        names = sorted(environment_of(own)) if own else []
        return Response({**backend_document(spec), "environment": names})

    @extend_schema(request=BackendRequest, responses={200: dict[str, Any]})
    def put(self, request: Request, spec_id: UUID) -> Response:
        """Keep the Spec's state there from its next job on. State does not move by itself."""
        spec = access.state_to_manage_by_id(request.user, spec_id)
        body = validate_body(self.BackendRequest(data=request.data))
        choose_backend(
            organization=spec.organization,
            spec=spec,
            chosen_by=person(request),
            **{"environment": None, **body},
        )
        return Response(backend_document(spec))


def _state_json(spec: Spec, *, before: int | None = None) -> dict[str, Any]:
    address = f"{settings.SLIPWAY_PUBLIC_URL}/api/state/{spec.pk}"
    lock = held_lock(spec)
    described_lock = lock and {
        "id": lock.lock_id,
        "holder": holder_name(lock),
        "document": lock_document(lock),
        "locked_at": lock.locked_at,
        "abandoned": lock in abandoned_locks(),
    }
    return {
        "spec": spec.pk,
        "name": spec.name,
        "backend": backend_document(spec),
        "address": address,
        "lock_address": f"{address}/lock",
        "lock": described_lock,
        "versions": StateVersionSerializer(versions_of(spec, before=before, limit=LISTED), many=True).data,
    }
