"""The metrics registry of one running autoscaler, and its answer to a scrape."""

import platform
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import choose_encoder

from growth import __version__
from growth.telemetry.metrics import Gauge, Metrics

BUILD_INFO: Final = Gauge(
    "growth_build_info", "Always 1; the labels say what is running.", labels=("version", "python_version")
)
# Dashboards ask it for the version; the labels are those that Karpenter's has.
KARPENTER_BUILD_INFO: Final = Gauge(
    "karpenter_build_info",
    "Always 1; the labels say what is running.",
    labels=("version", "goversion", "goarch", "commit"),
)


def new_registry() -> tuple[CollectorRegistry, Metrics]:
    """A registry of its own with this process's memory, processor time and open files in it, and where to count."""
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    metrics = Metrics(registry)
    metrics.set(BUILD_INFO, 1, version=__version__, python_version=platform.python_version())
    runtime = f"python{platform.python_version()}"
    metrics.set(
        KARPENTER_BUILD_INFO, 1, version=__version__, goversion=runtime, goarch=platform.machine(), commit="unknown"
    )
    return registry, metrics


def exposition(registry: CollectorRegistry, *, accept: str = "") -> tuple[bytes, str]:
    """The body and its content type: what the scraper's Accept header asks for, else Prometheus' text format."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
