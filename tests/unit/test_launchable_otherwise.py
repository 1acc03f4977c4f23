"""Launch flexibility of what is not bought for waiting pods: static pools, drift, consolidation."""

import datetime as dt
from typing import Any, Literal

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.moves import Intent
from growth.cluster.assemble import Picture
from growth.controllers.disruption.moving import Market
from growth.controllers.disruption.orders import ordered
from growth.controllers.provisioning.claims import Order
from growth.controllers.sizing.offer import Offer, offered
from growth.planning.disruption.decide import Options as Deciding
from growth.planning.disruption.decide import decide
from growth.planning.disruption.search import SearchOptions
from growth.planning.solve import Options
from growth.providers.catalogues import builtin
from tests.manifests import AMD64, LINUX, need
from tests.unit.launching import enough, launchable, values_by_choice, written
from tests.unit.planning.clusters import cluster, machine, pods, pool

KWOK = builtin("kwok")
NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
FAMILY = "karpenter.kwok.sh/instance-family"
TYPE = names.INSTANCE_TYPE_LABEL
EXAMPLE = (need(FAMILY, "In", "c", "m", "r", minValues=2), need(TYPE, "Exists", minValues=10))
UP = ("Launched", "Registered", "Initialized")
LARGEST = "m-256x-amd64-linux"

Packer = Literal["cost", "first-fit"]
packers = pytest.mark.parametrize("packer", ["cost", "first-fit"])
terms = pytest.mark.parametrize("terms", ["spot", "on-demand"])


def asking(terms: str, **spec: Any) -> Json:
    return pool(requirements=[*EXAMPLE, need(names.CAPACITY_TYPE_LABEL, "In", terms), AMD64, LINUX], **spec)


def replacement(of: Json, *objects: Json | list[Json], packer: Packer) -> Order:
    """The claim that the only move buys, as the controller orders it."""
    situation = cluster(of, *objects)
    search = SearchOptions(planning=Options(packer=packer), spot_to_spot=True)
    (move,) = decide(situation, Deciding(search=search)).moves
    (bought,) = move.replacements
    return ordered(
        bought,
        name="default-00000",
        pool=convert(of, NodePool),
        market=Market({view.ref: view for view in situation.snapshot.pools}, "USD"),
        replaces=(),
        intent=Intent(reason=move.reason, at=NOW),
        now=NOW,
        bought_for={},
    )


def holds(order: Order, types: tuple[InstanceType, ...] = KWOK.types) -> None:
    """The law: ten types and two families, counted in two ways, and nothing else is listed."""
    made, raw = written(order)
    assert len(values_by_choice(made, KWOK, TYPE)) >= 10
    assert len(values_by_choice(made, KWOK, FAMILY)) >= 2
    found = enough(raw, types, order.pool)
    assert all(have >= wanted for have, wanted in found.values()), found
    assert {name for name, _, _ in launchable(raw, types)} == set(order.types)


@terms
def test_a_static_pool_buys_as_flexibly_as_its_minvalues_ask_for(terms: str) -> None:
    """Its claims list what can be launched, at the price that this needs."""
    static = convert(asking(terms, replicas=2), NodePool)
    offer = offered(Picture(catalogue=KWOK, now=NOW, pools=[static]), static, Options())
    assert isinstance(offer, Offer)
    order = offer.order("default-00000")
    holds(order)
    assert order.max_price == order.planned.lowest_max_price > order.planned.price * 125 // 100


@packers
@terms
def test_what_replaces_a_drifted_machine_is_as_flexible_as_a_purchase(packer: Packer, terms: str) -> None:
    """A drifted machine goes for one that can be launched as any of so many types."""
    drifted = machine("a", LARGEST, terms=terms, conditions=(*UP, "Drifted"))
    of = asking(terms, disruption={"consolidationPolicy": "WhenEmpty"})
    holds(replacement(of, drifted, pods(1, on="a"), packer=packer))


@packers
@terms
def test_what_replaces_a_dear_machine_is_flexible_and_cheaper_whatever_comes(packer: Packer, terms: str) -> None:
    """Consolidation lists so many types, and none of them may cost what goes."""
    order = replacement(asking(terms), machine("a", LARGEST, terms=terms), pods(1, on="a"), packer=packer)
    holds(order)
    (paid,) = {
        each.price or 0
        for kind in KWOK.types
        if kind.name == LARGEST
        for each in kind.offerings
        if each.capacity_type == terms
    }
    assert order.max_price < paid
