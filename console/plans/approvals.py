"""Approvals: how many a plan needs, who gave one that counts, and who may.

An approval counts while it is bound to the plan's fingerprint, the plan still fits, and the person may still
operate the spec. A new plan starts at zero.
"""

from dataclasses import dataclass

from console.accounts.models import Membership, User
from console.accounts.rights import Right, roles_with
from console.errors import GateClosed
from console.plans.destroy_guard import guard_reasons
from console.plans.models import Approval, Plan
from console.plans.staleness import staleness_of


@dataclass(frozen=True, slots=True)
class ApprovalStanding:
    """How far a plan's approvals are."""

    needed: int
    given: list[Approval]
    #: Given once, and withdrawn since by what changed.
    void: list[Approval]
    #: Who may still give one.
    may_approve: list[User]

    @property
    def missing(self) -> int:
        return max(0, self.needed - len(self.given))


def approvals_needed(plan: Plan) -> int:
    """The spec's own number where it is protected, and what its gates ask for."""
    spec = plan.spec
    by_gates = max((gate.get("count", 1) for gate in spec.gates if gate["kind"] == "approval"), default=0)
    if not spec.protected:
        return by_gates
    return max(by_gates, spec.required_approvals, 1 if guard_reasons(plan) else 0)


def approval_standing(plan: Plan) -> ApprovalStanding:
    operators = _operators(plan)
    still_fits = plan.spent_by_id is not None or staleness_of(plan) is None
    given: list[Approval] = []
    void: list[Approval] = []
    for approval in plan.approvals.select_related("approved_by").order_by("approved_at"):
        counts = still_fits and approval.fingerprint == plan.fingerprint and approval.approved_by in operators
        (given if counts else void).append(approval)
    done = {approval.approved_by_id for approval in given}
    asked = plan.job.requested_by_id
    return ApprovalStanding(
        needed=approvals_needed(plan),
        given=given,
        void=void,
        may_approve=[person for person in operators if person.pk not in done and person.pk != asked],
    )


def require_approvals(plan: Plan, *, applied_by: User | None) -> None:
    """Refuse while people are missing who said yes to exactly this plan.

    Of a plan that Slipway asked for itself, whoever applies it is the requester; their own yes does not
    count.
    """
    needed = approvals_needed(plan)
    if not needed:
        return
    asked = plan.job.requested_by or applied_by
    given = [one for one in approval_standing(plan).given if one.approved_by != asked]
    if len(given) < needed:
        who = f"An operator other than {asked}" if asked else "An operator"
        raise GateClosed(
            f"Plan {plan.number} has {len(given)} of {needed} approvals. {who} can approve it.",
            gate="approval",
            approvals_given=len(given),
            approvals_needed=needed,
        )


def _operators(plan: Plan) -> list[User]:
    """Everybody who may operate the plan's organization, by name."""
    memberships = Membership.objects.filter(
        organization_id=plan.organization_id, role__in=roles_with(Right.APPROVE), user__is_active=True
    )
    return [one.user for one in memberships.select_related("user").order_by("user__username")]
