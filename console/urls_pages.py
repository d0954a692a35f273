"""The addresses of the pages."""

from django.urls import path

from console import pages
from console.accounts import account_views as account
from console.accounts import settings_views as organization
from console.accounts import views as accounts
from console.audit import views as audit
from console.identities import views as identities
from console.jobs import creation
from console.jobs import identity_views as identity_jobs
from console.jobs import list_views as job_list
from console.jobs import views as jobs
from console.overview import views as overview
from console.plans import views as plans
from console.runners import views as runners
from console.state import views as state
from specs import shared_views as shared
from specs import views as specs

urlpatterns = [
    path("", pages.home, name="home"),
    path("sign-in", accounts.SignIn.as_view(), name="sign-in"),
    path("sign-out", accounts.SignOut.as_view(), name="sign-out"),
    path("account/", account.account, name="account"),
    path("account/password", account.change_password, name="account-password"),
    path("account/theme", account.choose_theme, name="account-theme"),
    path("account/sign-out-everywhere", account.sign_out_everywhere, name="account-sessions"),
    path("join/<str:token>", account.join, name="join"),
    path("<slug:org>/", overview.dashboard, name="dashboard"),
    path("<slug:org>/running", overview.running, name="dashboard-running"),
    path("<slug:org>/start/", overview.start, name="start"),
    path("<slug:org>/start/skip", overview.skip, name="start-skip"),
    path("<slug:org>/start/close", overview.close, name="start-close"),
    path("<slug:org>/search", overview.search, name="search"),
    path("<slug:org>/audit/", audit.audit, name="audit"),
    path("<slug:org>/audit/export.<str:form>", audit.export, name="audit-export"),
    path("<slug:org>/settings/", organization.general, name="settings"),
    path("<slug:org>/settings/name", organization.rename, name="settings-rename"),
    path("<slug:org>/settings/drain", organization.drain, name="settings-drain"),
    path(
        "<slug:org>/settings/drain/installation",
        organization.drain_installation,
        name="settings-drain-installation",
    ),
    path("<slug:org>/settings/members/", organization.invite, name="members"),
    path(
        "<slug:org>/settings/invitations/<uuid:invitation_id>/withdraw",
        organization.withdraw_invitation,
        name="invitation-withdraw",
    ),
    path(
        "<slug:org>/settings/members/<uuid:membership_id>/role", organization.change_role, name="member-role"
    ),
    path(
        "<slug:org>/settings/members/<uuid:membership_id>/remove",
        organization.remove_member,
        name="member-remove",
    ),
    path("<slug:org>/settings/tokens/", organization.tokens, name="tokens"),
    path("<slug:org>/settings/tokens/<uuid:token_id>/revoke", organization.revoke_token, name="token-revoke"),
    path("<slug:org>/specs/", overview.specs, name="specs"),
    path("<slug:org>/specs/new/", specs.new, name="spec-new"),
    path("<slug:org>/specs/new/variables", specs.variable_fields, name="spec-fields"),
    path("<slug:org>/specs/new/create", creation.create_spec, name="spec-create"),
    path("<slug:org>/specs/<slug:spec>/", plans.spec, name="spec"),
    path("<slug:org>/specs/<slug:spec>/source/", specs.source, name="spec-source"),
    path("<slug:org>/specs/<slug:spec>/variables/", specs.variables, name="spec-variables"),
    path("<slug:org>/specs/<slug:spec>/add-variable", specs.variable, name="spec-variable-add"),
    path("<slug:org>/specs/<slug:spec>/variables/<str:name>", specs.variable, name="spec-variable"),
    path(
        "<slug:org>/specs/<slug:spec>/variables/<str:name>/remove",
        specs.remove_variable,
        name="spec-variable-remove",
    ),
    path("<slug:org>/specs/<slug:spec>/revisions/", specs.revisions, name="spec-revisions"),
    path("<slug:org>/specs/<slug:spec>/revisions/compare", specs.comparison, name="spec-comparison"),
    path(
        "<slug:org>/specs/<slug:spec>/revisions/<int:number>/restore", specs.restore, name="revision-restore"
    ),
    path("<slug:org>/specs/<slug:spec>/settings/", specs.settings, name="spec-settings"),
    path("<slug:org>/specs/<slug:spec>/archive", overview.archive, name="spec-archive"),
    path("<slug:org>/specs/<slug:spec>/unarchive", overview.unarchive, name="spec-unarchive"),
    path("<slug:org>/specs/<slug:spec>/outputs/<str:name>/reveal", specs.reveal, name="output-reveal"),
    path("<slug:org>/variable-sets/", shared.variable_sets, name="variable-sets"),
    path("<slug:org>/variable-sets/<uuid:set_id>/", shared.variable_set, name="variable-set"),
    path("<slug:org>/variable-sets/<uuid:set_id>/delete", shared.delete_set, name="variable-set-delete"),
    path("<slug:org>/variable-sets/<uuid:set_id>/variable", shared.set_variable, name="set-variable"),
    path(
        "<slug:org>/variable-sets/<uuid:set_id>/variable/remove",
        shared.remove_set_variable,
        name="set-variable-remove",
    ),
    path("<slug:org>/blueprints/", shared.blueprints, name="blueprints"),
    path("<slug:org>/blueprints/<slug:name>/refresh", shared.refresh_blueprint, name="blueprint-refresh"),
    path("<slug:org>/blueprints/<slug:name>/remove", shared.remove_blueprint, name="blueprint-remove"),
    path("<slug:org>/specs/<slug:spec>/plan", jobs.request_plan, name="spec-plan"),
    path("<slug:org>/specs/<slug:spec>/destroy", plans.destroy, name="spec-destroy"),
    path("<slug:org>/specs/<slug:spec>/destroy/plan", plans.plan_destroy, name="spec-plan-destroy"),
    path("<slug:org>/specs/<slug:spec>/revisions/<int:number>/plan", plans.look_at, name="revision-plan"),
    path("<slug:org>/specs/<slug:spec>/resources", overview.resources, name="spec-resources"),
    path("<slug:org>/specs/<slug:spec>/plans/", overview.plans, name="spec-plans"),
    path("<slug:org>/specs/<slug:spec>/plans/<int:number>/", plans.plan, name="plan"),
    path("<slug:org>/specs/<slug:spec>/plans/<int:number>/raw.json", plans.raw, name="plan-raw"),
    path("<slug:org>/specs/<slug:spec>/plans/<int:number>/apply", plans.apply, name="plan-apply"),
    path("<slug:org>/specs/<slug:spec>/plans/<int:number>/approve", plans.approve, name="plan-approve"),
    path("<slug:org>/specs/<slug:spec>/plans/<int:number>/withdraw", plans.withdraw, name="plan-withdraw"),
    path("<slug:org>/specs/<slug:spec>/state/", state.state, name="state"),
    path("<slug:org>/specs/<slug:spec>/state/compare", state.compare, name="state-compare"),
    path("<slug:org>/specs/<slug:spec>/state/unlock", state.unlock, name="state-unlock"),
    path("<slug:org>/specs/<slug:spec>/state/upload", state.upload, name="state-upload"),
    path("<slug:org>/specs/<slug:spec>/state/backend", state.backend, name="state-backend"),
    path("<slug:org>/specs/<slug:spec>/state/<int:serial>/", state.version, name="state-version"),
    path("<slug:org>/specs/<slug:spec>/state/<int:serial>/resource", state.resource, name="state-resource"),
    path("<slug:org>/specs/<slug:spec>/state/<int:serial>/download", state.download, name="state-download"),
    path(
        "<slug:org>/specs/<slug:spec>/state/<int:serial>/roll-back", state.roll_back, name="state-roll-back"
    ),
    path("<slug:org>/state/", state.states, name="states"),
    path("<slug:org>/state/backend", state.organization_backend, name="states-backend"),
    path("<slug:org>/jobs/", job_list.jobs, name="jobs"),
    path("<slug:org>/jobs/filters", job_list.save_filter, name="jobs-filter"),
    path(
        "<slug:org>/jobs/filters/<uuid:filter_id>/remove", job_list.remove_filter, name="jobs-filter-remove"
    ),
    path("<slug:org>/jobs/<int:number>/", jobs.job, name="job"),
    path("<slug:org>/jobs/<int:number>/header", jobs.header, name="job-header"),
    path("<slug:org>/jobs/<int:number>/cancel", jobs.cancel, name="job-cancel"),
    path("<slug:org>/jobs/<int:number>/retry", jobs.retry, name="job-retry"),
    path("<slug:org>/jobs/<int:number>/log.txt", jobs.log, name="job-log"),
    path("<slug:org>/jobs/<int:number>/graph", plans.job_graph, name="job-graph"),
    path("<slug:org>/jobs/<int:number>/export.json", jobs.export, name="job-export"),
    path(
        "<slug:org>/jobs/<int:number>/errored-states/<uuid:claim_id>",
        jobs.errored_state,
        name="job-errored-state",
    ),
    path("<slug:org>/runners/", runners.runners, name="runners"),
    path("<slug:org>/identities/", identities.identities, name="identities"),
    path("<slug:org>/identities/connect/", identities.connect, name="identity-connect"),
    path("<slug:org>/identities/options", identities.options, name="identity-options"),
    path("<slug:org>/identities/<slug:identity>/", identities.identity, name="identity"),
    path("<slug:org>/identities/<slug:identity>/setup/", identities.setup, name="identity-setup"),
    path("<slug:org>/identities/<slug:identity>/change/", identities.change, name="identity-change"),
    path("<slug:org>/identities/<slug:identity>/delete", identities.delete, name="identity-delete"),
    path("<slug:org>/identities/<slug:identity>/resources/", identities.resources, name="identity-resources"),
    path("<slug:org>/identities/<slug:identity>/test", identity_jobs.test_identity, name="identity-test"),
    path(
        "<slug:org>/identities/<slug:identity>/refresh",
        identity_jobs.refresh_identity,
        name="identity-refresh",
    ),
    path("<slug:org>/runners/add/", runners.add, name="runner-add"),
    path("<slug:org>/runners/add/<uuid:token_id>/", runners.waiting, name="runner-waiting"),
    path("<slug:org>/runners/<uuid:runner_id>/drain", runners.drain, name="runner-drain"),
    path("<slug:org>/runners/<uuid:runner_id>/revoke", runners.revoke, name="runner-revoke"),
]
