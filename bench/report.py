"""The table that a run prints: what was measured, what was wanted, whether it was reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the table. A figure without a target is there to explain another one."""

    name: str
    value: float
    unit: str = ""
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    @property
    def is_reached(self) -> bool | None:
        if self.at_least is not None:
            return self.value >= self.at_least
        return None if self.at_most is None else self.value <= self.at_most

    @property
    def target(self) -> str:
        if self.at_least is not None:
            return f"≥ {_number(self.at_least)}"
        return "" if self.at_most is None else f"≤ {_number(self.at_most)}"

    @property
    def verdict(self) -> str:
        return {None: "", True: "pass", False: "MISS"}[self.is_reached]


def say(text: str = "") -> None:
    print(text, flush=True)


def say_figures(title: str, figures: Iterable[Figure]) -> None:
    say(f"\n{title}")
    for figure in figures:
        value = f"{_number(figure.value)} {figure.unit}".strip()
        line = f"  {figure.name:<58} {value:>16}  {figure.target:<10} {figure.verdict:<5} {figure.note}"
        say(line.rstrip())


def _number(value: float) -> str:
    if value >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
