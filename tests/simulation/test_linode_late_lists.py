"""Lists of LKE that show tags later than the machines have them: a claim's machine is found nevertheless, and is not bought twice."""

import asyncio

import pytest

from growth.api import names
from growth.api.clouds import CloudUnavailable, CreateError
from growth.ports import Response, TransportError
from growth.sim.clouds.linode import Faults
from growth.sim.clouds.linode.objects import Instance
from growth.sim.ports import Request
from tests.conformance.providers.stages import LkeStage, claim, on
from tests.simulation.test_linode_pools import CLAIM, Late, gone, made, pools_of, wanted_of

TIERS = ("lke", "lke-enterprise")
LATE = Faults(late_tags=1.0)


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Unanswered:
    """The way to the fake on which the first tags of that claim are written and no answer comes."""

    def __init__(self, stage: LkeStage, name: str) -> None:
        self._stage = stage
        self._claim = f"{CLAIM}:{name}"
        self.lost = False

    async def __call__(self, request: Request) -> Response:
        answer = await self._stage.fake(request)
        if not self.lost and request.method == "PUT" and self._claim in str(request.body):
            self.lost = True
            raise TransportError("the connection broke")
        return answer


def test_a_restart_buys_nothing_for_those_who_have_a_machine(tier: str) -> None:
    """Every claim is answered with the machine that it has, also where others that nobody has stand in its pool."""

    async def body(stage: LkeStage) -> None:
        small, large = stage.types
        claims = [wanted_of(stage, f"claim-{each}", type_=(small, large)[each % 2]) for each in range(20)]
        stage.fake.faults = LATE
        old = stage.provider()
        before = await asyncio.gather(*(made(old, each) for each in claims))
        for pool in pools_of(stage):
            stage.fake.account.scale(pool, pool.count + 2)
        await asyncio.sleep(5)
        new = stage.provider()
        after = await asyncio.gather(*(made(new, each) for each in claims))
        assert [each.provider_id for each in after] == [each.provider_id for each in before]
        assert len(stage.fake.ledger.purchases) == len(claims) + 4

    on(tier, body)


def test_a_purchase_of_another_type_is_not_begun_for_who_has_a_machine(tier: str) -> None:
    """The cheaper type could not be had; after a restart it can, and the claim keeps what it has."""

    async def body(stage: LkeStage) -> None:
        small, large = stage.types
        stage.fake.faults = LATE
        await made(stage.provider(), wanted_of(stage, "first", type_=large))
        await stage.sell_out(small)
        both = claim(stage, "both", labels={names.NODE_POOL_LABEL: "web"})
        machine = await made(stage.provider(), both)
        assert machine.instance_type == large
        await stage.sell_out()
        again = await made(stage.provider(), both)
        assert again.provider_id == machine.provider_id
        assert len(stage.fake.ledger.purchases) == 2

    on(tier, body)


def test_tags_that_were_written_without_an_answer_are_found(tier: str) -> None:
    """The same process looks at the machine itself, whatever lists say, and answers with it."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = LATE
        wire = Unanswered(stage, "first")
        provider, first = stage.provider(through=wire), wanted_of(stage, "first")
        with pytest.raises(CreateError):
            await provider.create(first)
        assert wire.lost
        second, machine = await asyncio.gather(made(provider, wanted_of(stage, "second")), made(provider, first))
        assert second.provider_id != machine.provider_id
        assert len(stage.fake.ledger.purchases) == 2
        assert await stage.held() == ["uid-of-first", "uid-of-second"]

    on(tier, body)


def test_a_machine_is_not_gone_because_lists_do_not_show_its_claim(tier: str) -> None:
    """Whoever ends a claim that names no machine hears that there is none when there is none, and not before."""

    async def body(stage: LkeStage) -> None:
        stage.fake.faults = LATE
        await made(stage.provider(), wanted_of(stage, "stays"))
        goes = wanted_of(stage, "goes")
        await made(stage.provider(), goes)
        await gone(stage.provider(), goes)
        assert [machine for machine in stage.fake.machines() if f"{CLAIM}:goes" in machine.tags] == []
        assert await stage.held() == ["uid-of-stays"]

    on(tier, body)


def test_a_machine_whose_tags_are_on_their_way_is_not_gone(tier: str) -> None:
    """They come after the claim is to end: the machine goes with it and is not left to a sweep."""

    async def body(stage: LkeStage) -> None:
        first = wanted_of(stage, "first")
        late = Late(stage, "PUT", f"{CLAIM}:first", seconds=8)
        provider = stage.provider(through=late)
        with pytest.raises(CreateError):
            await provider.create(first)
        with pytest.raises(CloudUnavailable):
            await provider.delete(first)
        await asyncio.wait_for(late.arrived.wait(), 60)
        await gone(provider, first)
        assert stage.fake.machines() == ()

    on(tier, body)


def test_a_machine_that_went_to_another_is_not_answered_with(tier: str) -> None:
    """Lists still show the first claim's tags when another process has written its own over them."""

    async def body(stage: LkeStage) -> None:
        taken: list[Instance] = []

        async def overwritten(request: Request) -> Response:
            answer = await stage.fake(request)
            if not taken and request.method == "PUT" and f"{CLAIM}:first" in str(request.body):
                (machine,) = stage.fake.machines()
                stage.fake.faults = LATE
                theirs = tuple(tag.replace(":first", ":other").replace("of-first", "of-other") for tag in machine.tags)
                stage.fake.account.retag(machine, theirs)
                taken.append(machine)
            return answer

        provider, first = stage.provider(through=overwritten), wanted_of(stage, "first")
        with pytest.raises(CreateError, match="went to another"):
            await provider.create(first)
        machine = await made(provider, first)
        assert machine.provider_id != f"linode://{taken[0].id}"
        assert await stage.held() == ["uid-of-first", "uid-of-other"]

    on(tier, body)


def test_a_list_that_failed_after_a_restart_is_asked_for_again(tier: str) -> None:
    """It fails just when the next process may look at what was left; as soon as it can be read, purchases go on."""

    async def body(stage: LkeStage) -> None:
        await made(stage.provider(), wanted_of(stage, "before"))
        await asyncio.sleep(70)
        down: list[bool] = []

        async def breaking(request: Request) -> Response:
            if down and request.method == "GET" and "/pools?" in request.url:
                raise TransportError("the connection broke")
            return await stage.fake(request)

        provider, wanted = stage.provider(through=breaking), wanted_of(stage, "after")
        await provider.parts()
        await asyncio.sleep(10.5)
        down.append(True)
        with pytest.raises(CreateError):
            await provider.create(wanted)
        down.clear()
        await asyncio.sleep(5)
        assert (await provider.create(wanted)).claim == "after"

    on(tier, body)
