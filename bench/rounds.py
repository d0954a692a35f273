"""Taking turns: contestants are measured one after the other in many short rounds, never one long run each.

A machine's speed drifts by a factor of two within minutes. What two contestants did within the same few
seconds can be compared; what they did minutes apart cannot.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

#: Does some work and returns how many units of it were done each second, or how long one took.
Contestant = Callable[[], float]


@dataclass(frozen=True)
class Rounds:
    """The results of every contestant, in the order of the rounds."""

    reached: Mapping[str, Sequence[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.reached[name])

    def ratio(self, name: str, reference: str) -> float:
        """The median of the rounds' own ratios: each compares neighbours in time."""
        pairs = zip(self.reached[name], self.reached[reference], strict=True)
        return statistics.median(speed / other for speed, other in pairs)


def take_turns(contestants: Mapping[str, Contestant], *, rounds: int) -> Rounds:
    """Let everybody run in every round, after one round that does not count. The order turns each time."""
    for contestant in contestants.values():
        contestant()
    names = list(contestants)
    reached: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            reached[name].append(contestants[name]())
    return Rounds(reached)


def percentile(values: Sequence[float], percent: float) -> float:
    """The nearest-rank percentile."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]
