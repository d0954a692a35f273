"""The API by which identities are tested and their resources fetched again: both are jobs."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.authentication import person
from console.accounts.models import Role
from console.identities.access import identity_by_id
from console.jobs.api import accepted
from console.jobs.identity_jobs import request_connection_test, request_fetch
from console.jobs.serializers import JobDetailSerializer


class TestView(APIView):
    @extend_schema(request=None, responses={202: JobDetailSerializer})
    def post(self, request: Request, identity_id: UUID) -> Response:
        """Queue a CONNECTION_TEST; when it passes, resources are fetched by themselves. Operators."""
        identity = identity_by_id(request.user, identity_id, Role.OPERATOR)
        return accepted(request_connection_test(identity=identity, requested_by=person(request)))


class RefreshView(APIView):
    @extend_schema(request=None, responses={202: JobDetailSerializer})
    def post(self, request: Request, identity_id: UUID) -> Response:
        """Queue a FETCH_RESOURCES. Operators."""
        identity = identity_by_id(request.user, identity_id, Role.OPERATOR)
        return accepted(request_fetch(identity=identity, requested_by=person(request)))
