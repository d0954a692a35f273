"""The buttons by which identities are tested and their resources fetched again: both are jobs."""

from django.shortcuts import resolve_url

from console.identities.access import identity_to_test
from console.jobs.identity_jobs import request_connection_test, request_fetch
from console.pages import PageRequest, action


@action
def test_identity(request: PageRequest, org: str, identity: str) -> str:
    tested = identity_to_test(request.user, org, identity)
    request_connection_test(identity=tested, requested_by=request.user)
    return resolve_url("identity", org, identity)


@action
def refresh_identity(request: PageRequest, org: str, identity: str) -> str:
    fetched = identity_to_test(request.user, org, identity)
    request_fetch(identity=fetched, requested_by=request.user)
    return resolve_url("identity", org, identity)
