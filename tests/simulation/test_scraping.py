"""What a scrape of the running autoscaler shows while machines come and go: the names and labels that we claim."""

import asyncio

from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from growth.api.karpenter import NODE_CLAIM
from growth.api.workloads import DAEMON_SET
from growth.operator.metrics import exposition
from growth.operator.metrics_page import CLAIMED
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.replica import Replica, settings_of
from growth.sim.trials.owning.stage import Pool, Stage
from tests.manifests import workload

PODS = 6
# Told by the process that serves the port, and not by the autoscaler in it.
OF_THE_PROCESS = frozenset({"growth_build_info", "karpenter_build_info"})
# What a leak, a pod at the last moment and a broken Node give occasion to count: see the tests of collection, disruption
# and repair. The calls of an account, and what is flagged as available, are told of a cloud that has them: see the tests of
# Hetzner's purchases and flags, and of machines of Linode that nobody claims.
RARE = frozenset(
    {
        "growth_cloud_calls_limit",
        "growth_cloud_calls_remaining",
        "growth_cloud_calls_waiting",
        "growth_cloud_type_flagged_available",
        "growth_collected_total",
        "growth_lke_unclaimed_held",
        "growth_machines_in_vain_total",
        "growth_pod_sorts_in_vain",
        "karpenter_nodeclaims_unhealthy_disrupted_total",
        "karpenter_voluntary_disruption_failed_validations_total",
        "karpenter_voluntary_disruption_queue_failures_total",
    }
)

Found = dict[str, frozenset[str]]


def scraped(growth: Replica) -> Found:
    """By the metric's name the labels of its series, as Prometheus' text has them."""
    assert growth.metrics is not None
    registry = CollectorRegistry(auto_describe=False)
    registry.register(growth.metrics)
    body, _ = exposition(registry)
    found = {}
    for family in text_string_to_metric_families(body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        for sample in family.samples:
            found[name] = frozenset(sample.labels) - {"le", "quantile"}
    return found


async def watched(growth: Replica, *, seconds: int, every: float = 1.0) -> Found:
    """Everything that scrapes at this distance showed."""
    found: Found = {}
    for _ in range(int(seconds / every)):
        await asyncio.sleep(every)
        found |= scraped(growth)
    return found


async def add_daemon(stage: Stage) -> None:
    """A DaemonSet whose pods have limits; its controller brings one to each node."""
    body = workload("DaemonSet", "agent")
    body["metadata"]["namespace"] = "kube-system"
    body["spec"]["template"]["spec"]["containers"][0].setdefault("resources", {})["limits"] = {"cpu": "100m"}
    await stage.admin.create(DAEMON_SET, body, namespace="kube-system")


def test_every_metric_that_is_claimed_is_scraped_with_its_labels() -> None:
    """A workload comes, loses a machine, and goes: each metric has been there, each with exactly its labels."""

    async def main(kernel: Kernel) -> Found:
        stage = Stage(kernel)
        await stage.prepare(Pool(cpu="100"))
        growth = Replica(kernel, stage.cluster.server, settings=settings_of(disruptionPoll="2s"))
        growth.start()
        await stage.deploy("web", PODS)
        found = await watched(growth, seconds=20, every=0.25)  # some of it lasts no longer than a plan takes
        await stage.settle(pods=PODS, seconds=120)
        await add_daemon(stage)
        claims = (await stage.admin.list(NODE_CLAIM)).items
        await stage.admin.delete(NODE_CLAIM, claims[0].metadata.name)
        found |= await watched(growth, seconds=20)
        await stage.settle(pods=PODS, seconds=120)
        await stage.scale("web", 0)
        found |= await watched(growth, seconds=60)
        await stage.settle(pods=0, machines=0, seconds=120)
        return found

    found = sim.run(main, seed=1, limit_seconds=100_000).value
    claimed = {each.name: frozenset(each.labels) for each in CLAIMED if each.name not in OF_THE_PROCESS | RARE}
    assert {name: labels for name, labels in found.items() if name not in RARE} == claimed
