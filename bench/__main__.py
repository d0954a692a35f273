"""`python -m bench [name …]`: measures and prints the table of docs/benchmarks.md."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time

from bench.report import Figure, say, say_figures
from bench.site import throw_away_site

#: Imported one by one, after Django is set up.
BENCHMARKS = {
    "queue": ("bench.queue_speed", "The queue: our services, the raw limit, a peer"),
    "http": ("bench.http_speed", "Jobs through HTTP: claim + PROCESSING + SUCCESS"),
    "depth": ("bench.depth", "Claims from a deep queue"),
    "wake": ("bench.wake", "From the click to an idle runner, through HTTP"),
    "logs": ("bench.log_ingest", "Log lines through HTTP, 500 to a batch"),
    "runner": ("bench.runner", "The runner beside bare Terraform"),
    "state": ("bench.state", "State of 1 and 20 MB against a plain file"),
    "pages": ("bench.pages", "Pages of an old installation: server time, weight, scrolling"),
    "live": ("bench.live", "From Terraform's write to the browser's frame, with 50 viewers"),
    "publishing": ("bench.publishing", "Inserts of 16 clients, with and without publishing"),
}


def main() -> int:
    options = _parse()
    say(
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start"
    )
    figures: list[Figure] = []
    with throw_away_site() as site:
        for name in options.names or BENCHMARKS:
            module, title = BENCHMARKS[name]
            began = time.monotonic()
            measured: list[Figure] = importlib.import_module(module).measure(site, quick=options.quick)
            say_figures(f"{title} ({time.monotonic() - began:.0f} s)", measured)
            figures += measured
    return _conclude(figures, quick=options.quick)


def _conclude(figures: list[Figure], *, quick: bool) -> int:
    """Zero when every target was reached. A quick run only shows that everything can be measured."""
    missed = [figure for figure in figures if figure.is_reached is False]
    targets = sum(figure.is_reached is not None for figure in figures)
    say(f"\n{targets - len(missed)} of {targets} targets reached, load {os.getloadavg()[0]:.1f} at the end")
    if quick:
        say("A quick run is too short to judge by.")
    return 1 if missed and not quick else 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*BENCHMARKS, []], metavar="name", help=", ".join(BENCHMARKS)
    )
    parser.add_argument("--quick", action="store_true", help="a few rounds of each: does it still work?")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
