"""An organization with something on every page: the pages, the forms, and who may use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.utils import timezone

from console.accounts.members import invite
from console.accounts.models import Membership, SavedFilter
from console.accounts.services import create_api_token, save_filter
from console.identities.models import CloudIdentity, ResourceList
from console.identities.services import create_identity
from console.jobs.models import Job
from console.plans.models import Plan
from console.runners.models import RegistrationToken, Runner
from console.runners.services import offer_registration
from console.state.services import import_state
from specs.models import Output, OwnBlueprint, Spec, VariableSet
from specs.variable_sets import save_variable_set
from specs.variables import empty_bundle
from tests.console.plans.review import state
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan


@dataclass(frozen=True)
class Sample:
    """Everything that addresses name."""

    tenant: Tenant
    spec: Spec
    plan: Plan
    queued: Job
    failed: Job
    runner: Runner
    variable_set: VariableSet
    blueprint: OwnBlueprint
    identity: CloudIdentity
    membership: Membership
    invitation: str
    invitation_id: str
    token_id: str
    registration: RegistrationToken
    saved: SavedFilter


def create_sample(console: Console, tenant: Tenant, *, name: str = "network") -> Sample:
    """Make one of everything; `name` is what people called it."""
    spec = tenant.spec
    Spec.objects.filter(pk=spec.pk).update(
        name=name, description=name, expires_at=timezone.now() + timedelta(days=2), deployed_at=timezone.now()
    )
    spec.refresh_from_db()
    import_state(spec=spec, body=state("one", serial=1), imported_by=tenant.operator)
    import_state(spec=spec, body=state("one", "two", serial=2), imported_by=tenant.operator)
    plan = a_plan(console, tenant, spec=spec, serial=2, lineage="3f9f2c1e-lineage")
    failed = _failed(console, tenant, name)
    queued = tenant.request(spec=spec)
    Output.objects.create(spec=spec, name="address", type="string", value=name)
    runner = Runner.objects.get(organization=tenant.organization, name=f"planner-{plan.job.number}")
    Runner.objects.filter(pk=runner.pk).update(name=name[:100])
    invitation, link = invite(
        organization=tenant.organization, role="viewer", note=name[:100], invited_by=tenant.admin
    )
    token, _ = create_api_token(user=tenant.viewer, organization=tenant.organization, name=name[:100])
    registration, _ = offer_registration(
        organization=tenant.organization, pool=tenant.pool, created_by=tenant.admin
    )
    return Sample(
        tenant=tenant,
        spec=spec,
        plan=plan,
        queued=queued,
        failed=failed,
        runner=runner,
        variable_set=save_variable_set(
            organization=tenant.organization, name=name[:100], bundle=empty_bundle(), saved_by=tenant.admin
        ),
        blueprint=_blueprint(tenant, name),
        identity=_identity(tenant, name),
        membership=Membership.objects.get(user=tenant.second_operator, organization=tenant.organization),
        invitation=link,
        invitation_id=str(invitation.pk),
        token_id=str(token.pk),
        registration=registration,
        saved=save_filter(
            user=tenant.viewer,
            organization=tenant.organization,
            page="jobs",
            name=name[:60],
            query="type=PLAN",
        ),
    )


def _blueprint(tenant: Tenant, name: str) -> OwnBlueprint:
    return OwnBlueprint.objects.create(
        organization=tenant.organization,
        name="own",
        url="https://git.example/own.git",
        ref="main",
        commit="0" * 40,
        meta={"title": name, "description": name},
    )


def printable(name: str) -> str:
    """Where a name is refused that has characters nobody can see."""
    return "".join(character for character in name if character.isprintable())


def _identity(tenant: Tenant, name: str) -> CloudIdentity:
    identity = create_identity(
        organization=tenant.organization, name=printable(name)[:60], provider="ambient", settings={},
        created_by=tenant.admin, slug="production",
    )  # fmt: skip
    ResourceList.objects.create(identity=identity, region="eu-west-1", kind="vpc", error=name)
    return identity


def _failed(console: Console, tenant: Tenant, name: str) -> Job:
    other = tenant.new_spec("broken")
    job = tenant.request(spec=other)
    runner = console.new_runner(tenant, f"unlucky-{job.number}")
    claim = runner.take_and_start()
    runner.log(claim, 1, f"before it broke: {name}")
    assert runner.fail(claim, error_message=name, fatal=True).status_code == 200
    return Job.objects.get(pk=job.pk)


@dataclass(frozen=True)
class Page:
    """An address, the least role that may ask it, and what a form would send with it."""

    path: str
    role: str
    data: dict[str, Any] | None = None
    #: The name of the address in `console/pages/urls.py`.
    name: str = field(default="", compare=False)

    @property
    def is_action(self) -> bool:
        return self.data is not None


def pages_of(sample: Sample) -> list[Page]:
    """Every address of the console that people open, by the least role that may."""
    org = f"/{sample.tenant.organization.slug}"
    spec, plan = (
        f"{org}/specs/{sample.spec.slug}",
        f"{org}/specs/{sample.spec.slug}/plans/{sample.plan.number}",
    )
    job, one_set = f"{org}/jobs/{sample.plan.job.number}", f"{org}/variable-sets/{sample.variable_set.pk}"
    identity = f"{org}/identities/{sample.identity.slug}"
    return [
        Page("/account/", "person", name="account"),
        Page(f"{org}/", "viewer", name="dashboard"),
        Page(f"{org}/running", "viewer", name="dashboard-running"),
        Page(f"{org}/start/", "viewer", name="start"),
        Page(f"{org}/search?q=o", "viewer", name="search"),
        Page(f"{org}/audit/", "admin", name="audit"),
        Page(f"{org}/audit/export.csv", "admin", name="audit-export"),
        Page(f"{org}/settings/", "viewer", name="settings"),
        Page(f"{org}/settings/members/", "viewer", name="members"),
        Page(f"{org}/settings/tokens/", "viewer", name="tokens"),
        Page(f"{org}/specs/", "viewer", name="specs"),
        Page(f"{org}/specs/new/", "operator", name="spec-new"),
        Page(f"{org}/specs/new/?source=blueprint&name=demo", "operator", name="spec-new"),
        Page(f"{org}/specs/new/?source=inline", "operator", name="spec-new"),
        Page(f"{org}/specs/new/?source=git", "operator", name="spec-new"),
        Page(f"{spec}/", "viewer", name="spec"),
        Page(f"{spec}/source/", "viewer", name="spec-source"),
        Page(f"{spec}/variables/", "viewer", name="spec-variables"),
        Page(f"{spec}/add-variable", "operator", name="spec-variable-add"),
        Page(f"{spec}/variables/zones", "operator", name="spec-variable"),
        Page(f"{spec}/revisions/", "viewer", name="spec-revisions"),
        Page(f"{spec}/revisions/compare?from=1&to=1", "viewer", name="spec-comparison"),
        Page(f"{spec}/settings/", "viewer", name="spec-settings"),
        Page(f"{spec}/archive", "admin", name="spec-archive"),
        Page(f"{spec}/destroy", "operator", name="spec-destroy"),
        Page(f"{spec}/plans/", "viewer", name="spec-plans"),
        Page(f"{plan}/", "viewer", name="plan"),
        Page(f"{plan}/raw.json", "viewer", name="plan-raw"),
        Page(f"{plan}/apply", "operator", name="plan-apply"),
        Page(f"{spec}/state/", "viewer", name="state"),
        Page(f"{spec}/state/compare", "viewer", name="state-compare"),
        Page(f"{spec}/state/backend", "admin", name="state-backend"),
        Page(f"{spec}/state/2/", "viewer", name="state-version"),
        Page(f"{spec}/state/2/resource?address=terraform_data.one", "viewer", name="state-resource"),
        Page(f"{spec}/state/2/download", "operator", name="state-download"),
        Page(f"{spec}/state/1/roll-back", "admin", name="state-roll-back"),
        Page(f"{org}/state/", "viewer", name="states"),
        Page(f"{org}/state/backend", "admin", name="states-backend"),
        Page(f"{org}/jobs/", "viewer", name="jobs"),
        Page(f"{job}/", "viewer", name="job"),
        Page(f"{org}/jobs/{sample.failed.number}/", "viewer", name="job"),
        Page(f"{org}/jobs/{sample.queued.number}/", "viewer", name="job"),
        Page(f"{job}/header", "viewer", name="job-header"),
        Page(f"{job}/log.txt", "viewer", name="job-log"),
        Page(f"{job}/export.json", "viewer", name="job-export"),
        Page(f"{job}/graph", "viewer", name="job-graph"),
        Page(f"{org}/runners/", "viewer", name="runners"),
        Page(f"{org}/runners/add/", "admin", name="runner-add"),
        Page(f"{org}/runners/add/{sample.registration.pk}/", "admin", name="runner-waiting"),
        Page(f"{org}/variable-sets/", "viewer", name="variable-sets"),
        Page(f"{one_set}/", "viewer", name="variable-set"),
        Page(f"{one_set}/variable", "admin", name="set-variable"),
        Page(f"{org}/blueprints/", "viewer", name="blueprints"),
        Page(f"{org}/identities/", "viewer", name="identities"),
        Page(f"{org}/identities/connect/", "admin", name="identity-connect"),
        Page(f"{org}/identities/connect/?provider=aws", "admin", name="identity-connect"),
        Page(f"{identity}/", "viewer", name="identity"),
        Page(f"{identity}/setup/", "viewer", name="identity-setup"),
        Page(f"{identity}/change/", "admin", name="identity-change"),
        Page(f"{identity}/resources/?kind=vpc&region=eu-west-1", "viewer", name="identity-resources"),
    ]


def actions_of(sample: Sample) -> list[Page]:
    """Every form of the console, by the least role that may send it."""
    org = f"/{sample.tenant.organization.slug}"
    spec, plan = (
        f"{org}/specs/{sample.spec.slug}",
        f"{org}/specs/{sample.spec.slug}/plans/{sample.plan.number}",
    )
    one_set, settings = f"{org}/variable-sets/{sample.variable_set.pk}", f"{org}/settings"
    identity = f"{org}/identities/{sample.identity.slug}"
    return [
        Page("/account/password", "person", {"current": "x"}, name="account-password"),
        Page("/account/sign-out-everywhere", "person", {}, name="account-sessions"),
        Page("/account/theme", "anyone", {"theme": "dark"}, name="account-theme"),
        Page(f"{org}/start/skip", "operator", {}, name="start-skip"),
        Page(f"{org}/start/close", "operator", {}, name="start-close"),
        Page(f"{settings}/name", "admin", {"name": "Ours"}, name="settings-rename"),
        Page(f"{settings}/drain", "admin", {"draining": "1"}, name="settings-drain"),
        Page(
            f"{settings}/drain/installation", "staff", {"draining": "1"}, name="settings-drain-installation"
        ),
        Page(f"{settings}/members/", "admin", {"role": "viewer"}, name="members"),
        Page(
            f"{settings}/invitations/{sample.invitation_id}/withdraw", "admin", {}, name="invitation-withdraw"
        ),
        Page(
            f"{settings}/members/{sample.membership.pk}/role", "admin", {"role": "viewer"}, name="member-role"
        ),
        Page(f"{settings}/members/{sample.membership.pk}/remove", "admin", {}, name="member-remove"),
        Page(f"{settings}/tokens/", "viewer", {"name": "laptop"}, name="tokens"),
        Page(f"{settings}/tokens/{sample.token_id}/revoke", "own", {}, name="token-revoke"),
        Page(f"{org}/specs/new/variables", "operator", {"source": "inline"}, name="spec-fields"),
        Page(f"{org}/specs/new/create", "operator", {"source": "inline"}, name="spec-create"),
        Page(f"{spec}/source/", "operator", {}, name="spec-source"),
        Page(f"{spec}/add-variable", "operator", {}, name="spec-variable-add"),
        Page(f"{spec}/variables/zones", "operator", {"value": '["a"]'}, name="spec-variable"),
        Page(f"{spec}/variables/zones/remove", "operator", {}, name="spec-variable-remove"),
        Page(f"{spec}/revisions/1/restore", "operator", {}, name="revision-restore"),
        Page(f"{spec}/settings/", "operator", {}, name="spec-settings"),
        Page(f"{spec}/archive", "admin", {"confirmation": "x"}, name="spec-archive"),
        Page(f"{spec}/unarchive", "admin", {}, name="spec-unarchive"),
        Page(f"{spec}/outputs/address/reveal", "operator", {}, name="output-reveal"),
        Page(f"{org}/variable-sets/", "admin", {"name": "another"}, name="variable-sets"),
        Page(f"{one_set}/", "admin", {"name": "another"}, name="variable-set"),
        Page(f"{one_set}/delete", "admin", {}, name="variable-set-delete"),
        Page(f"{one_set}/variable", "admin", {"name": "x", "value": "1"}, name="set-variable"),
        Page(f"{one_set}/variable/remove", "admin", {"name": "x"}, name="set-variable-remove"),
        Page(f"{org}/blueprints/", "admin", {}, name="blueprints"),
        Page(f"{org}/blueprints/own/remove", "admin", {}, name="blueprint-remove"),
        Page(f"{spec}/plan", "operator", {}, name="spec-plan"),
        Page(f"{spec}/destroy", "operator", {"confirmation": "x"}, name="spec-destroy"),
        Page(f"{spec}/destroy/plan", "operator", {}, name="spec-plan-destroy"),
        Page(f"{spec}/revisions/1/plan", "operator", {}, name="revision-plan"),
        Page(f"{plan}/apply", "operator", {}, name="plan-apply"),
        # The operator asked for this plan, so that only others may approve it.
        Page(f"{plan}/approve", "admin", {}, name="plan-approve"),
        Page(f"{plan}/withdraw", "operator", {}, name="plan-withdraw"),
        # There is no lock of the operator's own, which they could take away themselves.
        Page(f"{spec}/state/unlock", "admin", {"confirmation": "x"}, name="state-unlock"),
        Page(f"{spec}/state/upload", "operator", {}, name="state-upload"),
        Page(f"{spec}/state/backend", "admin", {"kind": "console"}, name="state-backend"),
        Page(f"{spec}/state/1/roll-back", "admin", {"confirmation": "x"}, name="state-roll-back"),
        Page(f"{org}/state/backend", "admin", {"kind": "console"}, name="states-backend"),
        Page(f"{org}/jobs/filters", "viewer", {"name": "mine", "type": "PLAN"}, name="jobs-filter"),
        Page(f"{org}/jobs/{sample.queued.number}/cancel", "operator", {}, name="job-cancel"),
        Page(f"{org}/jobs/{sample.failed.number}/retry", "operator", {}, name="job-retry"),
        Page(f"{org}/runners/add/", "admin", {"pool": "default"}, name="runner-add"),
        Page(f"{org}/runners/{sample.runner.pk}/drain", "admin", {"draining": "1"}, name="runner-drain"),
        Page(f"{org}/runners/{sample.runner.pk}/revoke", "admin", {}, name="runner-revoke"),
        Page(f"{org}/identities/connect/", "admin", {"provider": "ambient"}, name="identity-connect"),
        Page(f"{identity}/change/", "admin", {}, name="identity-change"),
        Page(f"{identity}/delete", "admin", {"confirmation": "x"}, name="identity-delete"),
        Page(f"{identity}/test", "operator", {}, name="identity-test"),
        Page(f"{identity}/refresh", "operator", {}, name="identity-refresh"),
    ]
