"""Metrics: declared as constants, counted where they are passed in, scraped as text."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from growth.operator.metrics import Scrapes, exposition, new_metrics
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimCompute
from growth.telemetry.metrics import (
    SERIES_A_STEP,
    SUMMARY_WINDOW,
    Counter,
    Gauge,
    Histogram,
    Metrics,
    Reading,
    Summary,
)

CREATED = Counter("karpenter_nodeclaims_created_total", "NodeClaims created.", labels=("reason", "nodepool"))
NODES = Gauge("karpenter_cluster_state_node_count", "Nodes in the view.")
LIMIT = Gauge("karpenter_nodepools_limit", "Limits of pools.", labels=("resource_type", "nodepool"))
SOLVING = Histogram("karpenter_scheduler_scheduling_duration_seconds", "Length of a pass.", buckets=(0.1, 1.0, 10.0))

STARTUP = Summary("karpenter_pods_startup_duration_seconds", "From creation to running.", labels=("nodepool",))


def fresh() -> tuple[CollectorRegistry, Metrics]:
    registry = CollectorRegistry()
    return registry, Metrics(registry)


def scraped(registry: CollectorRegistry) -> dict[str, float]:
    body, _ = exposition(registry)
    return {
        sample.name + "".join(f"|{value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def test_the_exposition_is_prometheus_text() -> None:
    """Help, type and series, by name, and no series that Karpenter does not have."""
    registry, metrics = fresh()
    metrics.add(CREATED, reason="provisioned", nodepool="default")
    metrics.add(CREATED, 2, nodepool='odd"name\n', reason="provisioned")
    metrics.set(NODES, 7)
    body, content_type = exposition(registry)
    assert body.decode() == (
        "# HELP karpenter_cluster_state_node_count Nodes in the view.\n"
        "# TYPE karpenter_cluster_state_node_count gauge\n"
        "karpenter_cluster_state_node_count 7.0\n"
        "# HELP karpenter_nodeclaims_created_total NodeClaims created.\n"
        "# TYPE karpenter_nodeclaims_created_total counter\n"
        'karpenter_nodeclaims_created_total{nodepool="default",reason="provisioned"} 1.0\n'
        'karpenter_nodeclaims_created_total{nodepool="odd\\"name\\n",reason="provisioned"} 2.0\n'
    )
    assert content_type.startswith("text/plain; version=")


def test_a_histogram_counts_up_to_each_bound() -> None:
    """A bucket holds what is at most its bound; the last holds everything."""
    registry, metrics = fresh()
    for seconds in (0.05, 0.1, 0.5, 100.0):
        metrics.observe(SOLVING, seconds)
    samples = scraped(registry)
    name = SOLVING.name
    assert [samples[f"{name}_bucket|{bound}"] for bound in ("0.1", "1.0", "10.0", "+Inf")] == [2, 3, 3, 4]
    assert samples[f"{name}_count"] == 4
    assert samples[f"{name}_sum"] == pytest.approx(100.65)


def test_a_summary_gives_quantiles_of_the_newest_observations() -> None:
    """Count and sum are of all observations, quantiles of the window."""
    registry, metrics = fresh()
    for seconds in [1000.0] * 7 + [float(n) for n in range(SUMMARY_WINDOW)]:
        metrics.observe(STARTUP, seconds, nodepool="default")
    samples = scraped(registry)
    quantiles = [samples[f"{STARTUP.name}|default|{share}"] for share in ("0", "0.5", "0.9", "0.99", "1")]
    assert quantiles == [0, 500, 899, 989, 999]
    assert samples[f"{STARTUP.name}_count|default"] == SUMMARY_WINDOW + 7
    assert samples[f"{STARTUP.name}_sum|default"] == 7000 + sum(range(SUMMARY_WINDOW))
    metrics.forget(STARTUP)
    assert scraped(registry) == {}


def test_a_gauge_read_at_scrape_time_forgets_what_is_gone() -> None:
    """Series live as long as the thing that they describe."""
    registry, metrics = fresh()
    limits = {"default": 10.0, "spare": 5.0}
    metrics.read(LIMIT, lambda: [({"nodepool": pool, "resource_type": "nodes"}, n) for pool, n in limits.items()])
    assert metrics.value(LIMIT, nodepool="spare", resource_type="nodes") == 5.0
    assert len(scraped(registry)) == 2
    del limits["spare"]
    assert scraped(registry) == {"karpenter_nodepools_limit|default|nodes": 10.0}
    assert metrics.value(LIMIT, nodepool="spare", resource_type="nodes") == 0.0


def test_series_can_be_forgotten_by_some_of_their_labels() -> None:
    """When a pool goes, everything that was counted for it goes."""
    registry, metrics = fresh()
    for pool in ("a", "b"):
        for resource in ("cpu", "memory"):
            metrics.set(LIMIT, 1, nodepool=pool, resource_type=resource)
    metrics.forget(LIMIT, nodepool="a")
    metrics.forget(LIMIT, nodepool="never there")
    assert sorted(scraped(registry)) == ["karpenter_nodepools_limit|b|cpu", "karpenter_nodepools_limit|b|memory"]
    with pytest.raises(ValueError, match="has no label zone"):
        metrics.forget(LIMIT, zone="x")


def test_a_declared_metric_shows_before_its_first_number() -> None:
    """Without labels as zero, so that a rate over it is right from the start."""
    registry, metrics = fresh()
    metrics.declare(NODES, SOLVING, CREATED)
    samples = scraped(registry)
    assert samples[NODES.name] == 0.0
    assert samples[f"{SOLVING.name}_count"] == 0.0
    assert b"# TYPE karpenter_nodeclaims_created_total counter" in exposition(registry)[0]


def test_a_mistake_in_labels_is_found_at_once() -> None:
    """Missing, unknown, twice declared, going down: errors that name the metric."""
    _, metrics = fresh()
    with pytest.raises(ValueError, match="has the labels reason, nodepool; given: reason"):
        metrics.add(CREATED, reason="x")
    with pytest.raises(ValueError, match="given: zone"):
        metrics.set(NODES, 1, zone="x")
    with pytest.raises(ValueError, match="cannot go down"):
        metrics.add(CREATED, -1, reason="x", nodepool="y")
    with pytest.raises(ValueError, match="declared twice"):
        metrics.declare(NODES, Gauge(NODES.name, "Something else."))
    with pytest.raises(ValueError, match="must end in _total"):
        Counter("karpenter_nodeclaims_created", "x")
    with pytest.raises(ValueError, match="must ascend"):
        Histogram("x_seconds", "x", buckets=(1.0, 0.5))
    with pytest.raises(ValueError, match="lower_case"):
        Gauge("bad-name", "x")


def test_two_processes_share_nothing() -> None:
    """Each process, and each test, counts for itself; the global registry never hears of us."""
    before = set(REGISTRY._names_to_collectors)
    first, second = new_metrics(), new_metrics()
    first.add(CREATED, reason="x", nodepool="y")
    assert second.value(CREATED, reason="x", nodepool="y") == 0.0
    assert CREATED.name in answered(first)[0].decode()
    assert CREATED.name not in answered(second)[0].decode()
    assert set(REGISTRY._names_to_collectors) == before


def test_a_scrape_says_what_is_running() -> None:
    """Version and the process's own numbers are there from the start, in the dialect that the scraper asks for."""
    metrics = new_metrics()
    body, _ = answered(metrics)
    assert b"growth_build_info{" in body
    assert b"process_cpu_seconds_total" in body
    body, content_type = answered(metrics, accept="application/openmetrics-text; version=1.0.0")
    assert content_type.startswith("application/openmetrics-text")
    assert body.endswith(b"# EOF\n")


def answered(metrics: Metrics, *, accept: str = "") -> tuple[bytes, str]:
    async def main(_: Kernel) -> tuple[bytes, str]:
        return await Scrapes(metrics, compute=SimCompute()).answer(accept)

    return sim.run(main, seed=1).value


def test_a_large_scrape_is_gathered_in_steps() -> None:
    """Between two turns of everybody else no more than a few hundred series are read, whatever the gauge has."""
    _, metrics = fresh()
    read: list[int] = []

    def many() -> Reading:
        for number in range(5000):
            read.append(number)
            yield {"resource_type": "cpu", "nodepool": f"pool-{number:04}"}, float(number)

    metrics.read(LIMIT, many)
    seen, longest, families = 0, 0, 0
    for family in metrics.gathered():
        longest, seen = max(longest, len(read) - seen), len(read)
        families += family is not None
    assert (seen, families) == (5000, 1)
    assert longest <= SERIES_A_STEP


def test_a_gauge_that_cannot_be_read_is_left_out() -> None:
    """Whether its reader fails or gives other labels than were declared, everything else is told."""
    _, metrics = fresh()
    metrics.set(NODES, 7)

    def broken() -> Reading:
        raise ZeroDivisionError

    def mistaken() -> Reading:
        return [({"other": "label"}, 1.0)]

    metrics.prepare(broken_steps)
    for wrong in (broken, mistaken):
        metrics.read(LIMIT, wrong)
        with capture_logs() as lines:
            names = [family.name for family in metrics.collect()]
        assert names == [NODES.name]
        assert [line.get("metric") or line["what"] for line in lines] == ["broken_steps", LIMIT.name]


def broken_steps() -> Iterator[None]:
    yield
    raise ZeroDivisionError


def test_two_scrapes_do_not_mix() -> None:
    """Two scrapers at once each get everything; others have their turn all the while."""
    _, metrics = fresh()
    at_work: list[str] = []

    def steps() -> Iterator[None]:
        assert not at_work, "one scrape began before the other had been gathered"
        at_work.append("scrape")
        yield from itertools.repeat(None, 10)
        at_work.clear()

    metrics.prepare(steps)
    metrics.read(LIMIT, lambda: [({"resource_type": "cpu", "nodepool": "default"}, 1.0)])

    async def main(_: Kernel) -> tuple[list[bytes], int]:
        scrapes = Scrapes(metrics, compute=SimCompute())
        both = asyncio.gather(scrapes.answer(), scrapes.answer())
        turns = 0
        for _turn in range(100):
            await asyncio.sleep(0)
            turns += bool(at_work)
        return [body for body, _ in await both], turns

    bodies, turns = sim.run(main, seed=1).value
    assert all(b'karpenter_nodepools_limit{nodepool="default"' in body for body in bodies)
    assert turns >= 9
