"""A move that has waited, weighed again."""

import dataclasses

import pytest

from growth.api import names
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Move, Situation
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.worth import changed_offers, too_little, too_much
from growth.planning.requirements import one_of
from tests.unit.planning.clusters import cluster, machine, pods, pool

OPTIONS = SearchOptions()


def moved(situation: Situation) -> Move:
    (move,) = decide(situation).moves
    return move


def priced(situation: Situation, price: int) -> Situation:
    """Every node costs so much."""
    return dataclasses.replace(
        situation, nodes=tuple(dataclasses.replace(node, price=price) for node in situation.nodes)
    )


def test_what_has_not_changed_is_still_worth_it() -> None:
    """Whoever decided it would decide it again, and its machine is for sale."""
    made = cluster(pool(), machine("a"), pods(1, on="a"))
    move = moved(made)
    assert move.replacements
    assert (too_little(move, made, OPTIONS), list(changed_offers(move, made))) == ("", [])


@pytest.mark.parametrize(("percent", "fine"), [(90, False), (100, False), (102, False), (104, True)])
def test_what_comes_must_save_a_part_of_what_goes(percent: int, *, fine: bool) -> None:
    """At the prices of now."""
    made = cluster(pool(), machine("a"), pods(1, on="a"))
    move = moved(made)
    free = dataclasses.replace(OPTIONS, eviction_cost=0, at_rest_percent=3)
    now = priced(made, move.replacements[0].planned.price * percent // 100)
    assert (too_little(move, now, free) == "") is fine


def test_pods_that_came_meanwhile_are_paid_for_too() -> None:
    """One eviction is worth it, forty are not."""
    of, node = pool(), machine("a")
    move = moved(cluster(of, node, pods(1, on="a")))
    dear = dataclasses.replace(OPTIONS, eviction_cost=500_000_000)
    assert too_little(move, cluster(of, node, pods(1, on="a")), dear) == ""
    more = cluster(of, node, pods(40, on="a", cpu="10m"))
    assert too_little(move, more, dear) == "at the prices of now moving 40 pods would cost more than it saves"


def test_pods_that_were_moved_meanwhile_ask_for_more() -> None:
    """A fifth of what goes, where they came by another move a moment ago."""
    made = cluster(pool(), machine("a"), pods(1, on="a"))
    move = moved(made)
    now = priced(made, move.replacements[0].planned.price * 110 // 100)
    free = dataclasses.replace(OPTIONS, eviction_cost=0)
    assert too_little(move, now, free) == ""
    again = dataclasses.replace(now, moved={"a-0": made.now})
    assert "moved a moment ago" in too_little(move, again, free)


def test_the_policy_is_asked_again() -> None:
    """Under Balanced what is disturbed by now counts."""
    of = pool(disruption={"consolidationPolicy": "Balanced"})
    other = [each for at in ("b", "c") for each in (machine(at), pods(15, on=at))]
    move = moved(cluster(of, machine("a"), pods(1, on="a"), *other))
    assert move.nodes == ("a",)
    more = cluster(of, machine("a"), pods(60, on="a", cpu="10m"), *other)
    assert "consolidationPolicy Balanced" in too_little(move, more, dataclasses.replace(OPTIONS, eviction_cost=0))


@pytest.mark.parametrize(("before", "after", "fine"), [(6, 6, True), (6, 1, False), (6, 8, True), (6, 5, True)])
def test_pods_that_left_meanwhile_are_not_bought_for(before: int, after: int, *, fine: bool) -> None:
    """Where less would do for those that are left. Who came instead of them, or needs as much, changes nothing."""
    of, node = pool(), machine("a")
    move = moved(cluster(of, node, pods(before, on="a")))
    assert move.replacements
    told = too_much(move, cluster(of, node, pods(after, on="a")), OPTIONS)
    assert (told == "") is fine
    if not fine:
        assert told == "5 of their pods left meanwhile, and for the others less would be bought"


@pytest.mark.parametrize("key", [names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL])
def test_a_type_counts_only_as_the_claim_may_be_bought(key: str) -> None:
    """Elsewhere or on other terms it may be for sale as it likes."""
    made = cluster(pool(), machine("a"), pods(1, on="a"))
    move = moved(made)
    (bought,) = move.replacements
    narrowed = {**bought.planned.requirements, key: one_of("none-such")}
    planned = dataclasses.replace(bought.planned, requirements=narrowed)
    other = dataclasses.replace(move, replacements=(dataclasses.replace(bought, planned=planned),))
    assert list(changed_offers(other, made)) == [f"{bought.types[0]} is not sold any more for that price"]
