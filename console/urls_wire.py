"""The URLs of the runners' endpoints, which `docs/runner-protocol.md` describes."""

from django.urls import path

from console.identities import wire as identities
from console.jobs import wire as jobs
from console.plans import wire as plans
from console.runners import wire as runners
from console.state import wire as state

urlpatterns = [
    path("api/runners/register", runners.register),
    path("api/runners/hello", runners.hello),
    path("api/runners/rotate", runners.rotate),
    path("api/runners/goodbye", runners.goodbye),
    path("api/jobs/claim", jobs.claim),
    path("api/jobs/<uuid:job_id>/heartbeat", jobs.heartbeat),
    path("api/jobs/<uuid:job_id>/status", jobs.status),
    path("api/jobs/<uuid:job_id>/logs", jobs.append_log),
    path("api/jobs/<uuid:job_id>/plan", plans.plan_file),
    path("api/jobs/<uuid:job_id>/errored-state", jobs.errored_state),
    path("api/jobs/<uuid:job_id>/identity-token", identities.identity_token),
    path("api/jobs/<uuid:job_id>/resources", identities.resources),
    path("api/state/<uuid:spec_id>", state.document, name="state"),
    path("api/state/<uuid:spec_id>/lock", state.lock, name="state-lock"),
]

handler404 = "console.middleware.not_found"
handler500 = "console.middleware.failed"
