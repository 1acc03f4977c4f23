"""Decisions about clusters that nobody thought of: whatever is decided, these laws hold."""

import collections
import dataclasses
from typing import Any

import hypothesis
from hypothesis import given
from hypothesis import strategies as st

from growth.api import names
from growth.api.kinds import Json
from growth.planning.disruption import words
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Situation
from growth.planning.disruption.room import outgrown, overdrawn, rooms
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.situating import Facts
from growth.planning.solve import Options as Planning
from tests.unit.planning.clusters import LARGE, SMALL, cluster, machine, pods, pool
from tests.unit.planning.disrupting import pdb

REASONS = (names.EMPTY, names.DRIFTED_REASON, names.UNDERUTILIZED)
BUDGETS = st.lists(
    st.builds(
        lambda nodes, reasons: {"nodes": nodes, **({"reasons": sorted(reasons)} if reasons else {})},
        st.sampled_from(("0", "1", "2", "10%", "50%", "100%")),
        st.sets(st.sampled_from(REASONS)),
    ),
    max_size=3,
)
POOLS = st.fixed_dictionaries(
    {
        "disruption": st.fixed_dictionaries(
            {
                "budgets": BUDGETS,
                "consolidateAfter": st.sampled_from(("0s", "10m", "Never")),
                "consolidationPolicy": st.sampled_from(("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced")),
                "nodeLimitMode": st.sampled_from(("Hard", "Soft")),
            }
        ),
        "limits": st.sampled_from(({}, {"nodes": 2}, {"nodes": 5}, {"nodes": 20})),
    }
)
NODES = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from((SMALL, "c-4x-amd64-linux", LARGE, "m-8x-amd64-linux", "no-such-type")),
            "pool": st.sampled_from(("one", "two", "gone")),
            "pods": st.integers(0, 4),
            "cpu": st.sampled_from(("100m", "400m", 1)),
            "age": st.integers(0, 10**6).map(float),
            "ready": st.booleans(),
            "annotated": st.sampled_from(("", "", "", "node", "pod")),
            "facts": st.builds(
                Facts,
                quiet_seconds=st.sampled_from((0.0, 300.0, 900.0)),
                nominated=st.sampled_from((False, False, False, True)),
                holds_buffer=st.sampled_from((False, False, False, True)),
                acting=st.sampled_from((False, False, False, False, True)),
                drifted=st.sampled_from(("", "", names.NODE_POOL_DRIFTED)),
            ),
        }
    ),
    max_size=8,
)


def situation(one: Json, two: Json, nodes: list[dict[str, Any]], guarded: int | None) -> Situation:
    objects: list[Json | list[Json]] = [pool("one", **one), pool("two", **two)]
    facts = {}
    protect = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
    for at, each in enumerate(nodes):
        name = f"n-{at}"
        facts[name] = each["facts"]
        marked = protect if each["annotated"] == "node" else {}
        objects.append(
            machine(name, each["kind"], of=each["pool"], age=each["age"], ready=each["ready"], annotations=marked)
        )
        held = protect if each["annotated"] == "pod" else {}
        objects.append(pods(each["pods"], on=name, cpu=each["cpu"], annotations=held))
    budgets = () if guarded is None else (pdb("guard", app=f"n-{guarded}"),)
    return cluster(*objects, facts=facts, budgets=budgets)


def checked(made: Situation, found: Decided) -> None:
    owned = {node.name: node for node in made.nodes}
    going = [name for move in found.moves for name in move.nodes]
    # Every node is moved once or stays with a reason, and never both.
    assert len(going) == len(set(going))
    assert set(going) | {each.node for each in found.kept} == set(owned) | {each.node for each in made.others}
    assert not set(going) & {each.node for each in found.kept}
    assert all(each.reason and each.message for each in found.kept)
    # What passes by itself is no news: nobody is told of it.
    assert all(each.waits for each in found.kept if each.reason in words.PASSING)
    # What is protected, promised, leaving or of no pool is never moved; what takes pods stays.
    for name in going:
        node = owned[name]
        assert node.pool in made.pools
        assert not any((node.protected, node.nominated, node.leaving, node.paused))
    assert not set(going) & {name for move in found.moves for name in move.destinations}
    for move in found.moves:
        nodes = [owned[name] for name in move.nodes]
        assert move.pools == tuple(dict.fromkeys(node.pool for node in nodes))
        if move.reason == names.UNDERUTILIZED:
            assert all(node.price is not None for node in nodes)
            assert move.savings is not None
            assert move.savings > 0
        if move.reason == names.DRIFTED_REASON:
            assert all(node.drifted for node in nodes)
    # Budgets and limits hold for each reason, with what the reasons before it took.
    pool_of = {node.name: node.pool for node in made.nodes}
    for reason in REASONS:
        own = [move for move in found.moves if move.reason == reason]
        assert not overdrawn(own, rooms(made, reason=reason), pool_of)
        assert not outgrown(own, rooms(made, reason=reason), pool_of)
    # All machines together stay within a Hard limit.
    bought = collections.Counter(each.planned.pool.name for move in found.moves for each in move.replacements)
    for view in made.snapshot.pools:
        if "nodes" in view.limits and bought[view.ref.name]:
            assert view.used.get("nodes", 0) + bought[view.ref.name] <= view.limits["nodes"]


@hypothesis.settings(max_examples=60)
@given(one=POOLS, two=POOLS, nodes=NODES, guarded=st.none() | st.integers(0, 7), spot=st.booleans())
def test_whatever_the_cluster_a_decision_keeps_the_rules(
    one: Json, two: Json, nodes: list[dict[str, Any]], guarded: int | None, *, spot: bool
) -> None:
    """Each node once; nothing protected; within budgets and limits; nothing to save without a price; equal again."""
    made = situation(one, two, nodes, guarded)
    options = Options(search=SearchOptions(spot_to_spot=spot, planning=Planning(packer="cost")))
    found = decide(made, options)
    checked(made, found)
    shielded = {f"n-{at}" for at, each in enumerate(nodes) if each["annotated"] == "pod" or at == guarded}
    used = {node.name for node in made.nodes if node.pods}
    assert not shielded & used & {name for move in found.moves for name in move.nodes}
    shuffled = dataclasses.replace(made, nodes=made.nodes[::-1])
    assert decide(shuffled, options) == found
