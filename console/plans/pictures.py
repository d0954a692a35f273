"""A plan's graph as a picture: made when somebody first looks, kept, and the same for everybody."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from typing import Any
from uuid import UUID

import orjson
from django.db import IntegrityError

from console.errors import BadInput
from console.jobs.models import Job
from console.plans.documents import plan_document
from console.plans.graph import Graph, Member, graph_of, graph_of_state
from console.plans.layout import CannotDraw, label_of, place
from console.plans.models import Plan, PlanGraph
from console.state.models import StateVersion
from console.state.services import read_version
from runner.protocol import JobType
from specs.document import files_of

#: A part of an address with its index.
PART = re.compile(r'[^.\[]+(?:\[(?:\d+|"(?:[^"\\]|\\.)*")\])?')


def plan_behind(job: Job) -> Plan | None:
    """The plan that a job applies, or that it made."""
    return job.plan or Plan.objects.filter(job=job).first()


def picture_behind(job: Job) -> dict[str, Any] | None:
    """The picture of what a job does; None where nothing is known of it yet."""
    plan = plan_behind(job)
    if plan is not None:
        return picture_of(plan)
    if job.type != JobType.DESTROY or job.spec is None:
        return None
    # A destroy that nobody planned goes through what was there when it was asked for.
    before = job.spec.state_versions.filter(created_at__lte=job.created_at).order_by("-serial")
    version_id = before.values_list("pk", flat=True).first()
    return _picture_of_state(version_id) if version_id else None


@lru_cache(maxsize=64)
def _picture_of_state(version_id: UUID) -> dict[str, Any] | None:
    """A version is never overwritten, so a process draws it once."""
    graph = graph_of_state(orjson.loads(read_version(version=StateVersion.objects.get(pk=version_id))))
    return _drawing(graph) if graph.boxes else None


def picture_of(plan: Plan) -> dict[str, Any] | None:
    """The drawing; None for a plan in which nothing changes."""
    if not plan.change_count:
        return None
    drawing = PlanGraph.objects.filter(plan=plan).values_list("drawing", flat=True).first()
    return drawing or _draw(plan)


def _draw(plan: Plan) -> dict[str, Any]:
    rows = plan.rows.filter(drifted=False).values_list("address", "module", "type", "action")
    members = [Member(*row) for row in rows]
    document = plan_document(plan)
    files = _files_of(plan) if b'"local.' in orjson.dumps(document.get("configuration")) else {}
    drawing = _drawing(graph_of(members, document, files))
    with suppress(IntegrityError):  # the plan was replaced meanwhile by a later attempt's
        PlanGraph.objects.get_or_create(plan=plan, defaults={"drawing": drawing})
    return drawing


def _files_of(plan: Plan) -> dict[str, str]:
    """Return the files; without the Git host's answer, lines through local values are missing."""
    try:
        return files_of(plan.job.config_snapshot)
    except BadInput:
        return {}


def _drawing(graph: Graph) -> dict[str, Any]:
    labels = _labels(graph)
    number = {box.key: index for index, box in enumerate(graph.boxes)}
    boxes = [asdict(box) | {"label": label} for box, label in zip(graph.boxes, labels, strict=True)]
    drawing: dict[str, Any] = {"grain": graph.grain, "boxes": boxes, "lines": [], "size": None}
    try:
        placed = place(labels, [(number[needed], number[needing]) for needed, needing in graph.edges])
    except CannotDraw:
        return drawing  # the list says it all the same
    for box, (x, y, width, height) in zip(boxes, placed.boxes, strict=True):
        box["place"] = {"x": x, "y": y, "width": width, "height": height}
    drawing["lines"] = [
        {"from": needed, "to": needing, "path": path} for needed, needing, path in placed.lines
    ]
    drawing["size"] = {"width": round(placed.width) + 4, "height": round(placed.height) + 4}
    return drawing


def _labels(graph: Graph) -> list[str]:
    """The shortest ends of the addresses that still tell all boxes apart."""
    keys = [box.key for box in graph.boxes]
    names = next(short for short in _candidate_labels(keys, graph.grain) if len(set(short)) == len(short))
    pairs = zip(names, graph.boxes, strict=True)
    return [label_of(name) if box.count == 1 else f"{label_of(name)} ×{box.count}" for name, box in pairs]


def _candidate_labels(keys: list[str], grain: str) -> Iterator[list[str]]:
    if grain in ("instance", "resource"):
        yield [_last_parts(key, 1) for key in keys]
        yield [_last_parts(key, 2) for key in keys]
    yield keys


def _last_parts(address: str, count: int) -> str:
    """`name["a.b"]` or `type.name`: dots within brackets part nothing."""
    return ".".join(PART.findall(address)[-count:])
