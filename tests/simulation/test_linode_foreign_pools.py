"""LKE pools that somebody else made for a key of ours: Karpenter's provider for Linode, before Growth came, or another Growth."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import InvariantViolation
from growth.sim.clouds.linode.objects import Pool
from tests.conformance.providers.stages import LkeStage, claim, need, on
from tests.simulation.test_linode_pools import TIERS, add_pool, gone, made, pools_of, wanted_of, writes

# As karpenter-provider-linode tags its pools now, as it did before, as people do by hand, and as a Growth of before tags them.
UPSTREAM = (
    "kubernetes.io/cluster/production=owned",
    "karpenter.sh/nodepool=web",
    "lke-cluster-name=production",
    "karpenter.k8s.linode/linodenodeclass=default",
    "karpenter.k8s.linode/lke-managed=true",
)
MARKS = {
    "upstream": UPSTREAM,
    "upstream with a colon": tuple(each.replace("=", ":", 1) for each in UPSTREAM),
    "karpenter": ("karpenter.sh/nodepool=web",),
    "another growth": (
        "karpenter.sh/nodepool:web",
        "growth.dev/cluster:another",
        "karpenter.k8s.linode/lke-managed:true",
    ),
}


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=MARKS, ids=list(MARKS))
def marks(request: pytest.FixtureRequest) -> tuple[str, ...]:
    return MARKS[request.param]


def _is_as_it_was(stage: LkeStage, pool: Pool, marks: tuple[str, ...]) -> bool:
    stage.fake.advance()
    machines = [stage.fake.account.instances[node.instance] for node in pool.nodes if node.instance is not None]
    ours = [tag for each in machines for tag in each.tags if "nodeclaim" in tag or "growth.dev/" in tag]
    return (pool.tags, pool.count, len(machines), set(ours) - set(marks)) == (marks, 2, 2, set())


def test_a_pool_that_is_not_growths_is_neither_used_nor_doubled(tier: str, marks: tuple[str, ...]) -> None:
    """Its key waits and says why; the pool is not tagged, grown, counted or collected, and no second one is made."""

    async def body(stage: LkeStage) -> None:
        foreign = add_pool(stage, *marks, count=2)
        await asyncio.sleep(400)
        provider, before = stage.provider(), writes(stage)
        for _ in range(3):
            with pytest.raises(
                InvariantViolation, match=f"pool {foreign.id} is tagged for web/.*growth.dev/cluster:.*remove"
            ):
                await provider.create(wanted_of(stage, "a"))
            assert await provider.collect() == 0
            await asyncio.sleep(300)
        assert writes(stage) == before
        assert _is_as_it_was(stage, foreign, marks)
        assert await provider.list() == []

    on(tier, body)


def test_other_keys_go_on_beside_a_pool_that_is_not_growths(tier: str, marks: tuple[str, ...]) -> None:
    """Another pool of that type, another type of that pool, and a pool of that name in the other API."""

    async def body(stage: LkeStage) -> None:
        foreign = add_pool(stage, *marks, count=2)
        await asyncio.sleep(400)
        provider, (small, large) = stage.provider(), stage.types
        kind = need(names.INSTANCE_TYPE_LABEL, small)
        claims = [
            wanted_of(stage, "a", "db", type_=small),
            wanted_of(stage, "b", "web", type_=large),
            claim(stage, "c", kind, labels={names.POOL_LABEL: "web"}),
            wanted_of(stage, "d"),
        ]
        stopped = []
        for each in claims:
            try:
                await made(provider, each)
            except InvariantViolation:
                stopped.append(each.metadata.name)
        assert stopped == ["d"]
        assert _is_as_it_was(stage, foreign, marks)
        assert await stage.held() == ["", "", "uid-of-a", "uid-of-b", "uid-of-c"]

    on(tier, body)


@pytest.mark.parametrize("how", ["removed", "its tag is off"])
def test_a_key_goes_on_when_the_pool_that_is_not_growths_is_gone(tier: str, how: str) -> None:
    """Removed, or no longer tagged for the key: then a pool of Growth's own is made."""

    async def body(stage: LkeStage) -> None:
        foreign = add_pool(stage, *UPSTREAM, count=2)
        await asyncio.sleep(70)
        provider = stage.provider()
        with pytest.raises(InvariantViolation):
            await provider.create(wanted_of(stage, "a"))
        if how == "removed":
            stage.fake.account.scale(foreign, 0)
            del stage.fake.account.pools[foreign.id]
        else:
            foreign.tags = tuple(each for each in foreign.tags if "nodepool" not in each)
        machine = await made(provider, wanted_of(stage, "a"))
        assert machine.claim == "a"
        assert len([each for each in pools_of(stage) if each is not foreign]) == 1

    on(tier, body)


def test_machines_of_before_are_given_back_beside_a_pool_that_is_not_growths(tier: str) -> None:
    """A pool that somebody made for the key later stops purchases, and no deletion of a claim's own machine."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        wanted = wanted_of(stage, "a")
        await made(provider, wanted)
        foreign = add_pool(stage, *UPSTREAM, count=2)
        await asyncio.sleep(70)
        with pytest.raises(InvariantViolation):
            await provider.create(wanted_of(stage, "b"))
        await gone(provider, wanted)
        assert _is_as_it_was(stage, foreign, UPSTREAM)
        assert pools_of(stage) == [foreign]

    on(tier, body)
