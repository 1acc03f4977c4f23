"""Looks at a pool that are behind, or tell no count: no machine goes for what they do not show, not with the last node either."""

import asyncio
import contextlib
import dataclasses

import msgspec
import pytest

from growth.api.clouds import CloudError, CloudUnavailable, CreateError, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.ports import Response
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Instance
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_doubles import names_machine, stored, tagged
from tests.simulation.test_linode_pools import TIERS, made, pools_of, writes


async def bought(stage: LkeStage, provider: LinodeProvider, name: str) -> tuple[NodeClaim, Instance]:
    """A claim with its machine, which it names."""
    wanted = await stored(stage, name)
    await made(provider, wanted)
    (machine,) = tagged(stage, name)
    await names_machine(stage, wanted, machine)
    return await stored(stage, name), machine


async def tried(provider: LinodeProvider, claim: NodeClaim) -> None:
    with contextlib.suppress(CloudUnavailable, MachineNotFound):
        await provider.delete(claim)


class Lagging:
    """Machines do not say that they go, though their nodes are gone."""

    def __init__(self, stage: LkeStage, *, seconds: float) -> None:
        self._stage = stage
        account = stage.fake.account
        account.times = dataclasses.replace(account.times, delete=(seconds, seconds))

    async def __call__(self, request: Request) -> Response:
        answer = await self._stage.fake(request)
        body = answer.body.replace(b'"status":"deleting"', b'"status":"running"')
        return Answer(answer.status, dict(answer.headers), body)


class Behind:
    """The pools as they were, from when that is said on."""

    def __init__(self, stage: LkeStage) -> None:
        self._stage = stage
        self._answers: dict[str, Response] = {}
        self.is_behind = False

    async def __call__(self, request: Request) -> Response:
        path = request.url.partition("?")[0]
        looks = request.method == "GET" and "/pools" in path
        if looks and self.is_behind and path in self._answers:
            return self._answers[path]
        answer = await self._stage.fake(request)
        if looks:
            self._answers[path] = answer
        return answer


def test_a_deletion_that_is_repeated_after_a_restart_takes_no_other_machine() -> None:
    """The node went already, and the pool does not list the other's yet: it is not the pool of this machine alone."""

    async def body(stage: LkeStage) -> None:
        lagging = Lagging(stage, seconds=200)
        first = stage.provider(through=lagging)
        ends, _ = await bought(stage, first, "ends")
        await asyncio.sleep(70)
        _, stays = await bought(stage, first, "stays")
        await first.delete(ends)
        await tried(stage.provider(through=lagging), ends)
        stage.fake.advance()
        assert stays.status != "deleting"

    on("lke-enterprise", body)


def test_a_machine_that_is_long_in_going_takes_no_other_with_it() -> None:
    """Its end is no longer remembered when it is asked for again, and another came meanwhile."""

    async def body(stage: LkeStage) -> None:
        provider = stage.provider(through=Lagging(stage, seconds=400))
        ends, _ = await bought(stage, provider, "ends")
        third, _ = await bought(stage, provider, "third")
        await asyncio.sleep(70)
        await provider.delete(ends)
        await asyncio.sleep(110)
        _, stays = await bought(stage, provider, "stays")
        await provider.delete(third)
        await asyncio.sleep(12)
        await tried(provider, ends)
        stage.fake.advance()
        assert stays.status != "deleting"

    on("lke-enterprise", body)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("who", ["the same process", "the next"])
def test_a_look_at_the_pool_that_is_behind_takes_no_other_machine(tier: str, who: str) -> None:
    """It shows one node and a count of one; the machine of another claim is known by its tags. The node alone goes."""

    async def body(stage: LkeStage) -> None:
        behind = Behind(stage)
        provider = stage.provider(through=behind)
        ends, machine = await bought(stage, provider, "ends")
        await asyncio.sleep(70)
        await provider.collect()
        _, stays = await bought(stage, stage.provider(), "stays")
        behind.is_behind = True
        await tried(stage.provider(through=behind) if who == "the next" else provider, ends)
        stage.fake.advance()
        assert stays.status != "deleting"
        assert machine.status == "deleting"

    on(tier, body)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("who", ["the same process", "the next"])
def test_a_count_that_is_behind_cuts_no_machine_off(tier: str, who: str) -> None:
    """It is raised from what is known to be there, and each claim has its machine."""

    async def body(stage: LkeStage) -> None:
        behind = Behind(stage)
        provider = stage.provider(through=behind)
        _, first = await bought(stage, provider, "first")
        await asyncio.sleep(70)
        await provider.collect()
        others = [(await bought(stage, stage.provider(), name))[1] for name in ("second", "third")]
        behind.is_behind = True
        asking = stage.provider(through=behind) if who == "the next" else provider
        await asyncio.sleep(15)
        with contextlib.suppress(CloudError):
            await asking.create(await stored(stage, "fourth"))
        stage.fake.advance()
        assert all(each.status != "deleting" for each in (first, *others))
        assert pools_of(stage)[0].count in {3, 4}

    on(tier, body)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("said", ["null", "nothing"])
def test_a_pool_that_tells_no_count_is_left_as_it_is(tier: str, said: str) -> None:
    """No count is not a count of none: what is bought waits until Linode tells it again."""

    async def body(stage: LkeStage) -> None:
        countless: list[bool] = []

        async def wire(request: Request) -> Response:
            answer = await stage.fake(request)
            if not countless or request.method != "GET" or "/pools" not in request.url:
                return answer
            found = msgspec.json.decode(answer.body)
            for each in found.get("data", [found]):
                del each["count"]
                each.update({"count": None} if said == "null" else {})
            return Answer(answer.status, dict(answer.headers), msgspec.json.encode(found))

        provider = stage.provider(through=wire)
        for name in ("first", "second"):
            await made(provider, await stored(stage, name))
        before = writes(stage)
        countless.append(True)
        with pytest.raises(CreateError) as told:
            await provider.create(await stored(stage, "third"))
        assert told.value.retryable
        assert writes(stage) == before
        countless.clear()
        await made(provider, await stored(stage, "third"))
        assert pools_of(stage)[0].count == 3

    on(tier, body)
