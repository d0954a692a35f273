"""Charts as SVG, made here: shapes with classes, no script and no style; a table beside says the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 480, 120
#: Room at the left for the axis's figures, and below for the hours.
LEFT, BOTTOM, TOP = 40, 18, 8
#: Nothing is written closer to the right edge than a time is wide.
MARK_WIDTH = 30


@dataclass(frozen=True, slots=True)
class Bar:
    x: float
    y: float
    width: float
    height: float
    title: str
    #: A second, shorter bar inside: the median in a longest wait.
    inner_y: float = 0.0
    inner_height: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class Mark:
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Everything that the template draws, in the units of its view box."""

    bars: list[Bar]
    lines: list[Line]
    marks: list[Mark]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    baseline: float = float(HEIGHT - BOTTOM)

    @property
    def is_empty(self) -> bool:
        return all(bar.height == 0 for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Column:
    """One value to draw: what it is called, how high, and how high its inner part."""

    title: str
    value: float
    inner: float = 0.0
    mark: str = ""


def bar_chart(columns: Sequence[Column], *, unit: str = "") -> Chart:
    top = _round_up(max((column.value for column in columns), default=0))
    step = (WIDTH - LEFT) / max(1, len(columns))
    usable = HEIGHT - BOTTOM - TOP

    def height(value: float) -> float:
        return round(usable * value / top, 2)

    bars = [
        Bar(
            x=round(LEFT + index * step + 1, 2),
            y=round(HEIGHT - BOTTOM - height(column.value), 2),
            width=round(step - 2, 2),
            height=height(column.value),
            title=column.title,
            inner_y=round(HEIGHT - BOTTOM - height(column.inner), 2),
            inner_height=height(column.inner),
        )
        for index, column in enumerate(columns)
    ]
    lines = [Line(round(HEIGHT - BOTTOM - height(at), 2), f"{at:g}{unit}") for at in (top, top / 2, 0)]
    marks = [
        Mark(round(LEFT + index * step, 2), column.mark)
        for index, column in enumerate(columns)
        if column.mark and LEFT + index * step < WIDTH - MARK_WIDTH
    ]
    return Chart(bars, lines, marks)


def _round_up(value: float) -> float:
    """The next 1, 2 or 5 of its size, and an even number of whole steps: an axis people can read."""
    if value <= 2:
        return 2
    size = 10.0 ** math.floor(math.log10(value))
    return float(next(size * step for step in (1, 2, 4, 5, 10) if size * step >= value))
