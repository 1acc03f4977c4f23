"""Few nodes are weighed against all of them bought anew; where a budget lets only some go, the dearest begins."""

import pytest

from growth.planning.disruption.model import OwnedNode, Room
from tests.unit.planning.builders import kind, pods
from tests.unit.planning.searching import found, gone, only, owned

# Two of the old machines fit into the wide one, which then is hardly too dear; all three fit into one that is cheaper still.
OLD, WIDE, GOOD = (
    kind("old", 4, "16Gi", price=0.6),
    kind("wide", 16, "64Gi", price=1.45),
    kind("good", 12, "48Gi", price=1.4),
)


def nodes(*, more: int = 0) -> list[OwnedNode]:
    full = [owned(f"full-{at}", *pods(4, f"f{at}"), of=OLD, price=0) for at in range(more)]
    old = [owned(name, *pods(3, name), of=OLD) for name in "ab"]
    return [owned("wide", *pods(4, "w"), of=WIDE), *old, *full]


def test_all_are_replaced_at_once_where_that_is_cheaper_than_to_fill_one() -> None:
    """By three percent at least of what is left to pay, for it moves more pods."""
    made = found(*nodes(), sold=(OLD, WIDE, GOOD))
    assert (gone(made), [each.planned.instance_type for each in only(made).replacements]) == (
        ["a", "b", "wide"],
        ["good"],
    )
    near = kind("good", 12, "48Gi", price=1.42)
    assert gone(found(*nodes(), sold=(OLD, WIDE, near))) == ["a", "b"]


def test_many_nodes_are_not() -> None:
    """Seventeen are too many to be drawn together."""
    assert gone(found(*nodes(more=14), sold=(OLD, WIDE, GOOD))) == ["a", "b"]


def test_the_dearest_begins_and_the_others_follow() -> None:
    """Its machine has room for all of them from the start; the next decisions send them there and buy nothing."""
    move = only(found(*nodes(), sold=(OLD, WIDE, GOOD), room=Room(1, 1)))
    assert move.nodes == ("wide",)
    (bought,) = move.replacements
    assert (bought.planned.instance_type, bought.types, len(bought.planned.pods)) == ("good", ("good",), 4)
    left = [owned("good", *pods(4, "w"), of=GOOD), *nodes()[1:]]
    follows = only(found(*left, candidates="a b", sold=(OLD, WIDE, GOOD), room=Room(1, 1)))
    assert (follows.replacements, follows.destinations) == ((), ("good",))


@pytest.mark.parametrize("protected", ["a", "wide"])
def test_who_may_not_go_is_not_waited_for(protected: str) -> None:
    """What is bought is for those that can follow."""
    candidates = " ".join(name for name in ("a", "b", "wide") if name != protected)
    made = found(*nodes(), candidates=candidates, sold=(OLD, WIDE, GOOD), room=Room(1, 1))
    bought = [each.planned.instance_type for move in made.moves for each in move.replacements]
    assert "good" not in bought


@pytest.mark.parametrize(
    ("first", "price", "bought"),
    [
        pytest.param(4, 1.22, ["one"], id="hardly dearer"),
        pytest.param(4, 1.3, ["four"], id="dearer"),
        pytest.param(10, 1.22, ["four", "four", "four"], id="all are needed for the first"),
    ],
)
def test_where_little_of_what_is_drawn_comes_with_the_first_one_machine_for_all_is_taken(
    first: int, price: float, bought: list[str]
) -> None:
    """What does not come with the first node has to be bought later, by moves that may not pay then."""
    sold = (WIDE, kind("four", 4, "16Gi", price=0.4), kind("one", 12, "48Gi", price=price))
    others = [owned(f"old-{at}", *pods(1, f"o{at}"), of=OLD) for at in range(12 - first)]
    move = only(found(owned("wide", *pods(first, "w"), of=WIDE), *others, sold=sold, room=Room(1, 1)))
    assert move.nodes == ("wide",)
    assert [each.planned.instance_type for each in move.replacements] == bought
