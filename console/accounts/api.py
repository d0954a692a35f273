"""The organization's own API: who am I, and draining."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.access import organization_to_manage_settings
from console.accounts.authentication import person
from console.accounts.services import set_organization_drain


class DrainView(APIView):
    class DrainRequest(serializers.Serializer[Any]):
        draining = serializers.BooleanField()

    @extend_schema(request=DrainRequest, responses={200: dict[str, Any]})
    def put(self, request: Request, slug: str) -> Response:
        """Stop or resume taking and handing out the organization's jobs."""
        organization = organization_to_manage_settings(request.user, slug)
        body = self.DrainRequest(data=request.data)
        body.is_valid(raise_exception=True)
        draining = body.validated_data["draining"]
        set_organization_drain(organization=organization, draining=draining, requested_by=person(request))
        return Response({"organization": slug, "draining": draining})
