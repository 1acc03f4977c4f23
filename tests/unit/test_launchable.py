"""Launch flexibility: what a claim lists can be launched, for every key with `minValues` so many values of it."""

import datetime as dt
import random
from collections.abc import Sequence
from typing import Any

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.overlays import NodeOverlay
from growth.api.pods import Pod
from growth.cluster.assemble import Picture
from growth.cluster.shapes import Shapes
from growth.cluster.sorts import Sorts
from growth.controllers.provisioning.claims import Order
from growth.controllers.provisioning.demand import Marked
from growth.controllers.provisioning.passes import Answer, Question, answered
from growth.planning.solve import Options
from growth.providers.catalogues import builtin
from growth.units.money import Money
from tests.manifests import need, node_pool, overlay, pod
from tests.unit.launching import enough, launchable, orders, values_by_choice, written

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SHAPES = Shapes()
EURO = 1_000_000_000
SERVED = frozenset({("karpenter.kwok.sh", "KWOKNodeClass")})
MARK: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
KWOK = builtin("kwok")
FAMILY = "karpenter.kwok.sh/instance-family"
TYPE = names.INSTANCE_TYPE_LABEL
# The document's own example.
EXAMPLE = (need(FAMILY, "In", "c", "m", "r", minValues=2), need(TYPE, "Exists", minValues=10))

packers = pytest.mark.parametrize("packer", ["cost", "first-fit"])


def asking(*needs: Json, **spec: Any) -> Json:
    return node_pool(template={"requirements": [*needs]}, **spec)


def asked(
    *pods: Json,
    pool: Json,
    catalogue: Catalogue = KWOK,
    daemons: Sequence[Pod] = (),
    overlays: Sequence[Json] = (),
    **options: Any,
) -> Answer:
    picture = Picture(
        daemons=daemons,
        overlays=[convert(each, NodeOverlay) for each in overlays],
        catalogue=catalogue,
        now=NOW,
        pending=tuple(SHAPES.keep(convert({**each, "status": MARK}, Pod)) for each in pods),
        pools=[convert(pool, NodePool)],
    )
    marked = Marked(now=100.0, age=1.0, since={}, sorts=frozenset())
    return answered(
        Question(picture=picture, marked=marked, sort=Sorts().of, served=SERVED, options=Options(**options))
    )


@packers
@pytest.mark.parametrize("terms", ["spot", "on-demand"])
def test_the_documents_example_can_launch_ten_types_of_two_families(terms: str, packer: str) -> None:
    """At least so many types and families can be launched as `minValues` asks for, counted in two ways."""
    pool = asking(*EXAMPLE, need(names.CAPACITY_TYPE_LABEL, "In", terms))
    (order,) = orders(asked(pod("p", cpu="1"), pool=pool, packer=packer))
    made, raw = written(order)
    assert len(values_by_choice(made, KWOK, TYPE)) >= 10
    assert len(values_by_choice(made, KWOK, FAMILY)) >= 2
    found = enough(raw, KWOK.types, order.pool)
    assert all(have >= wanted for have, wanted in found.values()), found
    assert {name for name, _, _ in launchable(raw, KWOK.types)} == set(order.types)


def sold(name: str, price: float, *, family: str = "f", arch: str = "amd64", cpu: int = 4, **more: Any) -> InstanceType:
    """A type, sold on demand in one zone unless its offerings are given."""
    at = round(price * EURO)
    offerings = more.pop("offerings", (Offering("z1", names.ON_DEMAND, at),))
    labels = {FAMILY: (family,), names.ARCH_LABEL: (arch,), names.OS_LABEL: ("linux",)}
    return InstanceType(name, labels, {"cpu": cpu * 1000, "memory": 16 << 30, "pods": 110}, tuple(offerings))


def only(answer: Answer) -> Order:
    (order,) = orders(answer)
    return order


def catalogue_of(*types: InstanceType) -> Catalogue:
    return Catalogue("kwok", "USD", types)


@packers
def test_the_price_is_that_of_the_cheapest_set_for_every_key_at_once(packer: str) -> None:
    """Three types, two families, two architectures: the dearest of the cheapest ones that satisfy all of them, fifty times as
    dear as the first, and not one more.
    """
    market = catalogue_of(
        sold("a", 0.01),
        sold("b", 0.012),
        sold("c", 0.3, family="g"),
        sold("d", 0.5, arch="arm64"),
        sold("e", 0.6, family="g", arch="arm64"),
        sold("f", 0.49, family="h"),
    )
    needs = (
        need(TYPE, "Exists", minValues=3),
        need(FAMILY, "Exists", minValues=2),
        need(names.ARCH_LABEL, "Exists", minValues=2),
    )
    order = only(asked(pod("p"), pool=asking(*needs), catalogue=market, packer=packer))
    assert order.types == ("a", "b", "c", "f", "d")
    assert order.max_price == order.planned.lowest_max_price == 500_000_000
    assert order.planned.price == 10_000_000
    found = enough(written(order)[1], market.types, order.pool)
    assert all(have >= wanted for have, wanted in found.values()), found


@packers
def test_flexibility_may_be_of_zones_and_terms(packer: str) -> None:
    """A second zone and a second kind of terms are bought as dear as they are."""
    places = (
        Offering("z1", names.SPOT, 10_000_000),
        Offering("z1", names.ON_DEMAND, 40_000_000),
        Offering("z2", names.SPOT, 25_000_000),
        Offering("z2", names.ON_DEMAND, 90_000_000),
    )
    needs = (need(names.ZONE_LABEL, "Exists", minValues=2), need(names.CAPACITY_TYPE_LABEL, "Exists", minValues=2))
    market = catalogue_of(sold("a", 0, offerings=places))
    order = only(asked(pod("p"), pool=asking(*needs), catalogue=market, packer=packer))
    assert order.max_price == 40_000_000
    assert len(launchable(written(order)[1], market.types)) == 3


@packers
def test_what_is_reserved_or_out_of_stock_is_counted_as_it_can_be_had(packer: str) -> None:
    """A full reservation and an offering without stock are no choice; a free reservation is one."""
    free = Offering("z1", names.RESERVED, 100, reservation="r", reservation_capacity=1)
    full = Offering("z1", names.RESERVED, 100, reservation="s", reservation_capacity=0)
    market = catalogue_of(
        sold("a", 0, offerings=(free, Offering("z1", names.ON_DEMAND, 100_000_000))),
        sold("b", 0, offerings=(full, Offering("z1", names.ON_DEMAND, 300_000_000))),
        sold("c", 0, offerings=(Offering("z1", names.ON_DEMAND, 200_000_000, available=False),)),
    )
    order = only(asked(pod("p"), pool=asking(need(TYPE, "Exists", minValues=2)), catalogue=market, packer=packer))
    assert order.planned.price == 100
    assert order.max_price == 300_000_000
    three = asked(pod("p"), pool=asking(need(TYPE, "Exists", minValues=3)), catalogue=market, packer=packer)
    assert three.plan is not None
    assert [each.pod for each in three.plan.unplaced] == ["default/p"]


@packers
def test_a_daemonset_of_one_family_keeps_no_other_type_out(packer: str) -> None:
    """What DaemonSets take of the expected type is not asked of the others, which they do not run on."""
    market = catalogue_of(sold("a", 0.1, family="f", cpu=4), sold("b", 0.2, family="g", cpu=2))
    daemon = convert(pod("agent", cpu="3", nodeSelector={FAMILY: "f"}), Pod)
    order = only(
        asked(
            pod("p", cpu="1"),
            pool=asking(need(TYPE, "Exists", minValues=2)),
            catalogue=market,
            daemons=[daemon],
            packer=packer,
        )
    )
    assert order.planned.requests["cpu"] == 4000
    assert len({name for name, _, _ in launchable(written(order)[1], market.types)}) == 2


@packers
def test_overlays_make_the_prices_that_count(packer: str) -> None:
    """With people's own prices a claim has no bound: it lists the types of the cheapest set, and is booked at the dearest that
    the cloud may launch of them.
    """
    market = catalogue_of(
        sold("a", 0.1),
        sold("b", 0, offerings=(Offering("z1", names.ON_DEMAND, EURO // 2), Offering("z2", names.ON_DEMAND, EURO))),
        sold("c", 0.6),
    )
    sale = overlay("sale", need(TYPE, "In", "b"), need(names.ZONE_LABEL, "In", "z1"), price="0.2")
    order = only(
        asked(
            pod("p"), pool=asking(need(TYPE, "Exists", minValues=2)), catalogue=market, overlays=[sale], packer=packer
        )
    )
    assert order.types == ("a", "b")
    assert order.planned.repriced
    assert order.max_price == order.planned.lowest_max_price == EURO
    assert len({name for name, _, _ in launchable(written(order)[1], market.types)}) == 2


@packers
def test_best_effort_keeps_the_price_and_lowers_the_wish(packer: str) -> None:
    """The cap wins: what cannot be launched within it is not asked for, and the claim says so."""
    pool = asking(*EXAMPLE, need(names.CAPACITY_TYPE_LABEL, "In", "on-demand"))
    order = only(asked(pod("p", cpu="1"), pool=pool, packer=packer, strict_min_values=False))
    made, raw = written(order)
    assert order.max_price <= order.planned.price * 125 // 100
    assert order.planned.min_values_relaxed
    assert made.metadata.annotations[names.MIN_VALUES_RELAXED_ANNOTATION] == "true"
    kept = {each.key: each.min_values for each in made.spec.requirements if each.min_values}
    have = {key: number for key, (number, _) in enough(raw, KWOK.types, order.pool).items()}
    assert kept[TYPE] == have[TYPE] < 10
    assert kept[FAMILY] == min(2, have[FAMILY])


@packers
def test_a_claim_lists_sixty_types_and_those_that_a_key_needs(packer: str) -> None:
    """Of a hundred types within the price the sixty cheapest, but for the dearest that no key needs."""
    market = catalogue_of(*(sold(f"t{at:03}", 1 + at / 1000, family="g" if at == 99 else "f") for at in range(100)))
    order = only(asked(pod("p"), pool=asking(need(FAMILY, "Exists", minValues=2)), catalogue=market, packer=packer))
    assert order.types == (*(f"t{at:03}" for at in range(59)), "t099")


@pytest.mark.parametrize("seed", range(5000, 5060))
def test_any_market_leaves_as_many_choices_as_every_key_asks_for(seed: int) -> None:
    """Whatever is sold, on whatever terms, in whatever limits: a claim that is made can be launched as flexibly as its pool
    asks for, its price is the least for which that holds, and what it lists is no more than that.
    """
    chosen = random.Random(seed)
    reserved = chosen.random() < 0.3
    number = chosen.choice([6, 15, 90])
    market = catalogue_of(*(_any_type(chosen, f"t{at:03}", reserved=reserved) for at in range(number)))
    keys = [FAMILY, TYPE, names.ZONE_LABEL, names.ARCH_LABEL, names.CAPACITY_TYPE_LABEL]
    needs = [
        need(key, "Exists", minValues=chosen.randint(2, 10 if key == TYPE else 2))
        for key in chosen.sample(keys, chosen.randint(1, 4))
    ]
    limits: Json = {"limits": {"cpu": str(chosen.choice([8, 20, 1000]))}} if chosen.random() < 0.4 else {}
    wanted = [pod(f"p{at}", cpu=str(chosen.choice([1, 2, 3]))) for at in range(chosen.randint(1, 6))]
    packer = chosen.choice(["cost", "first-fit"])
    sales = [overlay("sale", need(FAMILY, "In", chosen.choice("fgh")), priceAdjustment="-40%")]
    overlays = sales if chosen.random() < 0.2 else []
    answer = asked(*wanted, pool=asking(*needs, **limits), catalogue=market, overlays=overlays, packer=packer)
    for order in orders(answer):
        _, raw = written(order)
        found = enough(raw, market.types, order.pool)
        assert all(have >= wanted for have, wanted in found.values()), found
        assert {name for name, _, _ in launchable(raw, market.types)} == set(order.types)
        assert len(order.types) <= max(60, *(each["minValues"] for each in needs))
        if order.planned.repriced:
            assert order.max_price == order.planned.lowest_max_price
            assert names.MAX_PRICE_ANNOTATION not in raw["metadata"]["annotations"]
        elif order.max_price > order.planned.price * 125 // 100 and not reserved:  # a free place is for one claim
            price = Money(order.planned.lowest_max_price - 1, "USD").exact
            cheaper = {**raw, "metadata": {"annotations": {names.MAX_PRICE_ANNOTATION: price}}}
            fewer = enough(cheaper, market.types, order.pool)
            assert any(have < wanted for have, wanted in fewer.values())
            assert order.max_price == order.planned.lowest_max_price


def _any_type(chosen: random.Random, name: str, *, reserved: bool) -> InstanceType:
    cpu = chosen.choice([2, 4, 8, 16])
    base = chosen.choice([0.01, 0.02, 0.05, 0.1, 0.5]) * cpu
    offerings = [
        Offering(zone, terms, round(base * factor * chosen.uniform(0.8, 1.2) * EURO), available=chosen.random() < 0.9)
        for zone in ("z1", "z2", "z3")
        for terms, factor in ((names.SPOT, 0.4), (names.ON_DEMAND, 1.0))
        if chosen.random() < 0.7
    ]
    if reserved and chosen.random() < 0.3:
        offerings.append(Offering("z1", names.RESERVED, 10, reservation=f"r-{name}", reservation_capacity=1))
    family, arch = chosen.choice("fgh"), chosen.choice(["amd64", "amd64", "arm64"])
    return sold(name, 0, family=family, arch=arch, cpu=cpu, offerings=offerings)
