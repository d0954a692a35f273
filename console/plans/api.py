"""The plans API for people and programs."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.accounts.authentication import person
from console.jobs.api import accepted, idempotency_key
from console.jobs.serializers import JobDetailSerializer
from console.plans import access, services
from console.plans.approvals import approval_standing
from console.plans.costs import as_json, cost_of
from console.plans.destroy_guard import guard_reasons
from console.plans.models import Plan
from console.plans.staleness import staleness_of


class PlanSerializer(serializers.ModelSerializer[Plan]):
    """A plan, with everything that decides whether it can be applied now."""

    stale = serializers.SerializerMethodField(help_text="What changed since; empty while the plan is fresh.")
    approvals = serializers.SerializerMethodField()
    guard = serializers.SerializerMethodField(
        help_text="Why applying it asks for the Spec's name; empty when it does not."
    )
    refusal = serializers.SerializerMethodField(help_text="Why it cannot be applied now, confirmation aside.")
    cost = serializers.SerializerMethodField()

    class Meta:
        model = Plan
        fields = (
            "id", "number", "spec", "job", "created_at", "destroy", "speculative", "fingerprint",
            "snapshot_hash", "state_lineage", "state_serial", "terraform_version", "provider_lock_sha256",
            "file_sha256", "resource_count", "summary", "changes", "output_changes", "drift", "cost",
            "spent_at", "spent_by", "stale", "guard", "approvals", "refusal",
        )  # fmt: skip

    def get_stale(self, plan: Plan) -> str:
        return str(staleness_of(plan) or "")

    def get_approvals(self, plan: Plan) -> dict[str, Any]:
        standing = approval_standing(plan)
        return {
            "needed": standing.needed,
            "given": [
                {"by": approval.approved_by.username, "at": approval.approved_at}
                for approval in standing.given
            ],
            "void": [approval.approved_by.username for approval in standing.void],
            "may_approve": [user.username for user in standing.may_approve],
        }

    def get_guard(self, plan: Plan) -> list[str]:
        return guard_reasons(plan)

    def get_refusal(self, plan: Plan) -> dict[str, Any] | None:
        refusal = services.refusal_of(plan)
        return {"code": refusal.code, "detail": str(refusal)} if refusal else None

    def get_cost(self, plan: Plan) -> dict[str, Any] | None:
        return as_json(cost_of(plan))


class PlanView(APIView):
    @extend_schema(responses=PlanSerializer)
    def get(self, request: Request, plan_id: UUID) -> Response:
        return Response(PlanSerializer(access.plan_to_view_by_id(request.user, plan_id)).data)


class DeployView(APIView):
    class DeployRequest(serializers.Serializer[Any]):
        confirmation = serializers.CharField(
            required=False, default="", help_text="The Spec's name, where the plan is guarded."
        )

    @extend_schema(request=DeployRequest, responses={202: JobDetailSerializer})
    def post(self, request: Request, plan_id: UUID) -> Response:
        """Apply exactly this plan: a DEPLOY, or a DESTROY for a plan to destroy.

        `Idempotency-Key` makes a repeat return the first job.
        """
        plan = access.plan_to_apply_by_id(request.user, plan_id)
        body = self.DeployRequest(data=request.data)
        body.is_valid(raise_exception=True)
        job = services.request_deploy(
            plan=plan,
            requested_by=person(request),
            confirmation=body.validated_data["confirmation"],
            idempotency_key=idempotency_key(request),
        )
        return accepted(job)


class ApprovalsView(APIView):
    @extend_schema(request=None, responses={201: PlanSerializer})
    def post(self, request: Request, plan_id: UUID) -> Response:
        """Approve this plan. A new plan needs new approvals."""
        plan = access.plan_to_approve_by_id(request.user, plan_id)
        services.approve_plan(plan=plan, approved_by=person(request))
        return Response(PlanSerializer(plan).data, status=201)

    @extend_schema(request=None, responses=PlanSerializer)
    def delete(self, request: Request, plan_id: UUID) -> Response:
        """Withdraw one's own approval."""
        plan = access.plan_to_approve_by_id(request.user, plan_id)
        services.withdraw_approval(plan=plan, withdrawn_by=person(request))
        return Response(PlanSerializer(plan).data)
