"""The last node of a pool goes with the pool: what is called the last, where looks are behind."""

import asyncio
import contextlib
import dataclasses

import pytest

from growth.api.clouds import CloudUnavailable, MachineNotFound
from growth.api.karpenter import NodeClaim
from growth.ports import Response
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Instance
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.test_linode_doubles import names_machine, stored, tagged
from tests.simulation.test_linode_pools import TIERS, made


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
