"""The graph of a plan: edges by reference, grains that can be read, a picture by Graphviz."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.plans import graph as graphs
from console.plans import layout
from console.plans.graph import MAX_NODES, Graph, Member, graph_of
from console.plans.layout import CannotDraw, place
from console.plans.models import PlanGraph
from console.plans.pictures import picture_of
from console.state.services import import_state
from runner.protocol import JobType
from tests.console.plans.review import Person, document, resource, state
from tests.console_app import Console
from tests.people import Tenant
from tests.plans_made import a_plan


def configured(address: str, *references: str, **more: Any) -> dict[str, Any]:
    """A resource of the configuration that refers to these things."""
    *_, type, name = address.split(".")
    mode = "data" if address.startswith("data.") else "managed"
    expressions = {"input": {"references": list(references)}}
    return {"address": address, "mode": mode, "type": type, "name": name, "expressions": expressions, **more}


def configuration(*resources: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"configuration": {"root_module": {"resources": list(resources), **more}}}


def dependencies(document: dict[str, Any], **files: str) -> set[tuple[str, str]]:
    """Files by the name of their folder; `root` is the top."""
    files_by_path = {f"{folder}/main.tf".removeprefix("root/"): text for folder, text in files.items()}
    return graphs.dependencies(document, files_by_path)


def member(address: str, module: str = "") -> Member:
    return Member(address, module, "terraform_data", "create")


def edges(graph: Graph) -> list[tuple[str, str]]:
    return graph.edges


def test_an_edge_follows_each_reference() -> None:
    pairs = dependencies(
        configuration(
            configured("terraform_data.a"),
            configured("terraform_data.b", "terraform_data.a.id", "terraform_data.a", "var.name", "each.key"),
            configured("terraform_data.c", "local.unknown", depends_on=["terraform_data.b"]),
        )
    )
    assert pairs == {
        ("terraform_data.a", "terraform_data.b"),
        ("terraform_data.b", "terraform_data.c"),
    }


def test_references_are_followed_through_modules_data_sources_blocks_and_counts() -> None:
    inner = {
        "resources": [configured("terraform_data.inner", "var.given")],
        "outputs": {"made": {"expression": {"references": ["terraform_data.inner.id"]}}},
    }
    call = {"module": inner, "expressions": {"given": {"references": ["terraform_data.a.id"]}}}
    block = {"expressions": {"block": [{"text": {"references": ["data.some_thing.here.id"]}}]}}
    pairs = dependencies(
        configuration(
            configured("terraform_data.a"),
            configured("data.some_thing.here", "terraform_data.a.output"),
            {**configured("terraform_data.b"), **block},
            configured("terraform_data.c", 'module.m["x.y"].made', "module.m"),
            configured("terraform_data.d", for_each_expression={"references": ["terraform_data.c"]}),
            module_calls={"m": call},
        )
    )
    assert pairs == {
        ("terraform_data.a", "terraform_data.b"),
        ("terraform_data.a", "module.m.terraform_data.inner"),
        ("module.m.terraform_data.inner", "terraform_data.c"),
        ("terraform_data.c", "terraform_data.d"),
    }


def test_a_module_that_waits_for_another_waits_with_all_that_is_in_it() -> None:
    calls = {
        "first": {"module": {"resources": [configured("terraform_data.one")]}},
        "second": {
            "module": {"resources": [configured("terraform_data.two")]},
            "depends_on": ["module.first"],
        },
    }
    assert dependencies(configuration(module_calls=calls)) == {
        ("module.first.terraform_data.one", "module.second.terraform_data.two")
    }


def test_circles_of_references_end() -> None:
    calls = {
        "m": {
            "module": {
                "resources": [configured("terraform_data.in", "var.v")],
                "outputs": {"out": {"expression": {"references": ["var.v"]}}},
            },
            "expressions": {"v": {"references": ["module.m.out"]}},
        }
    }
    assert dependencies(configuration(module_calls=calls)) == set()


def test_references_are_followed_through_local_values_of_each_module() -> None:
    inner = {
        "resources": [configured("terraform_data.inner", "local.given")],
        "outputs": {"made": {"expression": {"references": ["local.made"]}}},
    }
    expressions = {"given": {"references": ["local.both[0]"]}}
    document = configuration(
        configured("terraform_data.a"),
        configured("terraform_data.b"),
        configured("terraform_data.c", "local.chain"),
        configured("terraform_data.d", "local.unknown", "local.text", "local.later"),
        module_calls={"m": {"module": inner, "source": "./net", "expressions": expressions}},
    )
    pairs = dependencies(
        document,
        root="""
          locals { both = [terraform_data.a.id, "${terraform_data.b.id}-x"] }
          locals {
            chain = { for key, one in local.out : key => one }
            out   = { x = module.m["k"].made }
            text  = "terraform_data.a is only named here"
            later = <<-TEXT
              ${join(",", local.both)}
            TEXT
          }
        """,
        net="locals { given = var.given\n made = terraform_data.inner.id }",
    )
    a, b, c, d = (f"terraform_data.{name}" for name in "abcd")
    inner_one = "module.m.terraform_data.inner"
    assert pairs == {(a, inner_one), (b, inner_one), (inner_one, c), (a, d), (b, d)}


def test_local_values_that_stand_for_each_other_many_times_are_followed_once() -> None:
    """Each of forty says the one before twice: without a memory that is 2⁴⁰ ways to the first."""
    chain = [f"l{n} = [local.l{n - 1}, local.l{n - 1}]" for n in range(1, 40)]
    text = "\n".join(["locals {", "l0 = terraform_data.a.id", *chain, "}"])
    document = configuration(configured("terraform_data.a"), configured("terraform_data.b", "local.l39"))
    assert dependencies(document, root=text) == {("terraform_data.a", "terraform_data.b")}


def test_files_that_cannot_be_read_cost_lines_and_not_the_picture() -> None:
    document = configuration(configured("terraform_data.a"), configured("terraform_data.b", "local.x"))
    assert dependencies(document, root="locals { x = = terraform_data.a.id }") == set()
    elsewhere = {
        "m": {"source": "registry.example/net", "module": {"resources": [configured("a.b", "local.x")]}}
    }
    assert (
        dependencies(configuration(module_calls=elsewhere), root="locals { x = terraform_data.a }") == set()
    )


def test_a_splat_over_a_module_waits_for_all_that_is_in_it() -> None:
    inner = {"resources": [configured("terraform_data.out"), configured("terraform_data.in")]}
    document = configuration(
        configured("terraform_data.c", "module.m"), module_calls={"m": {"module": inner}}
    )
    assert dependencies(document) == {
        ("module.m.terraform_data.in", "terraform_data.c"),
        ("module.m.terraform_data.out", "terraform_data.c"),
    }


def test_the_state_remembers_what_the_configuration_does_not_say() -> None:
    prior = {
        "prior_state": {
            "values": {
                "root_module": {
                    "resources": [{"address": "terraform_data.b[0]", "depends_on": ["terraform_data.a"]}]
                }
            }
        }
    }
    assert dependencies(prior) == {("terraform_data.a", "terraform_data.b")}


def test_copies_of_a_module_need_only_their_own_and_what_follows_is_left_out() -> None:
    inner = {
        "resources": [
            configured("terraform_data.a"),
            configured("terraform_data.b", "terraform_data.a.id"),
            configured("terraform_data.c", "terraform_data.a.id", "terraform_data.b.id"),
        ]
    }
    members = [
        member(f'module.m["{key}"].terraform_data.{name}', f'module.m["{key}"]')
        for key in ("x.1", "y")
        for name in ("a", "b", "c")
    ]
    graph = graph_of(members, configuration(module_calls={"m": {"module": inner}}))
    assert graph.grain == "instance"
    assert edges(graph) == [
        (f'module.m["{key}"].terraform_data.{needed}', f'module.m["{key}"].terraform_data.{needing}')
        for key in ("x.1", "y")
        for needed, needing in (("a", "b"), ("b", "c"))
    ]


@pytest.mark.parametrize(
    ("members", "grain", "boxes"),
    [
        ([member(f"terraform_data.r[{n}]") for n in range(MAX_NODES)], "instance", MAX_NODES),
        ([member(f"terraform_data.r{n % 9}[{n}]") for n in range(MAX_NODES + 1)], "resource", 9),
        (
            [member(f"module.m{n % 7}.terraform_data.r{n}", f"module.m{n % 7}") for n in range(2_000)],
            "type",
            7,
        ),
        (
            [
                Member(f"module.a.module.m{n}.t{n}.r", f"module.a.module.m{n}", f"t{n}", "create")
                for n in range(400)
            ],
            "module",
            1,
        ),
    ],
)
def test_too_many_boxes_become_groups(members: list[Member], grain: str, boxes: int) -> None:
    graph = graph_of(members, {})
    assert (graph.grain, len(graph.boxes)) == (grain, boxes)
    assert sum(box.count for box in graph.boxes) == len(members)


def test_graphviz_places_boxes_in_the_order_of_their_lines() -> None:
    placed = place(["one", "two", "three"], [(0, 1), (1, 2)])
    lefts = [x for x, _, _, _ in placed.boxes]
    assert lefts == sorted(lefts)
    assert len(set(lefts)) == 3
    assert [(source, target) for source, target, _ in placed.lines] == [(0, 1), (1, 2)]
    assert all(path.startswith("M") and "C" in path for _, _, path in placed.lines)


def test_a_graphviz_that_takes_too_long_is_ended_and_the_list_stays(
    console: Console, ours: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "MAX_SECONDS", 0.001)
    with pytest.raises(CannotDraw):
        place(["one"], [])
    plan = a_plan(console, ours)
    page = Person(ours.viewer).reads_part("job-graph", plan.job)
    assert "The graph could not be drawn" in page
    assert "terraform_data.one" in page


def test_the_picture_is_made_once_and_names_in_it_are_only_text(console: Console, ours: Tenant) -> None:
    hostile = 'terraform_data.one["</text><script>\u202e"]'
    plan = a_plan(
        console,
        ours,
        json=document({**resource("terraform_data.one", "create"), "address": hostile}),
    )
    page = Person(ours.viewer).reads_part("job-graph", plan.job)
    assert "<script>" not in page
    assert "&lt;U+202E&gt;" in page
    drawing = PlanGraph.objects.get().drawing
    assert drawing["boxes"][0]["key"] == hostile
    PlanGraph.objects.update(drawing={**drawing, "boxes": []})
    again = picture_of(plan)
    assert again is not None
    assert again["boxes"] == [], "what was kept is shown again"


def test_a_destroy_that_nobody_planned_shows_what_was_in_the_state(ours: Tenant) -> None:
    def instance(**more: Any) -> dict[str, Any]:
        return {"attributes": {}, **more}

    body = json.loads(state("one", "two", "gone"))
    first, second, deleted = body["resources"]
    second["instances"] = [instance(index_key=key, dependencies=["terraform_data.one"]) for key in ("a", "b")]
    deleted["mode"] = "data"
    import_state(spec=ours.spec, body=json.dumps(body).encode(), imported_by=ours.admin)
    page = Person(ours.viewer).reads_part("job-graph", ours.request(JobType.DESTROY))
    assert 'data-key="terraform_data.two[&quot;a&quot;]"' in page
    assert page.count('class="line"') == 2
    assert "gone" not in page
    assert first["name"] in page


def test_a_job_without_a_plan_has_no_picture(console: Console, ours: Tenant, theirs: Tenant) -> None:
    job = ours.request()
    assert Person(ours.viewer).status_of("job-graph", job) == 204
    assert Person(theirs.admin).status_of("job-graph", job) == 404
    empty = a_plan(console, theirs, json=json.dumps({"resource_changes": []}).encode())
    assert Person(theirs.viewer).status_of("job-graph", empty.job) == 204
