"""Approvals: how many a plan needs, which of those given count, and who can give one.

An approval counts while it is bound to the plan's fingerprint, the plan is fresh, and its author still has
the right to approve. A new plan needs new approvals.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from console.accounts.models import Membership, User
from console.accounts.rights import Right, roles_with
from console.errors import GateClosed
from console.plans.destroy_guard import guard_reasons, prefetch_losses
from console.plans.models import Approval, Plan
from console.plans.staleness import staleness_of
from specs.models import Spec


@dataclass(frozen=True, slots=True)
class ApprovalStanding:
    """The approvals of one plan, and what is missing."""

    needed: int
    given: list[Approval]
    #: Given once, and withdrawn since by what changed.
    void: list[Approval]
    #: Members who can still give one.
    may_approve: list[User]

    @property
    def missing(self) -> int:
        return max(0, self.needed - len(self.given))


def approvals_needed(plan: Plan) -> int:
    """Count what the Spec's gates ask for and, where it is protected, what its own number says."""
    needed = _needed_by_settings(plan.spec)
    if needed or not plan.spec.protected:
        return needed
    return 1 if guard_reasons(plan) else 0


def approval_standing(plan: Plan) -> ApprovalStanding:
    """Look at one plan, staleness included."""
    is_fresh = plan.spent_by_id is not None or staleness_of(plan) is None
    approvals = plan.approvals.select_related("approved_by").order_by("approved_at")
    return _standing(plan, approvals, _approvers(plan.organization_id), is_fresh=is_fresh)


def approval_standings(plans: list[Plan], *, organization_id: UUID) -> dict[UUID, ApprovalStanding]:
    """Look at a list of one organization's fresh plans, in a fixed number of statements."""
    by_plan: dict[UUID, list[Approval]] = {plan.pk: [] for plan in plans}
    approvals = Approval.objects.filter(plan_id__in=by_plan).select_related("approved_by")
    for approval in approvals.order_by("approved_at"):
        by_plan[approval.plan_id].append(approval)
    prefetch_losses(plan for plan in plans if plan.spec.protected and not _needed_by_settings(plan.spec))
    approvers = _approvers(organization_id)
    return {plan.pk: _standing(plan, by_plan[plan.pk], approvers, is_fresh=True) for plan in plans}


def require_approvals(plan: Plan, *, applied_by: User | None) -> None:
    """Refuse while the plan lacks approvals by other people.

    Where Slipway requested the plan itself, whoever applies it counts as the requester: their own approval
    does not count.
    """
    needed = approvals_needed(plan)
    if not needed:
        return
    requester = plan.job.requested_by or applied_by
    counted = [approval for approval in approval_standing(plan).given if approval.approved_by != requester]
    if len(counted) < needed:
        who = f"An operator other than {requester}" if requester else "An operator"
        raise GateClosed(
            f"Plan {plan.number} has {len(counted)} of {needed} approvals. {who} can approve it.",
            gate="approval",
            approvals_given=len(counted),
            approvals_needed=needed,
        )


def _standing(
    plan: Plan, approvals: Iterable[Approval], approvers: list[User], *, is_fresh: bool
) -> ApprovalStanding:
    """The rule itself, for one plan and for lists alike."""
    counted: list[Approval] = []
    void: list[Approval] = []
    for approval in approvals:
        counts = is_fresh and approval.fingerprint == plan.fingerprint and approval.approved_by in approvers
        (counted if counts else void).append(approval)
    done = {approval.approved_by_id for approval in counted} | {plan.job.requested_by_id}
    return ApprovalStanding(
        needed=approvals_needed(plan),
        given=counted,
        void=void,
        may_approve=[approver for approver in approvers if approver.pk not in done],
    )


def _needed_by_settings(spec: Spec) -> int:
    by_gates = max((gate.get("count", 1) for gate in spec.gates if gate["kind"] == "approval"), default=0)
    return max(by_gates, spec.required_approvals) if spec.protected else by_gates


def _approvers(organization_id: UUID) -> list[User]:
    """List everybody who has the right to approve, by name."""
    memberships = Membership.objects.filter(
        organization_id=organization_id, role__in=roles_with(Right.APPROVE), user__is_active=True
    )
    return [membership.user for membership in memberships.select_related("user").order_by("user__username")]
