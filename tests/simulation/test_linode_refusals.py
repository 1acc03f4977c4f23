"""Refusals of Linode's in a purchase: whose they are, the type's, the pool's or the class'."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from growth.api import names
from growth.api.clouds import CreateError, InsufficientCapacity, NodeClassNotReady, QuotaExceeded
from growth.api.kinds import Json
from growth.ports import Response
from growth.sim.clouds.linode import Faults, Limits
from growth.sim.ports import Answer, Request
from tests.conformance.providers.stages import LkeStage, claim, need, on
from tests.simulation.class_keeping import kept, told
from tests.simulation.test_linode_pools import TIERS, made, wanted_of, writes


class Refusing:
    """The way to the fake on which purchases of a sort are refused, with a status, the field and the words."""

    def __init__(
        self, stage: LkeStage, field: str, which: Callable[[Json], bool], *, reason: str, status: int = 400
    ) -> None:
        self._stage = stage
        self._status = status
        self._failure = {"reason": reason, **({"field": field} if field else {})}
        self._which = which
        self.refused = 0

    async def __call__(self, request: Request) -> Response:
        if request.method == "POST" and self._which(msgspec.json.decode(request.body or b"{}")):
            self.refused += 1
            return Answer(self._status, {}, msgspec.json.encode({"errors": [self._failure]}))
        return await self._stage.fake(request)


@pytest.mark.parametrize("cloud", TIERS)
def test_a_pool_that_takes_no_more_nodes_leaves_the_next_type_to_be_had(cloud: str) -> None:
    """For a claim that allows it: of another type there is another pool. Nothing is left out for it."""

    async def body(stage: LkeStage) -> None:
        full = Refusing(stage, "count", lambda body: body.get("type") == stage.types[0], reason="Must be 1-100")
        provider = stage.provider(through=full)
        wanted = claim(stage, "web-1", labels={names.NODE_POOL_LABEL: "web"})
        assert (await made(provider, wanted)).instance_type == stage.types[1]
        assert full.refused
        catalogue = await provider.catalogue()
        assert all(offering.available for kind in catalogue.types for offering in kind.offerings)

    on(cloud, body)


@pytest.mark.parametrize("cloud", [*TIERS, "linode-instances"])
def test_a_refusal_that_is_about_a_type_is_not_the_classs(cloud: str) -> None:
    """The type is left out for a while and the next is bought; other claims of the class get theirs."""

    async def body(stage: LkeStage) -> None:
        odd = Refusing(stage, "type", lambda body: body.get("type") == stage.types[0], reason="Not for this cluster")
        provider = stage.provider(through=odd)
        wanted = claim(stage, "web-1", labels={names.NODE_POOL_LABEL: "web"})
        assert (await made(provider, wanted)).instance_type == stage.types[1]
        assert odd.refused
        offered = {kind.name: kind.offerings[0].available for kind in (await provider.catalogue()).types}
        assert (offered[stage.types[0]], offered[stage.types[1]]) == (False, True)
        with pytest.raises(InsufficientCapacity):
            await provider.create(wanted_of(stage, "web-2"))
        await made(provider, wanted_of(stage, "web-3", type_=stage.types[1]))

    on(cloud, body)


@pytest.mark.parametrize("cloud", [*TIERS, "linode-instances"])
def test_words_that_nobody_knows_are_about_the_type_where_the_region_lacks_it_by_now(cloud: str) -> None:
    """The region's list is read again before the class is blamed."""

    async def body(stage: LkeStage) -> None:
        cheap, dear = "g7-premium-2", "g7-premium-4"
        odd = Refusing(stage, "", lambda body: body.get("type") == cheap, reason="No.")
        provider = stage.provider(through=odd)
        await provider.catalogue()
        stage.fake.market.flags[cheap, stage.zone] = False
        either = claim(stage, "web-1", need(names.INSTANCE_TYPE_LABEL, cheap, dear))
        assert (await made(provider, either)).instance_type == dear
        stage.fake.market.flags[cheap, stage.zone] = True
        await asyncio.sleep(400)
        with pytest.raises(CreateError, match="refuses") as told:
            await provider.create(claim(stage, "web-2", need(names.INSTANCE_TYPE_LABEL, cheap)))
        assert not told.value.retryable

    on(cloud, body)


@pytest.mark.parametrize("cloud", [*TIERS, "linode-instances"])
def test_a_plan_that_the_region_lacks_holds_no_other_purchase(cloud: str) -> None:
    """Linode answers with 403: the type is left out, the next is bought at once, and no class hears of a token."""

    async def body(stage: LkeStage) -> None:
        cheap, dear = "g7-premium-2", "g7-premium-4"
        async with kept(stage) as provider:
            await provider.catalogue()
            stage.fake.market.flags[cheap, stage.zone] = False
            either = claim(stage, "web-1", need(names.INSTANCE_TYPE_LABEL, cheap, dear))
            found: list[object] = []
            for each in (either, wanted_of(stage, "web-3")):
                found += await asyncio.gather(made(provider, each), return_exceptions=True)
            assert [getattr(each, "instance_type", each) for each in found] == [dear, stage.types[0]]
            with pytest.raises(InsufficientCapacity):
                await provider.create(claim(stage, "web-2", need(names.INSTANCE_TYPE_LABEL, cheap)))
            assert (await told(stage))[0] == "True"

    on(cloud, body)


@pytest.mark.parametrize("cloud", TIERS)
def test_a_claim_whose_node_stands_gets_it_while_nobody_may_buy(cloud: str) -> None:
    """The limit is reached by its own node: what was bought is claimed, and only what would be bought waits a minute."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.limits = Limits(nodes=1)
        stage.fake.faults = Faults(late_id=1.0)
        provider, wanted = stage.provider(), wanted_of(stage, "first")
        with pytest.raises(CreateError, match="on its way"):
            await provider.create(wanted)
        with pytest.raises(QuotaExceeded):
            await provider.create(wanted_of(stage, "second", "db"))
        await asyncio.sleep(30)
        before = writes(stage)
        with pytest.raises(QuotaExceeded):
            await provider.create(wanted_of(stage, "third", "db"))
        assert writes(stage) == before
        assert (await provider.create(wanted)).claim == "first"

    on(cloud, body)


@pytest.mark.parametrize("field", ["placement_group.id", "firewall_id", "image"])
def test_a_limit_of_what_the_class_names_is_told_in_the_class(field: str) -> None:
    """No type is left out for it, and the account is not held to be full: another class gets its machine."""

    async def body(stage: LkeStage) -> None:
        odd = Refusing(stage, field, lambda body: body.get("label") == "web-1", reason="At its limit: no capacity")
        async with kept(stage, through=odd) as provider:
            with pytest.raises(CreateError, match="no capacity") as refused:
                await provider.create(claim(stage, "web-1"))
            assert not refused.value.retryable
            await asyncio.sleep(5)
            assert (await told(stage))[:2] == ("False", "Refused")
            catalogue = await provider.catalogue()
            assert all(offering.available for kind in catalogue.types for offering in kind.offerings)
            await stage.admin.create(stage.node_class, {"metadata": {"name": "other"}, "spec": {}})
            await made(provider, claim(stage, "web-2", node_class="other"))

    on("linode-instances", body)


@pytest.mark.parametrize("cloud", [*TIERS, "linode-instances"])
def test_a_claim_that_has_its_machine_is_answered_while_nobody_may_buy(cloud: str) -> None:
    """Whoever repeats a purchase that ended well buys nothing."""

    async def body(stage: LkeStage) -> None:
        stage.fake.account.limits = Limits(nodes=1, instances=1)
        provider, wanted = stage.provider(), wanted_of(stage, "first")
        machine = await made(provider, wanted)
        with pytest.raises(QuotaExceeded):
            await provider.create(wanted_of(stage, "second", "db"))
        assert (await provider.create(wanted)).provider_id == machine.provider_id

    on(cloud, body)


@pytest.mark.parametrize("cloud", TIERS)
@pytest.mark.parametrize("field", ["taints", "labels", ""])
def test_a_refusal_of_what_one_pool_asks_for_stops_no_other_pool(cloud: str, field: str) -> None:
    """Its claim ends with the vendor's words; the class is as good as before."""

    async def body(stage: LkeStage) -> None:
        said = "Taint keys must not use the domain linode.com"
        refusing = Refusing(stage, field, lambda body: "linode.com/x" in str(body), reason=said)
        provider = stage.provider(through=refusing)
        wanted = wanted_of(stage, "odd", "odd", taints=[{"key": "linode.com/x", "effect": "NoSchedule"}])
        with pytest.raises(CreateError, match=said) as told:
            await provider.create(wanted)
        assert not told.value.retryable
        await made(provider, wanted_of(stage, "good", "db"))

    on(cloud, body)


@pytest.mark.parametrize("field", ["firewall_id", "k8s_version", "update_strategy", "tags"])
def test_a_refusal_of_a_field_of_the_class_is_the_classs(field: str) -> None:
    """No other claim of it would fare better: nobody asks again for a while."""

    async def body(stage: LkeStage) -> None:
        refusing = Refusing(stage, field, lambda body: "type" in body, reason="Not so.")
        provider = stage.provider(through=refusing)
        with pytest.raises(CreateError, match="refuses"):
            await provider.create(wanted_of(stage, "first"))
        with pytest.raises(NodeClassNotReady, match=f"Not so. .in {field}."):
            await provider.create(wanted_of(stage, "second", "db"))
        assert refusing.refused == 1

    on("lke-enterprise", body)


@pytest.mark.parametrize("cloud", [*TIERS, "linode-instances"])
def test_a_conflict_is_tried_again(cloud: str) -> None:
    """As while the cluster is at work: neither the claim nor its class is at fault."""

    async def body(stage: LkeStage) -> None:
        busy = Refusing(stage, "", lambda body: "type" in body and not busy.refused, reason="Try later.", status=409)
        provider = stage.provider(through=busy)
        await made(provider, wanted_of(stage, "first"))
        assert busy.refused

    on(cloud, body)
