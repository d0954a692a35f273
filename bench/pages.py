"""The pages that people keep open, in an installation that is years old: server time, weight, scrolling."""

from __future__ import annotations

import statistics
from typing import Any

from bench.browser import a_page
from bench.console_process import running_console
from bench.old_tenant import OldTenant, old_tenant
from bench.report import Figure, say
from bench.site import Site
from bench.visitor import Reader, Visitor, visitor

#: Scrolls to the end and back at a reader's hurried pace, and counts what was drawn meanwhile.
SCROLL = """
async (seconds) => {
  const box = document.querySelector(".log-lines");
  const began = performance.now();
  let frames = 0, slowest = 0, last = began;
  while (performance.now() - began < seconds * 1000) {
    const share = ((performance.now() - began) / 1000 / seconds) % 1;
    box.scrollTop = (1 - Math.abs(2 * share - 1)) * (box.scrollHeight - box.clientHeight);
    const at = await new Promise(requestAnimationFrame);
    slowest = Math.max(slowest, at - last);
    last = at;
    frames++;
  }
  return { perSecond: frames / ((performance.now() - began) / 1000), slowest };
}
"""


def measure(site: Site, *, quick: bool) -> list[Figure]:
    rounds = 5 if quick else 60
    sizes = {"specs": 10_000, "jobs": 1_000_000, "lines": 100_000, "changes": 2_000}
    if quick:
        sizes = {"specs": 200, "jobs": 5_000, "lines": 60_000, "changes": 400}
    say(f"  filling: {', '.join(f'{count:,} {name}' for name, count in sizes.items())}")
    old = old_tenant("pages", **sizes)
    with running_console(site) as console:
        person = visitor(console, old.tenant)
        figures = [*server_times(old, person, rounds=rounds)]
        figures += in_the_browser(old, person, seconds=2 if quick else 8)
    return figures


def server_times(old: OldTenant, person: Visitor, *, rounds: int) -> list[Figure]:
    """Measure the time to the last byte of each page, through Daphne; the pages take turns."""
    reader = Reader(person)
    seconds_of: dict[str, list[float]] = {name: [] for name in old.pages}
    for turn in range(rounds + 3):
        for name, address in old.pages.items():
            milliseconds = reader.milliseconds(address)
            if turn >= 3:  # the first fill caches
                seconds_of[name].append(milliseconds)
    return [
        Figure(f"the {name} page, median", statistics.median(times), "ms", at_most=60)
        for name, times in seconds_of.items()
    ]


def in_the_browser(old: OldTenant, person: Visitor, *, seconds: int) -> list[Figure]:
    with a_page(person) as page:
        weight = _weight(page, person.url + old.pages["job"])
        page.get_by_text("live", exact=True).wait_for(timeout=60_000)
        scrolled: dict[str, Any] = page.evaluate(SCROLL, seconds)
    return [
        Figure("the job page with all it loads, over the wire", weight / 1024, "KB", at_most=150),
        Figure("scrolling its log", scrolled["perSecond"], "frames/s", at_least=50),
        Figure("  the longest time between two frames", scrolled["slowest"], "ms"),
    ]


def _weight(page: Any, address: str) -> float:
    """Bytes received for the page and what it loads, but for the log's lines."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    requests: dict[str, str] = {}
    received: dict[str, float] = {}
    session.on(
        "Network.requestWillBeSent", lambda it: requests.update({it["requestId"]: it["request"]["url"]})
    )
    session.on(
        "Network.loadingFinished", lambda it: received.update({it["requestId"]: it["encodedDataLength"]})
    )
    page.goto(address, wait_until="networkidle")
    return sum(size for id, size in received.items() if "/logs" not in requests.get(id, ""))
