"""Prometheus metrics, read from the database at each scrape."""

import hmac
from collections.abc import Iterable

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from console.errors import NotSignedIn
from console.jobs.queue_depth import oldest_transaction_seconds, pool_depths

POOL_GAUGES = {
    "queued": "Jobs that a runner could start now.",
    "delayed": "Jobs that wait for their next retry.",
    "running": "Jobs that a runner has claimed.",
    "oldest_wait_seconds": "How long the oldest job that could start has waited.",
    "runners_online": "Runners online.",
}


class QueueCollector(Collector):
    def collect(self) -> Iterable[Metric]:
        depths = pool_depths()
        for name, help in POOL_GAUGES.items():
            gauge = GaugeMetricFamily(f"slipway_pool_{name}", help, labels=["organization", "pool"])
            for depth in depths:
                gauge.add_metric([depth.organization, depth.pool], getattr(depth, name))
            yield gauge
        yield GaugeMetricFamily(
            "slipway_oldest_transaction_seconds",
            "Age of the oldest open transaction; above a minute it slows claims down.",
            value=oldest_transaction_seconds(),
        )


registry = CollectorRegistry()
registry.register(QueueCollector())


def metrics(request: HttpRequest) -> HttpResponse:
    """Serve the figures of all organizations, to the installation's own token only."""
    token = request.headers.get("Authorization", "").removeprefix("Bearer ").strip()
    expected = settings.SLIPWAY_METRICS_TOKEN
    if not expected or not hmac.compare_digest(token.encode(), expected.encode()):
        raise NotSignedIn(
            "Send SLIPWAY_METRICS_TOKEN as a bearer token; without that setting there are no metrics."
        )
    return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)
