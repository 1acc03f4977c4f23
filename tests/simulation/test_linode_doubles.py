"""Two machines tagged for one claim, as crashes leave them: collection settles it, and the claim decides."""

import asyncio
import contextlib
from collections.abc import Sequence

import pytest

from growth.api import names
from growth.api.clouds import InvariantViolation
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.kube.errors import AlreadyExists
from growth.ports import Response, TransportError
from growth.providers.linode.provider import LinodeProvider
from growth.sim.clouds.linode.objects import Instance
from growth.sim.ports import Request
from tests.conformance.providers.stages import LkeStage, on
from tests.simulation.crashing import Crashing, crashed
from tests.simulation.test_linode_crashes import MOST_REQUESTS
from tests.simulation.test_linode_pools import Late, machine_of, made

TIERS = ("lke", "lke-enterprise")
CLAIM = "karpenter.sh/nodeclaim"
# As often as the keeper collects.
PERIOD_SECONDS = 30


@pytest.fixture(params=TIERS)
def tier(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def stored(stage: LkeStage, name: str = "web-1") -> NodeClaim:
    """A claim that the cluster has, as it is now."""
    reference = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
    need = {"key": names.INSTANCE_TYPE_LABEL, "operator": "In", "values": [stage.types[0]]}
    meta = {"name": name, "labels": {names.NODE_POOL_LABEL: "web"}}
    with contextlib.suppress(AlreadyExists):
        await stage.admin.create(
            NODE_CLAIM, {"metadata": meta, "spec": {"nodeClassRef": reference, "requirements": [need]}}
        )
    return await stage.admin.get(NODE_CLAIM, name)


async def names_machine(stage: LkeStage, claim: NodeClaim, machine: Instance) -> None:
    status = {"providerID": f"linode://{machine.id}"}
    await stage.admin.patch(NODE_CLAIM, claim.metadata.name, {"status": status}, subresource="status")


class Tagging(Crashing):
    """Whoever tagged a machine for a claim is gone before the answer."""

    def __init__(self, stage: LkeStage) -> None:
        super().__init__(stage.fake, 0)

    async def __call__(self, request: Request) -> Response:
        answer = await self._fake(request)
        if request.method == "PUT" and CLAIM in str(request.body):
            self.crashed.set()
            raise TransportError("the connection broke")
        return answer


class Later(Crashing):
    """Counts requests once it is armed."""

    armed = False

    async def __call__(self, request: Request) -> Response:
        return await (super().__call__(request) if self.armed else self._fake(request))


async def doubled(stage: LkeStage, claim: NodeClaim) -> list[Instance]:
    """Two leaders at once, each crashed between its tags and its second look, in a pool with room for both. By number.

    The first is one; the second tagged another machine before it could see what the first did.
    """
    await made(stage.provider(), await stored(stage, "other"))
    (pool,) = stage.fake.account.pools.values()
    stage.fake.account.scale(pool, pool.count + 2)
    await asyncio.sleep(70)
    wire = Tagging(stage)
    assert await crashed(made(stage.provider(through=wire), claim), wire)
    (first,) = tagged(stage, claim.metadata.name)
    numbers = [node.instance for node in pool.nodes if node.instance is not None]
    open_ = (stage.fake.account.instances[each] for each in numbers)
    second = next(each for each in open_ if not any(tag.startswith(CLAIM) for tag in each.tags))
    stage.fake.account.retag(second, first.tags)
    found = tagged(stage, claim.metadata.name)
    assert len(found) == 2
    return found


def tagged(stage: LkeStage, name: str) -> list[Instance]:
    stage.fake.advance()
    return sorted((each for each in stage.fake.machines() if f"{CLAIM}:{name}" in each.tags), key=lambda each: each.id)


async def collected(provider: LinodeProvider, *, seconds: int) -> None:
    for _ in range(seconds // PERIOD_SECONDS):
        await provider.collect()
        await asyncio.sleep(PERIOD_SECONDS)


def machines(stage: LkeStage) -> Sequence[int]:
    stage.fake.advance()
    return sorted(each.id for each in stage.fake.machines())


@pytest.mark.parametrize("named", [None, 0, 1])
def test_of_two_machines_the_claims_own_stays(tier: str, named: int | None) -> None:
    """The one that it names, or the first while it names none; the other is gone after five minutes, and its node with it."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        kept = found[named or 0]
        if named is not None:
            await names_machine(stage, wanted, found[named])
        leader = stage.provider()
        with pytest.raises(InvariantViolation, match="2 machines are tagged"):
            await leader.create(wanted)
        await collected(leader, seconds=420)
        (other,) = tagged(stage, "other")
        assert machines(stage) == sorted([kept.id, other.id])
        (pool,) = stage.fake.account.pools.values()
        assert (pool.count, len(pool.nodes)) == (2, 2)
        assert (await leader.create(wanted)).provider_id == f"linode://{kept.id}"
        assert len(stage.fake.ledger.purchases) == 3
        deleted = [call.path for call in stage.fake.calls if call.method == "DELETE"]
        assert all("/nodes/" in path for path in deleted)

    on(tier, body)


def test_nothing_is_settled_while_a_write_may_be_on_its_way(tier: str) -> None:
    """Whoever tagged the second may still be about to give it back, or to write it into the claim."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        leader = stage.provider()
        await collected(leader, seconds=60)
        assert tagged(stage, "web-1") == found
        await names_machine(stage, wanted, found[1])
        await collected(leader, seconds=30)
        assert tagged(stage, "web-1") == found[1:]

    on(tier, body)


def test_what_a_purchase_answered_with_is_kept_before_the_claim_says_so(tier: str) -> None:
    """The answer is written into the claim whenever the server can be reached again."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        before = found[0].tags
        stage.fake.account.retag(found[0], tuple(tag for tag in before if CLAIM not in tag and "uid" not in tag))
        leader = stage.provider()
        machine = await made(leader, wanted)
        assert machine.provider_id == f"linode://{found[1].id}"
        stage.fake.account.retag(found[0], before)
        await collected(leader, seconds=420)
        assert tagged(stage, "web-1") == found[1:]

    on(tier, body)


def test_a_machine_that_another_claim_names_is_not_given_back(tier: str) -> None:
    """Late tags can have come over another claim's: it is that one's."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        await names_machine(stage, wanted, found[0])
        await names_machine(stage, await stored(stage, "third"), found[1])
        await collected(stage.provider(), seconds=420)
        assert (tagged(stage, "web-1"), tagged(stage, "third")) == (found[:1], found[1:])
        assert {each.id for each in found} <= set(machines(stage))

    on(tier, body)


def test_machines_of_a_claim_that_is_gone_are_left_to_the_sweep(tier: str) -> None:
    """The list shows both under the claim's name; nothing says that one of them is worth keeping."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        await stage.admin.delete(NODE_CLAIM, "web-1")
        leader = stage.provider()
        await collected(leader, seconds=420)
        shown = [each.provider_id for each in await leader.list() if each.claim_uid == wanted.metadata.uid]
        assert shown == [f"linode://{each.id}" for each in found]

    on(tier, body)


def test_a_machine_that_is_given_back_late_is_taken_from_nobody(tier: str) -> None:
    """Its tags were written without an answer, and again: until the first can no longer come it is for no other claim."""

    async def body(stage: LkeStage) -> None:
        wanted = await stored(stage)
        found = await doubled(stage, wanted)
        late = Late(stage, "PUT", f"/linode/instances/{found[1].id}", alone=True, seconds=50)
        leader = stage.provider(through=late)
        await collected(leader, seconds=90)
        assert late.sent.is_set()
        await leader.collect()
        assert tagged(stage, "web-1") == found[:1]
        third = await made(leader, await stored(stage, "third"))
        await asyncio.wait_for(late.arrived.wait(), 60)
        assert [each.provider_id for each in await leader.list() if each.claim == "third"] == [third.provider_id]
        assert f"{CLAIM}:third" in machine_of(stage, third).tags

    on(tier, body)


def test_a_settlement_that_crashes_after_any_request_is_settled_by_the_next(tier: str) -> None:
    """Given back and not known, or removed and not known: one machine a claim at the end."""

    async def body(stage: LkeStage) -> int:
        claims = []
        for after in range(1, MOST_REQUESTS):
            claims.append(await stored(stage, f"web-{after}"))
            await doubled(stage, claims[-1])
            await asyncio.sleep(300)
            cloud = Later(stage.fake, after)
            leader = stage.provider(through=cloud)
            await collected(leader, seconds=60)
            cloud.armed = True
            died = await crashed(leader.collect(), cloud)
            await collected(stage.provider(), seconds=420)
            assert all(len(tagged(stage, each.metadata.name)) == 1 for each in claims)
            assert stage.unclaimed() == 0
            if not died:
                return after
        raise AssertionError("it never ended")

    assert on(tier, body) > 6  # or it crashed nowhere
