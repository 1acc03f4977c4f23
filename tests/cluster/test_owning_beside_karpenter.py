"""Growth beside a running Karpenter: it looks on without a trace, and afterwards its metrics read as Karpenter's did."""

import contextlib

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bench.owning import autoscaler, desk
from bench.owning.autoscaler import Running
from bench.owning.desk import Desk
from bench.peers.karpenter import kwok
from growth.api.kinds import Json
from growth.operator.parts import METRICS
from tests.cluster.owning import Autoscaled, deployment, is_true
from tests.needs import need
from tools.controlplane.plane import Plane

PODS = 9
# What the release after the pinned one counts by, besides.
NEWER = {
    "karpenter_nodeclaims_disrupted_total": frozenset({"consolidation_policy", "termination_mode"}),
    "karpenter_pods_disruption_initiated_total": frozenset({"consolidation_policy", "termination_mode"}),
}
# What its KWOK provider adds to the labels by which every Karpenter counts Nodes.
OF_THEIR_CLOUD = frozenset({"instance_cpu", "instance_family", "instance_memory", "instance_size"})
# What a workload that comes and goes without trouble gives no occasion to count.
UNEVENTFUL = frozenset(
    {
        "karpenter_nodeclaims_unhealthy_disrupted_total",  # repair, which is off unless it is asked for
        "karpenter_scheduler_queue_depth",  # while a pass runs
        "karpenter_scheduler_unfinished_work_seconds",
        "karpenter_voluntary_disruption_failed_validations_total",
        "karpenter_voluntary_disruption_queue_failures_total",
    }
)
# Long enough for what is counted late, and not for ever: not everything that is missing will come.
COUNTED_SECONDS = 60.0
DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets"


@pytest.fixture(scope="module")
def server(plane: Plane) -> Desk:
    """Both kinds of definitions are one: ours accept what Karpenter's do."""
    need(kwok.built(), "Karpenter's KWOK controller is not in the cache; build it with `make peer`")
    at = Desk(plane)
    autoscaler.prepare(at, autoscaler.GROWTH)
    return at


def up_and_down(
    running: Autoscaled, pool: str, counting: Running, *, expected: frozenset[str] = frozenset()
) -> dict[str, frozenset[str]]:
    """A workload that comes and goes, and with it its machines; what was counted meanwhile, with which labels.

    What is expected is waited for: an end is counted a moment after it was seen by everybody.
    """
    running.pool(pool, limits={"cpu": "100"})
    running.desk.create(DAEMON_SETS, daemon_set("daemon", pool=pool))
    running.deploy("giant", 1, pool=pool, cpu="900")  # fits nowhere and waits
    running.deploy(pool, PODS, pool=pool)
    found: dict[str, frozenset[str]] = {}

    def scraped_until_all_run() -> bool:
        found.update(label_sets(counting))  # some things are counted while pods wait, and only then
        return len(running.running(pool)) == PODS

    running.until(scraped_until_all_run, f"{PODS} pods run")
    running.until(lambda: all(is_true(each, "Initialized") for each in running.claims(pool)), "all is initialised")
    used = running.running(pool)[0]["spec"]["nodeName"]
    (claim,) = [each for each in running.claims(pool) if each.get("status", {}).get("nodeName") == used]
    running.delete("nodeclaim", claim["metadata"]["name"])  # drained
    running.wait_running(pool, PODS)
    found |= label_sets(counting)
    running.scale(pool, 0)
    running.desk.delete(f"{desk.APPS}/giant")
    running.until(lambda: not running.claims(pool) and not running.nodes(pool), f"{pool} is empty again")

    def scraped_until_all_is_counted() -> bool:
        found.update(label_sets(counting))
        return expected <= set(found)

    with contextlib.suppress(AssertionError):  # what is missing is told by whoever expects it
        running.until(scraped_until_all_is_counted, f"{pool} is counted", seconds=COUNTED_SECONDS)
    running.desk.delete(f"{DAEMON_SETS}/daemon")
    running.desk.delete(f"{desk.APPS}/{pool}")
    running.desk.delete(f"{desk.POOLS}/{pool}")
    return found


def daemon_set(name: str, *, pool: str) -> Json:
    body = deployment(name, 1, pool=pool, cpu="100m", memory="32Mi")
    body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"cpu": "200m"}
    del body["spec"]["replicas"]
    return {**body, "kind": "DaemonSet"}


def label_sets(process: Running) -> dict[str, frozenset[str]]:
    """By the metric's name, the labels of its series; what a histogram or summary adds is left out."""
    found: dict[str, frozenset[str]] = {}
    for family in text_string_to_metric_families(process.scrape()):
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
        theirs = up_and_down(seen, "theirs", peer)
        assert onlooker.alive

        def written() -> set[str]:
            return {each.resource for each in (*seen.writes_of("growth"), *seen.writes_of("growth-kwok"))}

        assert seen.until(written, "a Decision is written") == {"decisions"}

    with autoscaler.stopped_at_last(autoscaler.growth(plane, *autoscaler.QUICK)) as process:
        process.wait_ready()
        claimed = {each.name: frozenset(each.labels) for each in METRICS}
        expected = frozenset(name for name in claimed if name.startswith("karpenter_")) - UNEVENTFUL
        ours = up_and_down(Autoscaled(plane, process, server), "ours", process, expected=expected)
        text = process.scrape()
    differ = {
        name: (sorted(labels), sorted(theirs[name]))
        for name, labels in ours.items()
        if name in theirs and labels - NEWER.get(name, frozenset()) != theirs[name] - OF_THEIR_CLOUD
    }
    assert not differ, differ
    missing = [name for name in claimed if f"# TYPE {name}" not in text]
    assert not missing, missing
    assert {name: labels for name, labels in ours.items() if name in claimed} == {
        name: labels for name, labels in claimed.items() if name in ours
    }
    assert expected <= set(ours), "\n".join(sorted(expected - set(ours)))
