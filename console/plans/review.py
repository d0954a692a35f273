"""The review of a plan: some of its resources at a time, the risky ones first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from django.db.models import Case, Count, QuerySet, Value, When
from django.utils.http import urlencode

from console.inputs import whole_number
from console.plans.changes import REVIEW_ORDER
from console.plans.destroy_guard import guarded_types
from console.plans.models import DESTRUCTIVE, Plan, PlanChange

#: So many resources come with a page; more are fetched as the reader gets there.
PAGE_ROWS = 20
#: More modules than this are found by searching, not by choosing from a list.
MAX_MODULES = 200

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Filters:
    """The reader's filters, as they stand in the address."""

    text: str = ""
    action: str = ""
    module: str | None = None
    start: int = 0

    @property
    def is_filtered(self) -> bool:
        return bool(self.text or self.action or self.module is not None)

    def query(self, *, start: int = 0) -> str:
        """Write the filters for an address, from this resource on."""
        values = {"q": self.text, "action": self.action, "from": str(start) if start else ""}
        parameters = {name: value for name, value in values.items() if value}
        if self.module is not None:
            parameters["module"] = self.module
        return urlencode(parameters)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring resources of one action and one module."""

    module: str
    changes: list[Body]


@dataclass(frozen=True, slots=True)
class Group:
    """Resources of one action; `continued` when earlier ones of it stand above."""

    action: str
    total: int
    continued: bool
    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class Review:
    """A part of a plan, and how much there is of all."""

    filters: Filters
    groups: list[Group]
    #: Every action with how many resources it has, filters aside.
    tally: dict[str, int]
    modules: list[str]
    #: How many resources the filters match.
    matches: int
    #: The address of what follows; empty at the end.
    more: str
    remaining: int
    guarded: list[str] = field(default_factory=list)


def filters_from(query: Mapping[str, str]) -> Filters:
    """Read the filters of an address, and ignore unknown ones."""
    action = query.get("action", "")
    return Filters(
        text=query.get("q", "").strip()[:200],
        action=action if action in REVIEW_ORDER else "",
        # The root module has no name, so the choice "all" is the absence of one.
        module=query.get("module") if query.get("module") != "*" else None,
        start=whole_number(query.get("from")) or 0,
    )


def review_of(plan: Plan, filters: Filters) -> Review:
    """One page of a plan's resources."""
    tallied = _count_by_action_and_module(plan)
    guarded = guarded_types(plan)
    rows = _matching_rows(plan, filters)
    page = _page(rows, guarded, filters.start)
    count = _count_matches(rows, tallied, filters)
    end = filters.start + min(len(page), PAGE_ROWS)
    return Review(
        filters=filters,
        groups=list(_groups(page[:PAGE_ROWS], tallied, continued=filters.start > 0)),
        tally=_count_by_action(tallied),
        modules=sorted({module for _, module in tallied})[:MAX_MODULES],
        matches=count,
        more=filters.query(start=end) if len(page) > PAGE_ROWS else "",
        remaining=max(0, count - end),
        guarded=guarded,
    )


def drift_of(plan: Plan) -> list[Body]:
    """List changes made outside of Terraform, as many as a page can show."""
    if not plan.drift_count:
        return []
    return list(
        plan.rows.filter(drifted=True).order_by("position").values_list("body", flat=True)[:PAGE_ROWS]
    )


def _count_by_action_and_module(plan: Plan) -> dict[tuple[str, str], int]:
    rows = plan.rows.filter(drifted=False).values_list("action", "module").order_by()
    return {(action, module): count for action, module, count in rows.annotate(count=Count("position"))}


def _count_by_action(tallied: dict[tuple[str, str], int]) -> dict[str, int]:
    counts = dict.fromkeys(REVIEW_ORDER, 0)
    for (action, _), count in tallied.items():
        counts[action] += count
    return {action: count for action, count in counts.items() if count}


def _matching_rows(plan: Plan, filters: Filters) -> QuerySet[PlanChange]:
    rows = plan.rows.filter(drifted=False)
    if filters.text:
        rows = rows.filter(address__icontains=filters.text)
    if filters.action:
        rows = rows.filter(action=filters.action)
    if filters.module is not None:
        rows = rows.filter(module=filters.module)
    return rows


def _page(rows: QuerySet[PlanChange], guarded: list[str], start: int) -> list[Body]:
    """One more than is shown, which tells whether there are more."""
    # Of what is lost, the guarded types come first: position alone knows only the action.
    risk = Case(When(action__in=DESTRUCTIVE, type__in=guarded, then=Value(0)), default=Value(1))
    ordered = rows.alias(risk=risk).order_by("risk", "position") if guarded else rows.order_by("position")
    return list(ordered.values_list("body", flat=True)[start : start + PAGE_ROWS + 1])


def _count_matches(rows: QuerySet[PlanChange], tallied: dict[tuple[str, str], int], filters: Filters) -> int:
    """The tally knows how many there are, unless a text was searched for."""
    if filters.text:
        return rows.count()
    return sum(
        count
        for (action, module), count in tallied.items()
        if filters.action in ("", action) and filters.module in (None, module)
    )


def _groups(bodies: list[Body], tallied: dict[tuple[str, str], int], *, continued: bool) -> Iterator[Group]:
    totals = _count_by_action(tallied)
    for index, (action, changes) in enumerate(groupby(bodies, key=lambda body: str(body["action"]))):
        by_module = groupby(changes, key=lambda body: str(body["module"]))
        stretches = [Stretch(module, list(same)) for module, same in by_module]
        yield Group(action, totals.get(action, 0), continued and index == 0, stretches)
