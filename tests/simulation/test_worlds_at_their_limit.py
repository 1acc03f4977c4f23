"""A pool that has as many nodes as it may have, in the whole world: scheduler, cloud, and every controller of ours."""

import asyncio

import pytest

from growth.api import names
from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.workloads import DEPLOYMENT
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests
from growth.sim.scenario.model import PodShape
from growth.sim.seams import Step
from growth.sim.trials.owning.stage import Pool
from growth.sim.world.world import World

SECONDS = 100_000
BLOCKED = "No allowed disruptions for disruption reason {} due to node hard limit"


class Seen:
    """What became of the pool in the end, and on the way there."""

    def __init__(self) -> None:
        self.most = 0
        self.types: list[str] = []
        self.blocked: set[str] = set()
        self.pending = 0
        self.bought = 0
        self.evicted: set[str] = set()
        self._there: set[str] = set()

    def __call__(self, step: Step) -> None:
        if step.which[1] == "nodeclaims":
            self.bought += step.old is None
            (self._there.discard if step.new is None else self._there.add)(step.key[1])
            self.most = max(self.most, len(self._there))
        if step.which[1] == "pods" and step.verb == "evict":
            self.evicted.add(step.last["metadata"]["uid"])


def size(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(names.KWOK_INSTANCE_CPU_LABEL, "")


def shrunk(mode: str, *, limit: int, shapes: tuple[tuple[str, int, int], ...], drift: bool = False) -> Seen:
    """Deployments of (cpu, pods at first, pods later) on a pool with a limit that lets large machines in only."""
    seen = Seen()

    async def main(kernel: Kernel) -> None:
        world = World(kernel)
        world.witness.listeners.append(seen)
        await world.begin()
        pool = Pool(
            nodes=limit, sizes=("4", "16"), consolidate_after="20s", policy="WhenEmptyOrUnderutilized", limit_mode=mode
        )
        await world.admin.create(NODE_POOL, pool.body())
        world.start()
        for number, (cpu, first, _) in enumerate(shapes):
            body = manifests.deployment(f"app-{number}", first, PodShape(cpu=cpu, memory="256Mi"))
            await world.admin.create(DEPLOYMENT, body, namespace="default")
        await asyncio.sleep(300)
        assert len((await world.admin.list(NODE_CLAIM)).items) == limit
        for number, (_, _, later) in enumerate(shapes):
            await world.admin.patch(DEPLOYMENT, f"app-{number}", {"spec": {"replicas": later}}, namespace="default")
        if drift:
            changed = {"spec": {"template": {"metadata": {"labels": {"edition": "2"}}}}}
            await world.admin.patch(NODE_POOL, "default", changed)
        await asyncio.sleep(3600)
        seen.types = sorted(map(size, (await world.admin.list(NODE_CLAIM)).items))
        told = (await world.admin.list(EVENT)).items
        seen.blocked = {each.message for each in told if each.reason == names.DISRUPTION_BLOCKED}
        seen.pending = sum(pod.status.phase != "Running" for pod in await world.cluster.pods())
        world.check()

    sim.run(main, seed=3, limit_seconds=SECONDS)
    return seen


def test_at_a_hard_limit_nothing_is_replaced_and_the_pool_says_why() -> None:
    """One large machine is all that may be: it stays though a small one would do, and no pod is disturbed."""
    seen = shrunk("Hard", limit=1, shapes=(("1", 12, 2),))
    assert (seen.types, seen.most, seen.bought, len(seen.evicted), seen.pending) == (["16"], 1, 1, 0, 0)
    assert BLOCKED.format("Underutilized") in seen.blocked


def test_at_a_hard_limit_deletions_go_on_and_make_room() -> None:
    """Two large ones: the pods of one fit on the other. With one node gone there is room under the limit to replace it."""
    seen = shrunk("Hard", limit=2, shapes=(("1", 24, 2),))
    assert (seen.types, seen.most, seen.pending) == (["4"], 2, 0)


def test_a_soft_limit_holds_again_afterwards() -> None:
    """For a while there are two, and nobody takes one of them for a surplus: one purchase, each pod disturbed once."""
    seen = shrunk("Soft", limit=1, shapes=(("1", 12, 2),))
    assert (seen.types, seen.most, seen.bought, len(seen.evicted), seen.pending) == (["4"], 2, 2, 2, 0)
    assert not any("node hard limit" in each for each in seen.blocked)


@pytest.mark.parametrize(("mode", "most", "bought"), [("Hard", 1, 1), ("Soft", 2, 2)])
def test_drift_at_the_limit(mode: str, most: int, bought: int) -> None:
    """Its pods need all of the machine: Hard keeps what has drifted and says so, Soft replaces it once."""
    seen = shrunk(mode, limit=1, shapes=(("1", 12, 12),), drift=True)
    assert (seen.types, seen.most, seen.bought, seen.pending) == (["16"], most, bought, 0)
    assert (BLOCKED.format("Drifted") in seen.blocked) == (mode == "Hard")
