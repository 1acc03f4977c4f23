"""What may be bought instead of nodes that go."""

import dataclasses

import pytest

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.planning.solve import Options
from tests.unit.planning.builders import EURO, FAMILY, LARGE, MEDIUM, TERMS, TYPE, kind, need, offering, pods
from tests.unit.planning.searching import FREELY, found, gone, only, owned

GATE = dataclasses.replace(FREELY, spot_to_spot=True)
AS_KARPENTER = dataclasses.replace(FREELY, planning=Options(packer="first-fit"))
BOTH = pytest.mark.parametrize("packer", ["first-fit", "cost"])


def both_ways(name: str, cpu: int, spot: float, on_demand: float, **more: object) -> InstanceType:
    """A type that is sold on both terms."""
    sold = (offering("a", spot, names.SPOT), offering("a", on_demand, names.ON_DEMAND))
    return kind(name, cpu, f"{4 * cpu}Gi", offerings=sold, **more)  # type: ignore[arg-type]


def on_spot(name: str, price: float, cpu: int = 4, **more: object) -> InstanceType:
    return kind(name, cpu, "16Gi", offerings=(offering("a", price, names.SPOT),), **more)  # type: ignore[arg-type]


def test_what_costs_the_same_is_not_bought() -> None:
    """Strictly less: otherwise nodes would be replaced for ever."""
    same = kind("same", 4, "16Gi", price=0.4)
    assert gone(found(owned("a", *pods(4, "x")), sold=(MEDIUM, same))) == []


def test_a_type_counts_with_its_dearest_offering() -> None:
    """Whichever zone comes, it must be cheaper."""
    uneven = kind("uneven", 4, "16Gi", offerings=(offering("a", 0.1), offering("b", 0.5)))
    assert gone(found(owned("a", *pods(4, "x")), sold=(MEDIUM, uneven))) == []
    even = kind("even", 4, "16Gi", offerings=(offering("a", 0.1), offering("b", 0.3)))
    assert gone(found(owned("a", *pods(4, "x")), sold=(MEDIUM, even))) == ["a"]


def test_several_machines_together_cost_less_than_what_goes() -> None:
    """At the price limits that they carry."""
    dear = kind("dear", 4, "16Gi", price=1.0)
    cheap = kind("cheap", 8, "32Gi", price=0.8)
    other = kind("other", 8, "32Gi", price=1.1)
    nodes = [owned(f"n{at}", *pods(4, f"p{at}"), of=dear) for at in range(4)]
    made = found(*nodes, sold=(dear, cheap, other), options=AS_KARPENTER)
    bought = [each for move in made.moves for each in move.replacements]
    assert len(bought) > 0
    for move in made.moves:
        assert sum(each.max_price for each in move.replacements) < len(move.nodes) * EURO
    for each in bought:
        assert each.types == each.planned.instance_types
        assert each.planned.price <= each.max_price


def test_a_list_is_not_much_dearer_than_its_first_type() -> None:
    """With the cost packer a stock-out falls through within reason, and never to what costs as much as what goes."""
    sold = [kind(f"k{at}", 4, "16Gi", price=0.1 + at / 100) for at in range(40)]
    bought = only(found(owned("a", *pods(4, "x")), sold=(MEDIUM, *sold))).replacements[0]
    assert bought.types == ("k0", "k1", "k2")
    assert bought.max_price == EURO * 12 // 100
    bought = only(found(owned("a", *pods(4, "x")), sold=(MEDIUM, *sold), options=AS_KARPENTER)).replacements[0]
    assert len(bought.types) == 30  # those below 0.4


def test_on_demand_goes_for_spot_alone() -> None:
    """Only spot was compared: a launch that fell back to on demand could cost more."""
    sold = (both_ways("m", 4, spot=0.1, on_demand=0.4),)
    bought = only(found(owned("a", *pods(4, "x"), of=sold[0]), sold=sold)).replacements[0]
    assert bought.planned.capacity_type == names.SPOT
    assert bought.planned.requirements[names.CAPACITY_TYPE_LABEL].values == {names.SPOT}


def test_spot_goes_for_on_demand_where_only_that_is_for_sale() -> None:
    """No gate is asked: what comes is not spot."""
    cheap = kind("cheap", 4, "16Gi", price=0.1)
    assert gone(found(owned("a", *pods(4, "x"), of=on_spot("s", 0.4), terms=names.SPOT), sold=(cheap,))) == ["a"]


@BOTH
def test_spot_goes_for_spot_only_behind_the_gate(packer: str) -> None:
    """And then only where fifteen types are cheaper: the fifteen cheapest are listed."""
    sold = [on_spot(f"s{at:02}", 0.1 + at / 100) for at in range(30)]
    node = owned("a", *pods(4, "x"), of=sold[20], terms=names.SPOT)
    way = dataclasses.replace(GATE, planning=Options(packer=packer))  # type: ignore[arg-type]
    closed = found(node, sold=sold, options=dataclasses.replace(way, spot_to_spot=False))
    assert closed.moves == ()
    assert "SpotToSpotConsolidation is disabled" in closed.kept[0].message
    bought = only(found(node, sold=sold, options=way)).replacements[0]
    assert bought.types == tuple(f"s{at:02}" for at in range(15))
    few = owned("a", *pods(4, "x"), of=sold[14], terms=names.SPOT)
    made = found(few, sold=sold, options=way)
    assert made.moves == ()
    assert made.kept[0].message.endswith("got 14")


@BOTH
def test_the_list_of_spot_types_grows_until_every_key_has_its_values(packer: str) -> None:
    """The cheapest prefix of at least fifteen that meets `minValues` of every key."""
    sold = [on_spot(f"s{at:02}", 0.1 + at / 100, family="f" if at < 17 else "g") for at in range(30)]
    node = owned("a", *pods(4, "x"), of=sold[25], terms=names.SPOT)
    wanted = [need(FAMILY, "Exists", least=2), need(TYPE, "Exists", least=3)]
    way = dataclasses.replace(GATE, planning=Options(packer=packer))  # type: ignore[arg-type]
    bought = only(found(node, sold=sold, needs=wanted, options=way)).replacements[0]
    assert bought.types == tuple(f"s{at:02}" for at in range(18))


def test_several_spot_nodes_go_for_one_with_fewer_choices() -> None:
    """The rule of fifteen is for single nodes."""
    sold = (on_spot("s", 0.4), on_spot("big", 0.5, cpu=8))
    nodes = [owned(name, *pods(3, name), of=sold[0], terms=names.SPOT) for name in "ab"]
    assert gone(found(*nodes, sold=sold, options=GATE)) == ["a", "b"]
    assert gone(found(*nodes, sold=sold)) == []


@BOTH
def test_min_values_hold_after_prices_were_compared(packer: str) -> None:
    """Types that are not cheaper do not count."""
    sold = [kind(f"k{at}", 4, "16Gi", price=0.1 + at / 10) for at in range(4)]
    node = owned("a", *pods(4, "x"), of=sold[2])
    way = dataclasses.replace(FREELY, planning=Options(packer=packer))  # type: ignore[arg-type]
    made = found(node, sold=sold, needs=[need(TYPE, "Exists", least=3)], options=way)
    assert made.moves == ()
    assert "minValues" in made.kept[0].message
    bought = only(found(node, sold=sold, needs=[need(TYPE, "Exists", least=2)], options=way)).replacements[0]
    assert bought.types == ("k0", "k1")


@BOTH
def test_what_costs_more_than_what_goes_is_no_choice(packer: str) -> None:
    """A type that comes by its reservation counts on demand too, unless that costs more than what goes."""
    reserved = offering("a", 0.0, names.RESERVED, reservation="r", places=2)
    asked = [need(TERMS, "Exists", least=2)]
    way = dataclasses.replace(FREELY, planning=Options(packer=packer))  # type: ignore[arg-type]
    for on_demand, moves in ((0.3, 1), (0.9, 0)):
        sold = kind("r", 4, "16Gi", offerings=(reserved, offering("a", on_demand)))
        made = found(owned("a", *pods(4, "x"), of=MEDIUM), sold=(MEDIUM, sold), needs=asked, options=way)
        assert len(made.moves) == moves
    assert "minValues" in made.kept[0].message


def test_min_values_hold_for_each_machine_of_a_move() -> None:
    """m→n: one machine that has too few types to choose from rejects the move."""
    dear = kind("dear", 4, "16Gi", price=1.0)
    cheap, other = kind("cheap", 8, "32Gi", price=0.8), kind("other", 8, "32Gi", price=0.9)
    nodes = [owned(f"n{at}", *pods(4, f"p{at}"), of=dear) for at in range(4)]
    asked = [need(TYPE, "Exists", least=2)]
    assert gone(found(*nodes, sold=(dear, cheap, other), needs=asked)) == ["n0", "n1", "n2", "n3"]
    assert gone(found(*nodes, sold=(dear, cheap), needs=asked)) == []


def test_a_type_that_goes_does_not_come_back_at_its_price() -> None:
    """Two nodes for one of the same type: one of them could have stayed. Only what is cheaper than it may come."""
    nodes = [owned("a", *pods(2, "x"), of=MEDIUM), owned("b", *pods(2, "y"), of=LARGE)]
    bought = [each for move in found(*nodes, candidates="a b").moves for each in move.replacements]
    assert all("medium" not in each.types and "large" not in each.types for each in bought)


def test_what_is_out_of_stock_is_not_bought() -> None:
    """Offerings that are not available compare with nothing."""
    gone_out = kind("out", 4, "16Gi", offerings=(offering("a", 0.1, available=False),))
    assert gone(found(owned("a", *pods(4, "x")), sold=(MEDIUM, gone_out))) == []
