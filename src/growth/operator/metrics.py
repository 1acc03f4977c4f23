"""The metrics registry of one running autoscaler, and its answer to a scrape."""

import asyncio
import platform
from collections.abc import Iterable, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder

from growth import __version__
from growth.ports import Compute
from growth.telemetry.metrics import Family, Gauge, Metrics

BUILD_INFO: Final = Gauge(
    "growth_build_info", "Always 1; the labels say what is running.", labels=("version", "python_version")
)
# Dashboards ask it for the version; the labels are those that Karpenter's has.
KARPENTER_BUILD_INFO: Final = Gauge(
    "karpenter_build_info",
    "Always 1; the labels say what is running.",
    labels=("version", "goversion", "goarch", "commit"),
)


def new_metrics() -> Metrics:
    """Where to count, with what is running in it already."""
    metrics = Metrics(CollectorRegistry(auto_describe=False))
    metrics.set(BUILD_INFO, 1, version=__version__, python_version=platform.python_version())
    runtime = f"python{platform.python_version()}"
    metrics.set(
        KARPENTER_BUILD_INFO, 1, version=__version__, goversion=runtime, goarch=platform.machine(), commit="unknown"
    )
    return metrics


class Scrapes:
    """Answers scrapes, one at a time, with our numbers and this process's memory, processor time and open files.

    With thousands of nodes an answer is many megabytes of text: it is gathered in steps, between which the event loop
    does everything else, and written away from it.
    """

    def __init__(self, metrics: Metrics, *, compute: Compute) -> None:
        self._metrics = metrics
        self._compute = compute
        self._one = asyncio.Lock()

    async def answer(self, accept: str = "") -> tuple[bytes, str]:
        """The body and its content type: what the scraper's Accept header asks for, else Prometheus' text format."""
        async with self._one:
            families: list[Family] = []
            for family in self._metrics.gathered():
                if family is None:
                    await asyncio.sleep(0)
                else:
                    families.append(family)
            return await self._compute.run(_written, families, accept)


class _Gathered:
    """A collector of what was gathered before."""

    def __init__(self, families: Sequence[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return (family() for family in self._families)


def _written(families: Sequence[Family], accept: str) -> tuple[bytes, str]:
    registry = CollectorRegistry(auto_describe=False)
    ProcessCollector(registry=registry)
    registry.register(_Gathered(families))
    return exposition(registry, accept=accept)


def exposition(registry: CollectorRegistry, *, accept: str = "") -> tuple[bytes, str]:
    """Everything in the registry as text, and the text's content type."""
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type
