"""The API for people and programs. `GET /api/openapi` describes it."""

from django.urls import path
from drf_spectacular.views import SpectacularAPIView

from console.accounts import api as accounts
from console.identities import api as identities
from console.jobs import api as jobs
from console.plans import api as plans
from console.runners import api as runners
from console.state import api as state
from specs import api as specs

urlpatterns = [
    path("openapi", SpectacularAPIView.as_view(), name="api-openapi"),
    path("jobs", jobs.JobsView.as_view(), name="api-jobs"),
    path("jobs/<uuid:job_id>", jobs.JobView.as_view(), name="api-job"),
    path("jobs/<uuid:job_id>/cancel", jobs.CancelView.as_view(), name="api-job-cancel"),
    path("jobs/<uuid:job_id>/retry", jobs.RetryView.as_view(), name="api-job-retry"),
    path("jobs/<uuid:job_id>/attempts", jobs.AttemptsView.as_view(), name="api-job-attempts"),
    path("jobs/<uuid:job_id>/events", jobs.EventsView.as_view(), name="api-job-events"),
    path("jobs/<uuid:job_id>/logs", jobs.LogsView.as_view(), name="api-job-logs"),
    path("jobs/<uuid:job_id>/logs/search", jobs.LogSearchView.as_view(), name="api-job-log-search"),
    path("jobs/<uuid:job_id>/logs/events", jobs.LogEventsView.as_view(), name="api-job-log-events"),
    path(
        "jobs/<uuid:job_id>/errored-states", jobs.ErroredStatesView.as_view(), name="api-job-errored-states"
    ),
    path(
        "jobs/<uuid:job_id>/errored-states/<uuid:claim_id>",
        jobs.ErroredStateView.as_view(),
        name="api-job-errored-state",
    ),
    path("specs", specs.SpecsView.as_view(), name="api-specs"),
    path("specs/<uuid:spec_id>", specs.SpecView.as_view(), name="api-spec"),
    path("specs/<uuid:spec_id>/source", specs.SourceView.as_view(), name="api-spec-source"),
    path("specs/<uuid:spec_id>/variables", specs.VariablesView.as_view(), name="api-spec-variables"),
    path("specs/<uuid:spec_id>/variables/<str:name>", specs.VariableView.as_view(), name="api-spec-variable"),
    path("specs/<uuid:spec_id>/revisions", specs.RevisionsView.as_view(), name="api-spec-revisions"),
    path(
        "specs/<uuid:spec_id>/revisions/<int:number>", specs.RevisionView.as_view(), name="api-spec-revision"
    ),
    path(
        "specs/<uuid:spec_id>/revisions/compare", specs.ComparisonView.as_view(), name="api-spec-comparison"
    ),
    path("specs/<uuid:spec_id>/outputs", specs.OutputsView.as_view(), name="api-spec-outputs"),
    path(
        "specs/<uuid:spec_id>/outputs/<str:name>/reveal", specs.RevealView.as_view(), name="api-output-reveal"
    ),
    path(
        "specs/<uuid:spec_id>/revisions/<int:number>/restore",
        specs.RestoreView.as_view(),
        name="api-spec-restore",
    ),
    path(
        "organizations/<slug:slug>/variable-sets", specs.VariableSetsView.as_view(), name="api-variable-sets"
    ),
    path(
        "organizations/<slug:slug>/variable-sets/<str:name>",
        specs.VariableSetView.as_view(),
        name="api-variable-set",
    ),
    path("organizations/<slug:slug>/blueprints", specs.BlueprintsView.as_view(), name="api-blueprints"),
    path(
        "organizations/<slug:slug>/blueprints/<slug:name>",
        specs.BlueprintView.as_view(),
        name="api-blueprint",
    ),
    path("specs/<uuid:spec_id>/state", state.StateView.as_view(), name="api-state"),
    path("specs/<uuid:spec_id>/state/unlock", state.UnlockView.as_view(), name="api-state-unlock"),
    path("specs/<uuid:spec_id>/state/backend", state.BackendView.as_view(), name="api-state-backend"),
    path(
        "specs/<uuid:spec_id>/state/<int:serial>/roll-back",
        state.RollBackView.as_view(),
        name="api-state-roll-back",
    ),
    path(
        "organizations/<slug:slug>/specs/<slug:spec_slug>/state",
        state.NamedStateView.as_view(),
        name="api-named-state",
    ),
    path("plans/<uuid:plan_id>", plans.PlanView.as_view(), name="api-plan"),
    path("plans/<uuid:plan_id>/deploy", plans.DeployView.as_view(), name="api-plan-deploy"),
    path("plans/<uuid:plan_id>/approvals", plans.ApprovalsView.as_view(), name="api-plan-approvals"),
    path("organizations/<slug:slug>/runners", runners.RunnersView.as_view(), name="api-runners"),
    path(
        "organizations/<slug:slug>/runners/<uuid:runner_id>/revoke",
        runners.RevokeView.as_view(),
        name="api-runner-revoke",
    ),
    path(
        "organizations/<slug:slug>/runners/<uuid:runner_id>/drain",
        runners.RunnerDrainView.as_view(),
        name="api-runner-drain",
    ),
    path(
        "organizations/<slug:slug>/registration-tokens",
        runners.RegistrationTokensView.as_view(),
        name="api-registration-tokens",
    ),
    path("organizations/<slug:slug>/identities", identities.IdentitiesView.as_view(), name="api-identities"),
    path("identities/<uuid:identity_id>", identities.IdentityView.as_view(), name="api-identity"),
    path("identities/<uuid:identity_id>/setup", identities.SetupView.as_view(), name="api-identity-setup"),
    path(
        "identities/<uuid:identity_id>/resources",
        identities.ResourcesView.as_view(),
        name="api-identity-resources",
    ),
    path("identities/<uuid:identity_id>/test", identities.TestView.as_view(), name="api-identity-test"),
    path(
        "identities/<uuid:identity_id>/refresh",
        identities.RefreshView.as_view(),
        name="api-identity-refresh",
    ),
    path("organizations/<slug:slug>/queue", jobs.QueueDepthView.as_view(), name="api-queue-depth"),
    path("organizations/<slug:slug>/drain", accounts.DrainView.as_view(), name="api-drain"),
]
