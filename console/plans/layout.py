"""The layout of a graph by Graphviz, in a process of its own with limits.

Graphviz is C, and a graph is made from what people write. It sees numbers only, no names; whatever goes
wrong in it ends its own process. `python -m console.plans.layout` is that process.
"""

import json
import resource
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

#: A graph of 300 boxes takes about half a second.
MAX_SECONDS = 20
MAX_MEMORY_BYTES = 1024 * 1024 * 1024

POINTS_PER_INCH = 72.0
CHAR_WIDTH, BOX_HEIGHT, BOX_PADDING = 6.7, 26.0, 34.0
MAX_LABEL_CHARS = 34


class CannotDraw(Exception):
    """Graphviz failed or took too long. The list has the same content."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A drawing in pixels: its size, each box by its number, each line as an SVG path."""

    width: float
    height: float
    boxes: list[tuple[float, float, float, float]]
    lines: list[tuple[int, int, str]]


def label_of(key: str) -> str:
    """Shorten an address to fit a box: its end tells resources apart."""
    return key if len(key) <= MAX_LABEL_CHARS else f"…{key[-MAX_LABEL_CHARS + 1 :]}"


def place(labels: list[str], edges: list[tuple[int, int]]) -> Placed:
    """Lay out boxes with these labels, and lines between their numbers."""
    question = {"widths": [len(label) * CHAR_WIDTH + BOX_PADDING for label in labels], "edges": edges}
    try:
        answer = subprocess.run(
            [sys.executable, "-P", "-m", "console.plans.layout"],
            input=json.dumps(question),
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise CannotDraw from error
    return _read(answer.stdout, len(labels))


def _read(text: str, count: int) -> Placed:
    """Graphviz's `plain` format: inches from below; ours are pixels from above."""
    width = height = 0.0
    boxes = [(0.0, 0.0, 0.0, 0.0)] * count
    lines = []
    for row in text.splitlines():
        match row.split():
            case ["graph", _, wide, high]:
                width, height = float(wide) * POINTS_PER_INCH, float(high) * POINTS_PER_INCH
            case ["node", name, x, y, w, h, *_]:
                boxes[int(name)] = _box([float(length) * POINTS_PER_INCH for length in (x, y, w, h)], height)
            case ["edge", source, target, points, *rest]:
                lines.append((int(source), int(target), _path(rest[: 2 * int(points)], height)))
    return Placed(width, height, boxes, lines)


def _box(middle_and_size: list[float], height: float) -> tuple[float, float, float, float]:
    x, y, w, h = middle_and_size
    return round(x - w / 2, 1), round(height - y - h / 2, 1), round(w, 1), round(h, 1)


def _path(coordinates: list[str], height: float) -> str:
    """A Bézier spline: the first point, then three for each curve."""
    numbers = [float(coordinate) * POINTS_PER_INCH for coordinate in coordinates]
    points = [f"{x:.1f} {height - y:.1f}" for x, y in zip(numbers[::2], numbers[1::2], strict=True)]
    return f"M{points[0]}C{' '.join(points[1:])}"


def main() -> None:
    """The other process: a question on standard input, Graphviz's answer on standard output."""
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    question: dict[str, Any] = json.load(sys.stdin)
    sys.stdout.write(_draw(question["widths"], question["edges"]))


def _draw(widths: list[float], edges: list[list[int]]) -> str:
    from pygraphviz import AGraph

    graph = AGraph(directed=True, strict=True, rankdir="LR", nodesep="0.12", ranksep="0.45")
    for number, width in enumerate(widths):
        graph.add_node(
            str(number),
            label="",
            shape="box",
            fixedsize="true",
            width=f"{width / POINTS_PER_INCH:.4f}",
            height=f"{BOX_HEIGHT / POINTS_PER_INCH:.4f}",
        )
    for source, target in edges:
        graph.add_edge(str(source), str(target))
    plain: bytes = graph.draw(prog="dot", format="plain")
    return plain.decode()


if __name__ == "__main__":
    main()
