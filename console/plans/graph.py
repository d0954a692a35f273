"""The graph of a plan's resources: who needs whom, at the finest grain that a person can still read.

Edges come from the references in the configuration, and from the dependencies that the state remembers.
Terraform's JSON leaves out what local values are made of: that is read from the configuration's files. Where
a module's files are elsewhere, what it reaches only through a local shows once it is in the state.
"""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from console.state.resources import instances
from specs.locals import References, read_locals

#: More boxes or lines than this are a carpet, not a picture: the next coarser grain is drawn.
MAX_NODES = 300
MAX_EDGES = 600

#: `[0]` and `["a.b"]`, the part of an address that tells instances apart.
INDEX = re.compile(r'\[(?:\d+|"(?:[^"\\]|\\.)*")\]')

#: From fine to coarse: every instance, every resource of the configuration, every type of a module, modules.
GRAINS = ("instance", "resource", "type", "module")

ROOT = "root module"

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Member:
    """A resource of the plan, as far as the graph needs it."""

    address: str
    module: str
    type: str
    action: str

    def key(self, grain: str) -> str:
        """Return the box that it is in. The same as `keyOf` in resource-graph.js."""
        if grain == "instance":
            return self.address
        if grain == "resource":
            return without_indexes(self.address)
        module = without_indexes(self.module)
        if grain == "type":
            return f"{module}.{self.type}" if module else self.type
        return ".".join(module.split(".")[:2]) or ROOT


@dataclass(frozen=True, slots=True)
class Box:
    """One box of the picture, with the resources that are in it."""

    key: str
    actions: dict[str, int]
    count: int
    needs: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Graph:
    grain: str
    boxes: list[Box]
    #: (needed first, needs it), by key; what follows from other edges is left out.
    edges: list[Pair]


def graph_of(
    members: list[Member], document: dict[str, Any], files: Mapping[str, str] | None = None
) -> Graph:
    """Draw the graph of a plan and of the files that it was made from."""
    return _fitting(members, dependencies(document, files or {}))


def graph_of_state(content: dict[str, Any]) -> Graph:
    """Draw the graph of everything in a state, as a destroy goes through it."""
    managed = [instance for instance in instances(content) if not instance.is_data]
    needs = {
        (without_indexes(needed), without_indexes(instance.address))
        for instance in managed
        for needed in instance.depends_on
    }
    return _fitting(
        [Member(instance.address, instance.module, instance.type, "delete") for instance in managed], needs
    )


def _fitting(members: list[Member], needs: set[Pair]) -> Graph:
    """The finest grain that can still be read."""
    for grain in GRAINS:
        graph = _at_grain(grain, members, needs)
        if len(graph.boxes) <= MAX_NODES and len(graph.edges) <= MAX_EDGES:
            break
    return graph


def without_indexes(address: str) -> str:
    return INDEX.sub("", address)


# What needs what


def dependencies(document: dict[str, Any], files: Mapping[str, str]) -> set[Pair]:
    """(needed, needing) of resources as they are written in the configuration."""
    root = (document.get("configuration") or {}).get("root_module") or {}
    pairs = set(_Module({"module": root, "source": "."}, files).dependencies())
    prior = ((document.get("prior_state") or {}).get("values") or {}).get("root_module") or {}
    return pairs | set(_dependencies_in_state(prior))


def _dependencies_in_state(module: dict[str, Any]) -> Iterator[Pair]:
    for resource in module.get("resources") or []:
        for needed in resource.get("depends_on") or []:
            yield without_indexes(needed), without_indexes(resource["address"])
    for child in module.get("child_modules") or []:
        yield from _dependencies_in_state(child)


class _Module:
    """A module of the configuration, which resolves what its expressions refer to."""

    def __init__(
        self,
        call: dict[str, Any],
        files: Mapping[str, str],
        *,
        name: str = "",
        parent: "_Module | None" = None,
    ) -> None:
        self.call, self.files, self.parent = call, files, parent
        self.prefix: str = f"{parent.prefix}module.{name}." if parent else ""
        body = call.get("module") or {}
        self.outputs = body.get("outputs") or {}
        self.resources = {resource["address"]: resource for resource in body.get("resources") or []}
        self.children = {
            name: _Module(inner, files, name=name, parent=self)
            for name, inner in (body.get("module_calls") or {}).items()
        }
        # What was resolved, or is being resolved: a circle finds nothing new in itself.
        self._resolved: dict[str, frozenset[str]] = {}

    @cached_property
    def folder(self) -> str | None:
        """Return where its files are in the configuration; None where they come from elsewhere."""
        source, above = str(self.call.get("source") or ""), self.parent.folder if self.parent else ""
        if above is None or not source.startswith("."):
            return None
        folder = posixpath.normpath(posixpath.join(above, source))
        return "" if folder == "." else folder

    @cached_property
    def locals(self) -> References:
        return {} if self.folder is None else read_locals(self.files, self.folder)

    def dependencies(self, inherited: frozenset[str] = frozenset()) -> Iterator[Pair]:
        for address, resource in self.resources.items():
            if resource.get("mode") != "managed":
                continue
            for needed in inherited | self._needs(resource):
                yield needed, self.prefix + address
        for child in self.children.values():
            waits_for = self._resolve(child.call.get("depends_on") or [])
            yield from child.dependencies(inherited | waits_for)

    def _needs(self, resource: dict[str, Any]) -> frozenset[str]:
        parts = [resource.get(key) for key in ("expressions", "count_expression", "for_each_expression")]
        return self._resolve([*_references(parts), *(resource.get("depends_on") or [])])

    def _resolve(self, references: list[str]) -> frozenset[str]:
        return frozenset[str]().union(*(self._resolve_once(reference) for reference in references))

    def _resolve_once(self, reference: str) -> frozenset[str]:
        plain = without_indexes(reference)
        if plain not in self._resolved:
            self._resolved[plain] = frozenset()
            self._resolved[plain] = self._resolve_one(plain)
        return self._resolved[plain]

    def _resolve_one(self, reference: str) -> frozenset[str]:
        match reference.split("."):
            case ["var", name, *_]:
                return self._input(name)
            case ["local", name, *_]:
                return self._resolve(self.locals.get(name, []))
            case ["module", name, output, *_] if name in self.children:
                return self.children[name]._output(output)
            case ["module", name] if name in self.children:
                return self.children[name]._everything()
            case ["data", type, name, *_]:
                source = self.resources.get(f"data.{type}.{name}")
                return self._needs(source) if source else frozenset()
            case [type, name, *_] if f"{type}.{name}" in self.resources:
                return frozenset({f"{self.prefix}{type}.{name}"})
        return frozenset()

    def _input(self, name: str) -> frozenset[str]:
        if self.parent is None:
            return frozenset()
        return self.parent._resolve(_references((self.call.get("expressions") or {}).get(name)))

    def _output(self, name: str) -> frozenset[str]:
        return self._resolve(_references((self.outputs.get(name) or {}).get("expression")))

    def _everything(self) -> frozenset[str]:
        own = frozenset(
            self.prefix + address
            for address, resource in self.resources.items()
            if resource.get("mode") == "managed"
        )
        return own.union(*(child._everything() for child in self.children.values()))


def _references(expression: Any) -> list[str]:
    """Every reference of an expression, of its blocks too."""
    if isinstance(expression, list):
        return [reference for part in expression for reference in _references(part)]
    if not isinstance(expression, dict):
        return []
    references = _without_module_duplicates(expression.get("references") or [])
    for key, part in expression.items():
        if key not in ("references", "constant_value"):
            references += _references(part)
    return references


def _without_module_duplicates(references: list[str]) -> list[str]:
    """After `module.m.out` Terraform lists `module.m` too. Alone it is a splat, which waits for all of it."""
    specific = {
        ".".join(without_indexes(reference).split(".")[:2])
        for reference in references
        if not _is_bare_module(reference)
    }
    return [
        reference
        for reference in references
        if not _is_bare_module(reference) or without_indexes(reference) not in specific
    ]


def _is_bare_module(reference: str) -> bool:
    return reference.startswith("module.") and without_indexes(reference).count(".") == 1


# The picture's boxes and lines


def _at_grain(grain: str, members: list[Member], needs: set[Pair]) -> Graph:
    boxes: dict[str, list[Member]] = defaultdict(list)
    by_resource: dict[str, set[str]] = defaultdict(set)
    for member in members:
        boxes[member.key(grain)].append(member)
        by_resource[without_indexes(member.address)].add(member.key(grain))
    edges = set()
    for needed, needing in needs:
        for needed_box in by_resource.get(needed, ()):
            for needing_box in by_resource.get(needing, ()):
                if needed_box != needing_box and (
                    grain != "instance" or _same_module(needed_box, needing_box)
                ):
                    edges.add((needed_box, needing_box))
        if len(edges) > MAX_EDGES * 50 and grain != GRAINS[-1]:
            break  # far too many: the caller takes the next grain
    lines = _without_implied_lines(sorted(boxes), edges) if len(boxes) <= MAX_NODES else sorted(edges)
    return Graph(grain, [_box(key, boxes[key], lines) for key in sorted(boxes)], lines)


def _box(key: str, members: list[Member], edges: list[Pair]) -> Box:
    actions: dict[str, int] = defaultdict(int)
    for member in members:
        actions[member.action] += 1
    return Box(key, dict(actions), len(members), [needed for needed, needing in edges if needing == key])


def _same_module(needed: str, needing: str) -> bool:
    """Instances of a module that is there several times need only those of their own copy."""
    for needed_step, needing_step in zip(_steps(needed), _steps(needing), strict=False):
        if without_indexes(needed_step) != without_indexes(needing_step):
            return True
        if needed_step != needing_step:
            return False
    return True


def _steps(address: str) -> list[str]:
    """`module.a["x"]` and the like, in order."""
    return re.findall(r'module\.[^.\[]+(?:\[(?:\d+|"(?:[^"\\]|\\.)*")\])?', address)


def _without_implied_lines(keys: list[str], edges: set[Pair]) -> list[Pair]:
    """Without the lines that follow from others, as far as there is an order at all."""
    after: dict[str, set[str]] = {key: set() for key in keys}
    for needed, needing in edges:
        after[needed].add(needing)
    order = _topological_order(keys, after)
    if order is None:
        return sorted(edges)
    index = {key: position for position, key in enumerate(order)}
    reach = dict.fromkeys(keys, 0)  # what can be reached, one bit for each
    lines = []
    for key in reversed(order):
        for needing in sorted(after[key], key=index.__getitem__):
            if not reach[key] >> index[needing] & 1:
                lines.append((key, needing))
                reach[key] |= reach[needing] | 1 << index[needing]
    return sorted(lines)


def _topological_order(keys: list[str], after: dict[str, set[str]]) -> list[str] | None:
    waiting = dict.fromkeys(keys, 0)
    for successors in after.values():
        for successor in successors:
            waiting[successor] += 1
    ready = [key for key in keys if not waiting[key]]
    order: list[str] = []
    while ready:
        key = ready.pop()
        order.append(key)
        for successor in after[key]:
            waiting[successor] -= 1
            if not waiting[successor]:
                ready.append(successor)
    return order if len(order) == len(keys) else None
