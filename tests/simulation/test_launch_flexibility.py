"""`minValues` from a pending pod to a machine: what caps refuse, what BestEffort says, what a stock-out costs."""

import asyncio
import datetime as dt
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pytest

from growth.api import names
from growth.api.conditions import find
from growth.api.core import NAMESPACE
from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.pods import POD, Pod
from growth.cluster.assemble import Picture
from growth.cluster.shapes import Shapes
from growth.cluster.sorts import Sorts
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.provisioning.demand import Marked
from growth.controllers.provisioning.passes import Question, answered
from growth.planning.solve import Options
from growth.units.money import Money
from tests.conformance.providers.stages import STAGES, AnyStage, on
from tests.conformance.providers.test_laws import until_made
from tests.manifests import need, node_pool, pod
from tests.simulation import owning
from tests.simulation.buying import Buyer, Stage, claims, staged, told, with_settings
from tests.unit.launching import orders, written

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
UNSCHEDULABLE: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
TYPE = names.INSTANCE_TYPE_LABEL
FAMILY = "karpenter.kwok.sh/instance-family"
EXAMPLE = (need(FAMILY, "In", "c", "m", "r", minValues=2), need(TYPE, "Exists", minValues=10))


async def _waits(stage: Stage, *, packer: str, **settings: Any) -> tuple[list[NodeClaim], list[str]]:
    """The claims and the complaints two minutes after a pod came that only a flexible pool could serve."""
    await stage.begin((NAMESPACE, {"metadata": {"name": "growth"}}))
    await stage.add_pool("default", *EXAMPLE)
    Buyer(stage, stage.environment(settings=with_settings(packer=packer, **settings)))
    await stage.admin.create(POD, pod("p", cpu="1"), namespace="default")
    await asyncio.sleep(120)
    return await claims(stage), await told(stage, "FailedScheduling")


packers = pytest.mark.parametrize("packer", ["cost", "first-fit"])


@packers
def test_a_cap_that_the_worst_price_exceeds_refuses_the_pod_with_the_reason(packer: str) -> None:
    """The expected price would fit; less choice than `minValues` ask for is not bought for it, and nothing else is."""
    found, messages = staged(lambda stage: _waits(stage, packer=packer, max_hourly=300_000_000)).value
    assert found == []
    assert len(messages) == 1
    assert "the cluster's cap --max-hourly $0.30 is reached: " in messages[0]
    assert "minValues of NodePool default" in messages[0]


@packers
def test_a_cap_that_leaves_enough_is_booked_at_the_worst_price(packer: str) -> None:
    """One machine is bought where two would fit at their expected price, but not at their worst."""

    async def body(stage: Stage) -> tuple[list[NodeClaim], list[str]]:
        await _waits(stage, packer=packer, max_hourly=1_200_000_000)
        await stage.admin.create(POD, pod("q", cpu="1500m"), namespace="default")
        await asyncio.sleep(120)
        return await claims(stage), await told(stage, "FailedScheduling")

    found, messages = staged(body).value
    assert len(found) == 1
    most = Money.parse(found[0].metadata.annotations[names.MAX_PRICE_ANNOTATION], "USD").nano
    assert 600_000_000 < most <= 1_200_000_000
    assert len(messages) == 1


@packers
def test_under_best_effort_the_cap_wins_and_the_claim_says_so(packer: str) -> None:
    """The claim has less to choose from, lowered wishes and the annotation, and costs no more than the cap leaves."""
    found, _ = staged(
        lambda stage: _waits(stage, packer=packer, max_hourly=60_000_000, min_values_policy="BestEffort")
    ).value
    (claim,) = found
    assert Money.parse(claim.metadata.annotations[names.MAX_PRICE_ANNOTATION], "USD").nano <= 60_000_000
    assert claim.metadata.annotations[names.MIN_VALUES_RELAXED_ANNOTATION] == "true"
    wishes = {each.key: each.min_values for each in claim.spec.requirements if each.min_values}
    listed = next(each.values for each in claim.spec.requirements if each.key == TYPE)
    assert wishes[TYPE] == len(listed) == 1


def test_a_claim_with_less_choice_carries_a_condition() -> None:
    """When it is launched, and with how many values it had; a claim that has enough carries none."""

    async def body(stage: owning.Stage) -> list[tuple[str, str]]:
        await stage.start(Lifecycle(stage.env))
        relaxed = {names.MIN_VALUES_RELAXED_ANNOTATION: "true", names.MAX_PRICE_ANNOTATION: "0.05"}
        wish = need(TYPE, "In", "c-2x-amd64-linux", "m-2x-amd64-linux", minValues=2)
        await stage.add_claim("less", annotations=relaxed, requirements=[wish])
        await stage.add_claim("enough", requirements=[wish])
        await asyncio.sleep(5)
        seen = [await stage.claim(name) for name in ("less", "enough")]
        found = [find(each.status.conditions, names.MIN_VALUES_RELAXED) for each in seen]
        return [(each.status, each.message) for each in found if each is not None]

    ((status, message),) = owning.on_stage(body).value
    assert status == "True"
    assert "growth.dev/max-price 0.05" in message
    assert f"2 of {TYPE}" in message


@packers
@pytest.mark.parametrize("cloud", sorted(STAGES))
def test_with_the_nine_cheapest_types_sold_out_the_tenth_is_bought(
    cloud: str, packer: Literal["cost", "first-fit"]
) -> None:
    """A claim that was planned with ten types gets the tenth by its own retries, on every cloud: no other is planned."""

    async def body(stage: AnyStage) -> tuple[Sequence[str], str, Sequence[str]]:
        provider = stage.provider()
        catalogue = await provider.catalogue()
        uses = {"group": stage.node_class.group, "kind": stage.node_class.kind, "name": "default"}
        pool = node_pool(template={"requirements": [need(TYPE, "Exists", minValues=10)], "nodeClassRef": uses})
        waiting = convert({**pod("p", cpu="500m"), "status": UNSCHEDULABLE}, Pod)
        picture = Picture(
            catalogue=catalogue, now=NOW, pending=(Shapes().keep(waiting),), pools=[convert(pool, NodePool)]
        )
        marked = Marked(now=100.0, age=1.0, since={}, sorts=frozenset())
        served = frozenset({(stage.node_class.group, stage.node_class.kind)})
        question = Question(
            picture=picture, marked=marked, sort=Sorts().of, served=served, options=Options(packer=packer)
        )
        (order,) = orders(answered(question))
        made, _ = written(order, catalogue.currency)
        stored = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, uid="uid-of-it"))
        await stage.sell_out(*order.types[:9])
        bought = await until_made(provider, stored, within=with_settings().launch_ttl)
        return order.types, bought.instance_type, await stage.held()

    types, bought, held = on(cloud, body)
    assert len(types) >= 10
    assert bought == types[9]
    assert list(held) == ["uid-of-it"]
