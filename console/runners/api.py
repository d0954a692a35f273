"""The runners API for people and programs: list, registration tokens, drain and revocation."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.access import organization_to_view
from console.accounts.authentication import person
from console.runners import access, services
from console.runners.models import DEFAULT_POOL, Runner
from console.runners.selectors import runners_of


class RunnerSerializer(serializers.ModelSerializer[Runner]):
    pools = serializers.SlugRelatedField("name", many=True, read_only=True)  # type: ignore[var-annotated]
    busy_slots = serializers.IntegerField(read_only=True)

    class Meta:
        model = Runner
        fields = (
            "id", "name", "status", "pools", "version", "terraform_version", "platform", "slots",
            "busy_slots", "types", "draining_since", "last_contact_at", "stopped_at", "created_at",
        )  # fmt: skip


class RunnersView(APIView):
    @extend_schema(responses=RunnerSerializer(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The organization's runners, those online first."""
        organization = organization_to_view(request.user, slug)
        return Response({"data": RunnerSerializer(runners_of(organization), many=True).data})


class RevokeView(APIView):
    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, slug: str, runner_id: UUID) -> Response:
        """Refuse every request of the runner from now on. Its jobs end with its next heartbeat."""
        runner = access.runner_to_manage(request.user, slug, runner_id)
        services.revoke_runner(runner=runner, revoked_by=person(request))
        return Response(status=204)


class RunnerDrainView(APIView):
    class RunnerDrainRequest(serializers.Serializer[Any]):
        draining = serializers.BooleanField()

    @extend_schema(request=RunnerDrainRequest, responses={204: None})
    def put(self, request: Request, slug: str, runner_id: UUID) -> Response:
        """Pause or resume new jobs for the runner. Running jobs will finish."""
        runner = access.runner_to_manage(request.user, slug, runner_id)
        body = self.RunnerDrainRequest(data=request.data)
        body.is_valid(raise_exception=True)
        draining = body.validated_data["draining"]
        services.set_runner_drain(runner=runner, draining=draining, requested_by=person(request))
        return Response(status=204)


class RegistrationTokensView(APIView):
    class TokenRequest(serializers.Serializer[Any]):
        pool = serializers.SlugField(default=DEFAULT_POOL)

    class TokenAnswer(serializers.Serializer[Any]):
        token = serializers.CharField(help_text="Shown once. One runner can register with it, for an hour.")
        pool = serializers.SlugField()

    @extend_schema(request=TokenRequest, responses={201: TokenAnswer})
    def post(self, request: Request, slug: str) -> Response:
        """Create a token with which one new runner joins a pool."""
        organization = access.organization_to_manage_runners(request.user, slug)
        body = self.TokenRequest(data=request.data)
        body.is_valid(raise_exception=True)
        pool = access.pool_of(organization, body.validated_data["pool"])
        token = services.create_registration_token(
            organization=organization, pool=pool, created_by=person(request)
        )
        return Response({"token": token, "pool": pool.name}, status=201)
