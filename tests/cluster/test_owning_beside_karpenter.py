"""Growth beside a running Karpenter: it looks on without a trace, and afterwards its metrics read as Karpenter's did."""

import os

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.owning import autoscaler, desk
from bench.owning.autoscaler import Running
from bench.owning.desk import Desk
from bench.peers.karpenter import kwok
from growth.operator.parts import METRICS
from tests.cluster.owning import Autoscaled
from tools.controlplane.plane import Plane

PODS = 12
# Karpenter counts these by labels of a Node that differ from cloud to cloud, or of its programming language.
LABELS_OF_THEIR_OWN = frozenset({"karpenter_build_info"})


@pytest.fixture(scope="module")
def server(plane: Plane) -> Desk:
    """Both kinds of definitions are one: ours accept what Karpenter's do."""
    if not kwok.built():
        message = "Karpenter's KWOK controller is not in the cache; build it with `make peer`"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    at = Desk(plane)
    autoscaler.prepare(at, autoscaler.GROWTH)
    return at


def up_and_down(running: Autoscaled, pool: str) -> None:
    """A workload that comes and goes, and with it its machines."""
    running.pool(pool)
    running.deploy(pool, PODS, pool=pool)
    running.wait_running(pool, PODS)
    running.scale(pool, 0)
    running.until(lambda: not running.claims(pool) and not running.nodes(pool), f"{pool} is empty again")
    running.desk.delete(f"{desk.APPS}/{pool}")
    running.desk.delete(f"{desk.POOLS}/{pool}")


def label_sets(process: Running, text: str) -> dict[str, frozenset[str]]:
    """By the metric's name, the labels of its series; what a histogram or summary adds is left out."""
    found: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(text):
        if family.name.startswith("karpenter_") and family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            found[name] = frozenset(family.samples[0].labels) - {"le", "quantile"}
    assert found, f"{process.name} has counted nothing"
    return found


def test_it_looks_on_beside_karpenter_and_counts_as_karpenter_does(plane: Plane, server: Desk) -> None:
    """With --observe no write but Decisions, by the server's own log, while Karpenter scales; then, alone, each metric
    that both have carries the labels that Karpenter gave it, and each that we claim is there.
    """
    with (
        autoscaler.stopped_at_last(autoscaler.karpenter(plane)) as peer,
        autoscaler.stopped_at_last(autoscaler.growth(plane, "--observe", log_name="observing.log")) as onlooker,
    ):
        peer.wait_ready()
        onlooker.wait_ready()
        seen = Autoscaled(plane, onlooker, server)
        up_and_down(seen, "theirs")
        theirs = label_sets(peer, peer.scrape())
        assert onlooker.alive
        written = {each.resource for each in (*seen.writes_of("growth"), *seen.writes_of("growth-kwok"))}
        assert written == {"decisions"}

    with autoscaler.stopped_at_last(autoscaler.growth(plane)) as process:
        process.wait_ready()
        up_and_down(Autoscaled(plane, process, server), "ours")
        ours = label_sets(process, process.scrape())
        text = process.scrape()
    differ = {
        name: (sorted(labels), sorted(theirs[name]))
        for name, labels in ours.items()
        if name in theirs and name not in LABELS_OF_THEIR_OWN and labels != theirs[name]
    }
    assert not differ, differ
    missing = [each.name for each in METRICS if f"# TYPE {each.name.removesuffix('_total')}" not in text]
    assert not missing, missing
