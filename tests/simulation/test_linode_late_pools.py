"""A pool of LKE whose making goes without an answer, or that lists do not show yet: no second one is asked for meanwhile."""

import asyncio
import json

import pytest

from growth.ports import Response
from growth.providers.linode.holdings import DOUBT_SECONDS
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_pools import Late, made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("seconds", [3, 12, 30, 50])
def test_a_pool_that_is_made_late_is_not_made_twice(tier: str, seconds: int) -> None:
    """Those who wait take what comes of it, and ask for what is left to ask for."""

    async def body(stage: LkeStage) -> None:
        late = Late(stage, "POST", "/pools", alone=True, seconds=seconds)
        provider = stage.provider(through=late)
        claims = [wanted_of(stage, f"claim-{each}") for each in range(4)]
        await asyncio.gather(*(made(provider, each) for each in claims))
        assert late.arrived.is_set()
        assert [pool.count for pool in pools_of(stage)] == [len(claims)]
        assert len(stage.fake.ledger.purchases) == len(claims)

    on(tier, body)


class BehindLists:
    """The way to the fake on which lists show a pool so many seconds after it was made; `again`: and lack it once more later."""

    def __init__(self, stage: LkeStage, *, seconds: float, again: float | None = None) -> None:
        self._stage = stage
        self._seconds = seconds
        self._again = again
        self.made: dict[int, float] = {}
        self.any_made = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        answer = await self._stage.fake(request)
        if not request.url.partition("?")[0].endswith("/pools") or answer.status != 200:
            return answer
        body = json.loads(answer.body)
        if request.method == "POST":
            self.made[body["id"]] = asyncio.get_running_loop().time()
            self.any_made.set()
            return answer
        shown = [each for each in body["data"] if self._shows(each["id"])]
        return Answer(200, dict(answer.headers), json.dumps({**body, "data": shown, "results": len(shown)}).encode())

    def _shows(self, number: int) -> bool:
        age = asyncio.get_running_loop().time() - self.made.get(number, 0.0)
        return age >= self._seconds and not (self._again is not None and self._again <= age < self._again + 30)


@pytest.mark.parametrize(("seconds", "again"), [(3, None), (10, None), (40, None), (0, 30)])
def test_a_pool_that_lists_do_not_show_yet_is_not_made_twice(tier: str, seconds: float, again: float | None) -> None:
    """It was answered for: whatever lists say, those who wait go on with it, and nobody waits for the lists."""

    async def body(stage: LkeStage) -> None:
        behind = BehindLists(stage, seconds=seconds, again=again)
        provider = stage.provider(through=behind)
        for name in ("first", "second"):
            began = asyncio.get_running_loop().time()
            await asyncio.gather(*(made(provider, wanted_of(stage, f"{name}-{each}")) for each in range(2)))
            assert asyncio.get_running_loop().time() - began < 25
            await asyncio.sleep(again or 0)
        assert len(behind.made) == 1
        assert [pool.count for pool in pools_of(stage)] == [4]
        assert len(stage.fake.ledger.purchases) == 4

    on(tier, body)


def test_a_pool_that_somebody_deletes_as_soon_as_it_is_made_is_made_again(tier: str) -> None:
    """Nobody can tell it from one that is not shown yet; but no longer than a write can be on its way."""

    async def body(stage: LkeStage) -> None:
        behind = BehindLists(stage, seconds=5)
        provider = stage.provider(through=behind)
        buying = asyncio.create_task(made(provider, wanted_of(stage, "one")))
        await behind.any_made.wait()
        (pool,) = pools_of(stage)
        stage.fake.account.remove_pool(pool)
        await asyncio.wait_for(buying, DOUBT_SECONDS + 100)
        first, second = behind.made.values()
        assert second - first <= DOUBT_SECONDS + 20
        assert [pool.count for pool in pools_of(stage)] == [1]

    on(tier, body)
