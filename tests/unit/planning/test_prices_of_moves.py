"""What may be bought instead of nodes that go: Karpenter's rules of price, terms and types."""

from typing import Literal, get_args

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Move, Replacement
from growth.planning.disruption.search import SearchOptions
from growth.planning.requirements import one_of
from growth.planning.solve import Options as Planning
from growth.providers.catalogues import builtin
from tests.unit.planning.clusters import LARGE, SMALL, cluster, machine, pods, pool
from tests.unit.planning.disrupting import pdb

Packer = Literal["cost", "first-fit"]
PACKERS = get_args(Packer)
MIDDLE = "c-8x-amd64-linux"
PRICES = {
    (kind.name, each.zone, each.capacity_type): each.price or 0
    for kind in builtin("kwok").types
    for each in kind.offerings
}


def price(kind: str, terms: str = "on-demand") -> int:
    return PRICES[kind, "test-zone-a", terms]


def decided(*objects: Json | list[Json], packer: Packer = "cost", spot_to_spot: bool = False) -> Decided:
    search = SearchOptions(planning=Planning(packer=packer), spot_to_spot=spot_to_spot)
    return decide(cluster(*objects), Options(search=search))


def only(made: Decided) -> Move:
    (move,) = made.moves
    return move


def terms_of(replacement: Replacement) -> frozenset[str]:
    return replacement.planned.requirements[names.CAPACITY_TYPE_LABEL].values


@pytest.mark.parametrize("packer", PACKERS)
def test_every_type_that_may_come_costs_less_than_what_goes(packer: Packer) -> None:
    """Not only the one that is expected: whichever of them the cloud has."""
    (replacement,) = only(decided(pool(), machine("a"), pods(1, on="a"), packer=packer)).replacements
    assert all(price(name) < price(LARGE) for name in replacement.types)
    assert replacement.max_price < price(LARGE)
    assert replacement.planned.instance_type == SMALL


@pytest.mark.parametrize("packer", PACKERS)
def test_nothing_is_replaced_by_what_costs_the_same(packer: Packer) -> None:
    """Strictly less, or nothing: a node of the cheapest type for its pods stays."""
    assert decided(pool(), machine("a", SMALL), pods(1, on="a"), packer=packer).moves == ()
    assert decided(pool(types=(LARGE,)), machine("a"), pods(1, on="a"), packer=packer).moves == ()
    (replacement,) = only(
        decided(pool(types=(SMALL, LARGE)), machine("a"), pods(1, on="a"), packer=packer)
    ).replacements
    assert replacement.types == (SMALL,)


@pytest.mark.parametrize("packer", PACKERS)
def test_where_spot_would_do_spot_is_asked_for(packer: Packer) -> None:
    """From on-demand to either: an on-demand machine that came because spot was sold out could cost more."""
    of = pool(terms=("spot", "on-demand"))
    (replacement,) = only(decided(of, machine("a"), pods(1, on="a"), packer=packer)).replacements
    assert terms_of(replacement) == one_of("spot").values
    assert replacement.planned.price == price(SMALL, "spot")


@pytest.mark.parametrize("packer", PACKERS)
def test_the_same_type_on_spot_is_cheaper_and_enough(packer: Packer) -> None:
    """A full node moves from on-demand to spot."""
    of = pool(terms=("spot", "on-demand"), types=(LARGE,))
    (replacement,) = only(decided(of, machine("a"), pods(15, on="a"), packer=packer)).replacements
    assert (replacement.planned.instance_type, terms_of(replacement)) == (LARGE, one_of("spot").values)


def test_several_nodes_are_not_replaced_by_one_of_their_own() -> None:
    """Of two nodes one could have stayed: what comes must be cheaper than the same type among those that go.

    The pods of the smaller one need a label that nodes get now and the larger one lacks: only a new machine holds all.
    """
    labelled = pool(types=(LARGE, MIDDLE), disruption={"consolidateAfter": "0s"})
    labelled["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    theirs = pods(6, on="b")
    for pod in theirs:
        pod["spec"]["nodeSelector"] = {"team": "b"}
    made = decided(labelled, machine("a"), pods(9, on="a"), machine("b", MIDDLE), theirs)
    assert not any(move.replacements for move in made.moves)
    alone = decided(labelled, machine("b", MIDDLE), theirs[:1])
    assert alone.moves == ()


@pytest.mark.parametrize("packer", PACKERS)
def test_savings_are_an_hour_of_what_goes_less_what_comes(packer: Packer) -> None:
    """And evictions are the pods that must move."""
    move = only(decided(pool(), machine("a"), pods(3, on="a", cpu="500m"), packer=packer))
    assert move.savings == price(LARGE) - sum(each.planned.price for each in move.replacements)
    assert move.evictions == 3


def test_pods_that_nobody_can_make_leave_need_no_machine() -> None:
    """A budget that never allows an eviction keeps its pod where it is: drift buys no room for it."""
    drifted = pool(disruption={"consolidateAfter": "Never"}, types=(SMALL, LARGE))
    drifted["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    nodes = [
        machine("a", of=pool(), terminationGracePeriod="1h", conditions=("Launched", "Initialized", "Drifted")),
        pods(1, on="a"),
        pods(10, on="b"),
    ]
    for pod in nodes[2]:
        pod["spec"]["nodeName"] = "a"
    free = decide(cluster(drifted, *nodes))
    assert [each.planned.instance_type for move in free.moves for each in move.replacements] == [LARGE]
    held = decide(cluster(drifted, *nodes, budgets=(pdb("never", app="b", maxUnavailable=0),)))
    assert [each.planned.instance_type for move in held.moves for each in move.replacements] == [SMALL]


@pytest.mark.parametrize("packer", PACKERS)
def test_several_spot_nodes_need_no_fifteen_types(packer: Packer) -> None:
    """The rule is for one node alone, which could otherwise be replaced again and again."""
    of = pool(terms=("spot",), types=("m-8x-amd64-linux", LARGE))
    nodes = [each for at in "ab" for each in (machine(at, "m-8x-amd64-linux", terms="spot"), pods(1, on=at, cpu=5))]
    move = only(decided(of, *nodes, packer=packer, spot_to_spot=True))
    assert (sorted(move.nodes), [each.types for each in move.replacements]) == (["a", "b"], [(LARGE,)])


def spotted(number: int, *others: Json | list[Json]) -> list[Json | list[Json]]:
    """So many dear spot nodes, each with a pod that needs a machine of its own, beside others."""
    kind = "m-8x-amd64-linux"
    nodes = [
        each for at in range(number) for each in (machine(f"s{at}", kind, terms="spot"), pods(1, on=f"s{at}", cpu=6))
    ]
    return [*nodes, *others]


def of_spot(made: Decided) -> set[str]:
    """The spot nodes that go for machines."""
    return {name for move in made.moves if move.replacements for name in move.nodes if name.startswith("s")}


@pytest.mark.parametrize("packer", PACKERS)
def test_a_node_on_demand_among_those_that_go_opens_no_gate_for_spot(packer: Packer) -> None:
    """What comes in its place may be spot; what comes in the place of spot may not, while the gate is shut."""
    of = pool(terms=("spot", "on-demand"), types=("m-8x-amd64-linux", "c-8x-amd64-linux"))
    beside = (machine("dear", "m-8x-amd64-linux"), pods(1, on="dear", cpu=6))
    made = decided(of, *spotted(4, *beside), packer=packer)
    assert of_spot(made) == set()
    assert {name for move in made.moves for name in move.nodes} == {"dear"}


@pytest.mark.parametrize("packer", PACKERS)
def test_spot_nodes_that_are_swapped_together_need_fifteen_types_too(packer: Packer) -> None:
    """Two for two is twice one for one."""
    of = pool(terms=("spot",), types=("m-8x-amd64-linux", "c-8x-amd64-linux"))
    assert of_spot(decided(of, *spotted(2), packer=packer, spot_to_spot=True)) == set()
