"""The ten worst bugs of other autoscalers, each as a small world in which it would show.

Whatever breaks a promise is a violation of the run; beside that each says what its bug would have done.
"""

import asyncio

import pytest

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.workloads import DEPLOYMENT
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.runs import run
from growth.sim.scenario import manifests
from growth.sim.scenario.model import Burst, Order, Outcome, PodShape, Scenario, Waves
from growth.sim.trials.owning.stage import Pool
from growth.sim.world.cluster import workload
from growth.sim.world.world import NAMESPACE_OF_GROWTH, World

PODS = 20
STEADY = Burst(name="app", pods=PODS, at="10s", lasts="10h", pod=PodShape(cpu="1"))
TIDES = Waves(name="app", low=0, high=PODS, period="5m", steps=1, pod=PodShape(cpu="1"))


def played(
    load: Burst | Waves, faults: str, *, hours: float = 0.5, limit: int = 30, after: str = "20s", **settings: str
) -> Outcome:
    """One pool of machines with four cores, and one workload."""
    four = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}
    pool = manifests.node_pool("default", requirements=(four,), limits={"nodes": str(limit)}, consolidate_after=after)
    scenario = Scenario(hours=hours, objects=(pool,), workloads=(load,), settings=dict(settings))
    outcome = run(Order(seed=7, scenario=scenario, hours=hours, faults=faults))
    assert outcome.violations == (), outcome.violations[0].story
    return outcome


@pytest.fixture(scope="module")
def undisturbed() -> Outcome:
    """How many machines the steady load needs."""
    return played(STEADY, "none")


def test_a_cloud_that_shows_nothing_loses_nothing(undisturbed: Outcome) -> None:
    """A throttled read was taken for a size of -1, and 197 of 200 nodes were deleted: unknown is not zero."""
    outcome = played(STEADY, "list-empty=1,not-found=1")
    assert (outcome.scale_ups, outcome.scale_downs) == (undisturbed.scale_ups, 0)
    busy = played(TIDES, "list-empty=1,not-found=1")
    assert busy.faults["list-empty"] > 0, "while machines came and went"


def test_machines_on_their_way_count(undisturbed: Outcome) -> None:
    """Upcoming nodes were ignored, and more were bought every ten seconds up to the maximum."""
    outcome = played(STEADY, "slow-join=1")
    assert outcome.scale_ups == undisturbed.scale_ups
    assert outcome.faults["slow-join"] == outcome.scale_ups


def test_a_leader_that_dies_between_purchase_and_record_leaks_nothing() -> None:
    """The leader was lost after the server was created and before anybody had written that down."""
    small = Burst(name="app", pods=3, at="10s", lasts="10h", pod=PodShape(cpu="1"))
    four = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4"]}
    scenario = Scenario(hours=0.4, objects=(manifests.node_pool("default", requirements=(four,)),), workloads=(small,))
    for crash_after in range(1, 8):
        outcome = run(Order(seed=7, scenario=scenario, hours=0.4, crash_after=crash_after))
        assert outcome.violations == (), outcome.violations[0].story
        assert outcome.scale_ups == 1, f"after write {crash_after}"


def test_a_node_name_that_comes_again_means_another_machine() -> None:
    """A reused address gave the old and the new machine one node name, and the wrong one was taken: key by provider ID."""
    outcome = played(TIDES, "name-reuse=1")
    assert outcome.faults["name-reuse"] > 0
    assert outcome.scale_downs > 0


def test_an_empty_node_that_gained_pods_stays() -> None:
    """A node was called empty, gained protected pods, and was deleted with them: taint, look again, then delete."""
    protected = PodShape(cpu="1", annotations={"karpenter.sh/do-not-disrupt": "true"})
    load = Waves(name="app", low=0, high=PODS, period="100s", steps=1, pod=protected)
    outcome = played(load, "watch-late=0.2,watch-cut=60", after="0s")
    assert outcome.faults["watch-late"] > 0
    assert outcome.scale_downs > 0


def test_a_watch_that_died_silently_is_found(undisturbed: Outcome) -> None:
    """The cache was never synced again, and for eighteen hours nothing was bought."""
    outcome = played(STEADY, "watch-silent=60,gone=60", hours=1.0)
    assert outcome.faults["watch-silent"] > 0
    assert outcome.scale_ups == undisturbed.scale_ups


def test_a_restart_buys_nothing_twice(undisturbed: Outcome) -> None:
    """After a restart the replicas overshot: nothing may be done before everything is known."""
    outcome = played(STEADY, "crash=400,watch-late=0.05", limit=undisturbed.scale_ups)
    assert outcome.scale_ups == undisturbed.scale_ups
    assert outcome.faults["crash"] > 0


def test_a_machine_that_joins_too_late_does_not_stay() -> None:
    """A node that came up after it had been given up ran for eight hours, and nobody used it."""
    outcome = played(STEADY, "slow-join=0.5", hours=1.0, registrationTTL="2m")
    assert outcome.faults["slow-join"] > 0
    assert outcome.scale_downs > 0, "those that were given up"


def test_a_foreign_node_stops_nobody(undisturbed: Outcome) -> None:
    """One Node that the cloud did not know stopped the whole loop."""
    outcome = played(STEADY, "foreign-node=120,other-cluster=120")
    assert outcome.faults["foreign-node"] > 0
    assert outcome.scale_ups == undisturbed.scale_ups


def test_a_backlog_is_not_killed_at_once() -> None:
    """After an outage a backlog of deletions ran at every restart: a sweep that would take many takes none, and says so."""

    async def main(kernel: Kernel) -> tuple[int, int, int]:
        world = World(kernel)
        await world.begin()
        await world.admin.create(NODE_POOL, Pool(sizes=("4",)).body())
        world.start()
        await world.admin.create(DEPLOYMENT, workload("app", PODS), namespace="default")
        await asyncio.sleep(600)
        # The claims are lost: a restore from a backup, or a cluster that is another one.
        await world.admin.patch(NODE_POOL, "default", {"spec": {"limits": {"nodes": "0"}}})
        bought = [each.metadata.name for each in (await world.admin.list(NODE_CLAIM)).items]
        for name in bought:
            await world.admin.delete(NODE_CLAIM, name)
            await world.admin.patch(NODE_CLAIM, name, {"metadata": {"finalizers": None}})
        left = []
        for _ in range(6):
            for replica in world.replicas:
                if replica.process is not None:
                    replica.process.crash()
            await asyncio.sleep(300)
            records = await world.admin.list(CONFIG_MAP, namespace=NAMESPACE_OF_GROWTH, labels=names.KWOK_MACHINE_LABEL)
            left.append(sum(each.data["state"] == "running" for each in records.items))
        held = await world.admin.get(CONFIG_MAP, names.COLLECTION_CONFIG_MAP, namespace=NAMESPACE_OF_GROWTH)
        return len(bought), min(left), sum(f"kwok://{name}" in "".join(held.data.values()) for name in bought)

    bought, left, named = sim.run(main, seed=7, limit_seconds=100_000).value
    assert bought > 3
    assert (left, named) == (bought, bought)
