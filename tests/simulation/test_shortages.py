"""What becomes of pods whose machines the cloud has not got, when the cloud itself does not remember what it refused."""

import asyncio
import dataclasses
import itertools
from typing import Any

from growth.api import names
from growth.api.clouds import CloudMachine, CloudUnavailable, InsufficientCapacity
from growth.api.core import CONFIG_MAP
from growth.api.events import EVENT
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.controllers.catalogue import REFUSED, CatalogueReader
from growth.controllers.environment import Environment
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.termination import Termination
from growth.providers.choice import choices
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.replica import Replica
from growth.sim.trials.owning import stage as owning
from tests.manifests import need
from tests.simulation.buying import Buyer, Stage, staged, told, with_settings
from tests.simulation.clouds import TYPE, ScriptedCloud


class ShortCloud(ScriptedCloud):
    """Refuses the types that it has not got, and goes on listing them as available."""

    def __init__(self, *missing: str) -> None:
        super().__init__()
        self.missing = set(missing)
        self.refusals: list[float] = []
        self.silent = False

    async def create(self, claim: NodeClaim) -> CloudMachine:
        found = [each for each in choices(claim, self.sold) if each.type.name not in self.missing]
        if not found:
            self.calls["create"] += 1
            self.refusals.append(asyncio.get_running_loop().time())
            raise InsufficientCapacity("none of them is there")
        return await super().create(claim)

    async def catalogue(self) -> Catalogue:
        if self.silent:
            raise CloudUnavailable("it does not say what it sells")
        return await super().catalogue()


SMALL = "c-2x-amd64-linux"


async def begin(stage: Stage, cloud: ShortCloud, *types: str, **settings: Any) -> Environment:
    """A pool of these types, everything that buys, and a pod that waits."""
    await stage.begin()
    await stage.add_pool("default", need(names.INSTANCE_TYPE_LABEL, "In", *types))
    env = stage.environment(cloud=cloud, settings=with_settings(**settings))
    reader = CatalogueReader(env)
    parts = (reader, Lifecycle(env, catalogue=reader), Termination(env))
    Buyer(stage, env)
    stage.start(*(part.run() for part in parts))
    await stage.cluster.add_replica_set("web", 1)
    return env


def test_what_was_refused_is_asked_for_again_after_three_minutes_and_not_before() -> None:
    """One claim in three minutes, not one a second; the pod says that what could hold it cannot be bought now."""

    async def body(stage: Stage) -> None:
        cloud = ShortCloud(SMALL)
        env = await begin(stage, cloud, SMALL)
        await asyncio.sleep(170)
        assert len(cloud.refusals) == 1
        assert env.metrics.value(REFUSED) == 4, "one in each zone"
        (said,) = await told(stage, names.FAILED_SCHEDULING)
        assert "what could hold it cannot be bought now (c-2x-amd64-linux in test-zone-a" in said
        await asyncio.sleep(430)
        between = [later - earlier for earlier, later in itertools.pairwise(cloud.refusals)]
        assert len(between) == 3
        assert all(180 <= seconds <= 195 for seconds in between), between

    staged(body)


def test_how_long_what_was_refused_is_left_out_can_be_set() -> None:
    """With `refusedTTL` of 20 seconds it is asked for so often, and no oftener."""

    async def body(stage: Stage) -> None:
        cloud = ShortCloud(SMALL)
        await begin(stage, cloud, SMALL, refused_ttl=20.0)
        await asyncio.sleep(120)
        between = [later - earlier for earlier, later in itertools.pairwise(cloud.refusals)]
        assert len(between) >= 3
        assert all(20 <= seconds <= 35 for seconds in between), between

    staged(body)


def test_the_plan_after_a_refusal_takes_another_offering() -> None:
    """The cheapest is not there: the next dearer one is bought, within seconds."""

    async def body(stage: Stage) -> None:
        cloud = ShortCloud(SMALL)
        await begin(stage, cloud, SMALL, TYPE)
        await asyncio.sleep(10)
        assert len(cloud.refusals) == 1
        assert [each.instance_type for each in cloud.machines.values()] == [TYPE]

    staged(body)


def test_stock_that_is_back_is_bought_when_the_time_has_lapsed() -> None:
    """Three minutes after the refusal the offering is tried, though the cloud has not said what it sells meanwhile."""

    async def body(stage: Stage) -> None:
        cloud = ShortCloud(TYPE)
        await begin(stage, cloud, TYPE)
        await asyncio.sleep(100)
        cloud.missing.clear()
        cloud.silent = True
        await asyncio.sleep(70)
        assert not cloud.machines
        await asyncio.sleep(30)
        assert len(cloud.machines) == 1

    staged(body)


def test_a_refusal_is_of_the_places_that_the_claims_class_allows() -> None:
    """Nobody asked anywhere else: there machines of other classes are to be had, and are planned."""

    async def body(stage: Stage) -> None:
        cloud = ShortCloud(SMALL)
        places = {"default": "test-zone-a", "other": "test-zone-b"}
        of_classes = {name: tuple(_only_in(zone, kind) for kind in cloud.sold.types) for name, zone in places.items()}
        cloud.sold = dataclasses.replace(cloud.sold, of_classes=of_classes)
        env = await begin(stage, cloud, SMALL)
        await asyncio.sleep(60)
        assert len(cloud.refusals) == 1
        assert env.metrics.value(REFUSED) == 1
        assert env.state.catalogue is not None
        assert {
            name: [each.available for kind in types if kind.name == SMALL for each in kind.offerings]
            for name, types in env.state.catalogue.of_classes.items()
        } == {"default": [False], "other": [True]}

    staged(body)


def _only_in(zone: str, kind: InstanceType) -> InstanceType:
    offerings = [each for each in kind.offerings if each.zone == zone and each.capacity_type == names.ON_DEMAND]
    return dataclasses.replace(kind, offerings=tuple(offerings))


def test_a_cluster_whose_cloud_has_nothing_is_quiet_until_stock_is_back() -> None:
    """The whole autoscaler on the KWOK cloud: few claims while there is none, and a machine within minutes afterwards."""

    async def main(kernel: Kernel) -> int:
        stage = owning.Stage(kernel)
        await stage.prepare(owning.Pool())
        nothing: Json = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": {"noCapacity": "*/*/*"}}
        await stage.admin.create(CONFIG_MAP, nothing, namespace=owning.GROWTH_NAMESPACE)
        Replica(kernel, stage.cluster.server).start()
        await stage.deploy("web", 5)
        await asyncio.sleep(900)
        refused = [each for each in (await stage.admin.list(EVENT)).items if each.reason == "InsufficientCapacityError"]
        await stage.admin.delete(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=owning.GROWTH_NAMESPACE)
        await stage.settle(pods=5, seconds=240)
        return len(refused)

    # Every three minutes all is tried, tier by tier: a claim may cost little more than what was planned for it.
    assert 5 <= sim.run(main, seed=1, limit_seconds=100_000).value <= 4 * 900 / 180
