"""The worn cluster of the benchmarks is one that could exist, and Karpenter's rule does there what it says."""

import pytest

from bench import disrupt, worn
from bench.prefix import Prefix
from growth.api import names
from growth.units.resources import add
from tests.unit.planning.builders import LARGE, MEDIUM, SMALL, pods
from tests.unit.planning.searching import owned, situation


@pytest.mark.parametrize("mix", sorted(worn.MIXES))
def test_a_worn_cluster_could_exist(mix: str) -> None:
    """Every pod is on a node with room for it, and well under half of what is bought is used."""
    world = worn.worn(40, mix=mix)
    assert sum(map(len, world.pods.values())) == 600
    for view in world.situation().snapshot.nodes:
        assert all(view.allocatable[name] >= asked for name, asked in view.requested.items())
    assert max(world.use) < 0.55


def test_equal_arguments_give_equal_worlds() -> None:
    """Both sides of a comparison begin with the same cluster."""
    one, other = worn.drawn(20, mix="web"), worn.drawn(20, mix="web")
    assert one == other
    assert worn.raw_objects(*one) == worn.raw_objects(*other)


def test_moves_that_are_made_lose_no_pod() -> None:
    """Pods of nodes that go are bound elsewhere, or machines are bought for them."""
    world = worn.worn(20, mix="web")
    before = sorted(pod.uid for held in world.pods.values() for pod in held)
    rule = Prefix(world.situation())
    made = world.make([rule.move(rule.command())])
    assert made.evictions > 0
    assert sorted(pod.uid for held in world.pods.values() for pod in held) == before
    asked = add(*(view.requested for view in world.situation().snapshot.nodes))
    assert asked["pods"] == len(before)


@pytest.mark.parametrize("mix", sorted(worn.MIXES))
def test_to_the_end_the_search_is_not_behind_the_rule(mix: str) -> None:
    """In little what the benchmark shows at full size; small clusters end within a few percent of each other."""
    ours = disrupt._by_search(worn.worn(30, mix=mix), least=0.0)
    theirs = disrupt._by_prefix(worn.worn(30, mix=mix), least=0.0)
    assert ours["cost"] == theirs["cost"]
    assert ours["after"] <= 1.03 * theirs["after"] < 0.75 * ours["cost"]
    assert ours["late"] == 0


def test_the_rule_takes_the_longest_prefix_that_goes() -> None:
    """Two of three go for nothing; what is dear for the pods that it disturbs comes first."""
    nodes = [owned("a", *pods(1, "x"), of=LARGE), owned("b", *pods(1, "y")), owned("c", *pods(2, "z"))]
    command = Prefix(situation(*nodes, sold=(LARGE,))).command()
    assert (command.decision, command.nodes) == ("delete", ("a", "b"))


def test_the_rule_replaces_by_what_is_cheaper_for_certain() -> None:
    """A single large node goes for the types that cost less than it."""
    command = Prefix(situation(owned("a", *pods(2, "x"), of=LARGE), sold=(SMALL, MEDIUM, LARGE))).command()
    assert (command.decision, command.types) == ("replace", ("small", "medium"))


def test_the_rule_does_not_touch_spot_for_spot() -> None:
    """The gate is closed, as Karpenter's is."""
    sold = worn.kwok().types
    chosen = next(kind for kind in sold if kind.name == "c-16x-amd64-linux")
    node = owned("a", *pods(1, "x"), of=chosen, terms=names.SPOT, zone="test-zone-a")
    assert Prefix(situation(node, sold=(chosen,))).command().decision == "no-op"
