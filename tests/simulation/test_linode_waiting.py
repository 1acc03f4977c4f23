"""What purchases of LKE nodes wait for, and for how long: the node that is on its way, slow answers, and what never comes."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CreateError, InsufficientCapacity
from growth.ports import Response
from growth.providers.linode import tags
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.account import Times
from growth.sim.ports import Request
from tests.conformance.providers.stages import LkeStage, claim, need, on
from tests.simulation.test_linode_pools import made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("allowed", [1, 2])
def test_a_node_on_its_way_is_waited_for_when_another_is_refused_its_type(tier: str, allowed: int) -> None:
    """What a purchase began with stays its type until its own is refused, however many types the claim allows."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = Faults(late_id=1.0)
        provider, kinds = stage.provider(), need(names.INSTANCE_TYPE_LABEL, *stage.types[:allowed])
        wanted = claim(stage, "a", kinds, labels={names.NODE_POOL_LABEL: "web"})
        with pytest.raises(CreateError, match="after 15 s"):
            await provider.create(wanted)
        await stage.sell_out(stage.types[0])
        with pytest.raises(InsufficientCapacity):
            await provider.create(wanted_of(stage, "b", "db"))
        assert (await made(provider, wanted)).instance_type == stage.types[0]
        assert [(pool.count, pool.kind.id) for pool in pools_of(stage)] == [(1, stage.types[0])]

    on(tier, body)


def test_a_type_that_is_refused_to_the_purchase_itself_gives_way(tier: str) -> None:
    """The next type is bought, and no more of the first is asked for."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await stage.sell_out(stage.types[0])
        wanted = claim(stage, "a", labels={names.NODE_POOL_LABEL: "web"})
        assert (await made(provider, wanted)).instance_type == stage.types[1]
        await stage.sell_out()
        assert (await made(provider, claim(stage, "b", labels={names.NODE_POOL_LABEL: "web"}))).instance_type == (
            stage.types[1]
        )

    on(tier, body)


class Slow:
    """The way to the fake on which, once it is so, every call about pools and every change of a machine takes so long."""

    def __init__(self, stage: LkeStage) -> None:
        self._stage = stage
        self.seconds = 0.0

    async def __call__(self, request: Request) -> Response:
        if self.seconds and ("/pools" in request.url or request.method == "PUT"):
            await asyncio.sleep(self.seconds)
        return await self._stage.fake(request)


@pytest.mark.parametrize("seconds", [2, 3, 4, 5, 6, 8, 9])
def test_a_create_ends_in_time_however_slow_answers_are(tier: str, seconds: int) -> None:
    """After 15 s nothing is begun, and until then something is; what was begun ends with its answer, the key is free, and
    nothing is sent twice.
    """

    async def body(stage: LkeStage) -> None:
        wire = Slow(stage)
        provider, loop = stage.provider(through=wire), asyncio.get_running_loop()
        claims = [wanted_of(stage, f"claim-{number}") for number in range(4)]
        await made(provider, claims[0])
        wire.seconds = seconds
        for wanted in claims[1:]:
            began = loop.time()
            try:
                await provider.create(wanted)
            except CreateError:
                # Only a wait that would end after the bound is not begun.
                assert loop.time() - began >= 15 - 1
            # A pass that began last has the list of pools, the pool and one write to wait for. Three more to look for it first,
            # and to be sure of it at the end.
            assert loop.time() - began < 15 + 3 * seconds + 3
        wire.seconds = 0
        await asyncio.gather(*(made(provider, each) for each in claims))
        stage.fake.faults, began = Faults(late_id=1.0), loop.time()
        claims.append(wanted_of(stage, "late"))
        with pytest.raises(CreateError):
            await provider.create(claims[-1])
        assert 15 - 1 <= loop.time() - began <= 15 + 3
        await made(provider, claims[-1])
        assert await stage.held() == sorted(each.metadata.uid for each in claims)
        assert len(stage.fake.ledger.purchases) == len(claims)

    on(tier, body)


@pytest.mark.parametrize(("every", "within"), [(90, 1200 + 300), (200, 1200 + 300), (400, 400)])
def test_a_count_that_no_node_stands_for_is_lowered_though_others_buy(tier: str, every: int, within: int) -> None:
    """Five minutes in which nothing is asked for, and it is gone: until then it may be one that was asked for later."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider()
        await made(provider, wanted_of(stage, "a"))
        stage.fake.faults = Faults(partial=1.0)
        with pytest.raises(CreateError):
            await provider.create(wanted_of(stage, "b"))
        stage.fake.faults = Faults()
        (pool,) = pools_of(stage)
        assert pool.count - len(pool.nodes) == 1
        began, took = asyncio.get_running_loop().time(), []

        async def bought(name: str) -> None:
            since = asyncio.get_running_loop().time()
            await made(provider, wanted_of(stage, name))
            took.append(asyncio.get_running_loop().time() - since)

        async def buying() -> None:
            for number in range(1200 // every):
                purchases.extend(asyncio.ensure_future(bought(f"claim-{number}-{each}")) for each in range(2))
                await asyncio.sleep(every)

        purchases: list[asyncio.Future[None]] = []
        traffic = asyncio.ensure_future(buying())
        while pool.count > len(pool.nodes):
            await asyncio.sleep(30)
            await provider.collect()
            assert asyncio.get_running_loop().time() - began < within + 60
        await traffic
        await asyncio.gather(*purchases)
        # Who counted on it: until a node of others was left for it, or until it was lost and a node of its own came.
        assert max(took) < 300 + every + 30
        assert (pool.count, len(stage.fake.ledger.purchases)) == (len(pool.nodes), 1 + len(took))

    on(tier, body)


def test_nodes_that_are_slow_are_not_taken_for_such_that_never_come() -> None:
    """Something is on its way at every look, and all of it comes: no more is asked for, and no count is lowered."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.times = Times(instance=(150, 150), listed=(126, 154))

        async def collecting() -> None:
            while True:
                await asyncio.sleep(30)
                await provider.collect()

        counts: list[int] = []

        async def watched(request: Request) -> Response:
            answer = await stage.fake(request)
            counts.extend(pool.count for pool in pools_of(stage))
            return answer

        provider = stage.provider(through=watched)
        collector = asyncio.ensure_future(collecting())
        purchases = []
        for batch in range(8):
            purchases += [
                asyncio.ensure_future(made(provider, wanted_of(stage, f"c-{batch}-{each}"))) for each in range(3)
            ]
            await asyncio.sleep(100)
        await asyncio.gather(*purchases)
        collector.cancel()
        assert counts == sorted(counts)
        assert counts[-1] == len(stage.fake.ledger.purchases) == len(purchases)

    on("lke-enterprise", body)


SIX = ("g6-standard-1", "g6-standard-2", "g6-standard-4", "g6-standard-6", "g6-standard-8", "g6-standard-16")
# Whatever is sold out, and whether nodes that are asked for come in time.
MARKETS = {"all is sold": ((), False), "nodes are late": (SIX[:1], True), "one is left": (SIX[:5], False)}


@pytest.mark.parametrize("market", MARKETS)
@pytest.mark.parametrize("held", [0, 3, 8, 11, 12, 13, 14, 14.5, 60])
def test_a_create_is_bounded_as_one_call_however_many_types_it_allows(tier: str, held: float, market: str) -> None:
    """Six types, the lock of the cheapest held for long: after 15.5 s at most there is an answer, and no type begins the time anew.
    What was claimed too late to be sure of it is the answer of the next try.
    """
    sold_out, late = MARKETS[market]

    async def body(stage: LkeStage) -> None:
        provider, loop = stage.provider(), asyncio.get_running_loop()
        wanted = claim(stage, "a", need(names.INSTANCE_TYPE_LABEL, *SIX), labels={names.NODE_POOL_LABEL: "web"})
        other = claim(stage, "other", need(names.INSTANCE_TYPE_LABEL, SIX[0]), labels={names.NODE_POOL_LABEL: "web"})
        await made(provider, other)
        await stage.sell_out(*sold_out)
        stage.fake.faults = Faults(late_id=1.0) if late else Faults()
        busy, done = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            async with (await provider.parts()).held.locks.held(tags.key_of(wanted, SIX[0])):
                busy.set()
                await asyncio.sleep(held)
            done.set()

        holder = asyncio.ensure_future(hold())
        await busy.wait()
        began = loop.time()
        try:
            await provider.create(wanted)
        except CreateError:
            assert loop.time() - began >= 15 - 3
        assert loop.time() - began <= 15.5
        await holder
        stage.fake.faults = Faults()
        machine = await made(provider, wanted)
        assert machine.instance_type in set(SIX) - set(sold_out)
        assert await stage.held() == ["uid-of-a", "uid-of-other"]
        assert len(stage.fake.ledger.purchases) == 2

    on(tier, body)
