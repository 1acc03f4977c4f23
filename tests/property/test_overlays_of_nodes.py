"""Whatever is tried on a ground and undone leaves no trace."""

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.disruption.search.shop import Shop
from tests.unit.planning.builders import EURO, HOST, far, pods, spread, term
from tests.unit.planning.searching import owned, situation

RULES: tuple[dict[str, Any], ...] = (
    {},
    {"labels": {"app": "a"}, "affinity": far(term(HOST, app="a"))},
    {"labels": {"app": "z"}, "spread": [spread(app="z")]},
    {"labels": {"app": "h"}, "spread": [spread(HOST, app="h")]},
    {"ports": [8080]},
)


@st.composite
def grounds(draw: st.DrawFn) -> Ground:
    nodes = []
    for at in range(draw(st.integers(2, 6))):
        rule = RULES[draw(st.integers(0, len(RULES) - 1))]
        held = pods(draw(st.integers(0, 3)), f"p{at}", **rule) if not rule.get("ports") else pods(1, f"p{at}", **rule)
        nodes.append(owned(f"n{at}", *held, zone="abc"[at % 3]))
    return Ground(situation(*nodes), nodes, SearchOptions())


def state(ground: Ground) -> Any:
    nodes = ground.nodes
    return copy.deepcopy(
        (
            nodes.free.tolist(),
            nodes.placed,
            [[(id(pods), keys) for pods, keys in arrived] for arrived in nodes.arrived],
            {id(group): counts.tolist() for group, counts in nodes._by_host.items() if counts.any()},
            [({k: v for k, v in group.counts.items() if v}, group.total) for group in ground.planning.groups.all],
            [nodes._held_ports(at) for at in range(len(nodes.nodes))],
        )
    )


@given(grounds(), st.data())
def test_a_trial_that_is_undone_leaves_no_trace(ground: Ground, data: st.DataObject) -> None:
    """Room, counts of rules, ports and placed pods are as they were, whichever nodes were taken out, one trial in another."""
    before = state(ground)
    undone = []
    left = sorted(ground.owned)
    while left:
        if not data.draw(st.booleans()):
            break
        size = data.draw(st.integers(1, len(left)))
        group, left = left[:size], left[size:]
        trial = ground.with_purchase(group) if data.draw(st.booleans()) else ground.without_purchase(group)
        keys = [key for at in group for key in ground.evicted[at]]
        more = Shop(ground, 0).more(keys, most=100 * EURO) if trial is not None and trial.ledgers and keys else None
        if trial is not None and more is not None and data.draw(st.booleans()):
            # Undone with the trial where there is no room for them.
            trial = ground.with_more(trial, more)
        if trial is not None:
            undone.append(trial.undo)
    for undo in reversed(undone):
        undo()
    assert state(ground) == before


@given(grounds(), st.data())
def test_a_ground_can_be_had_again_as_it_was(ground: Ground, data: st.DataObject) -> None:
    """Whatever was kept is undone, and its work is not counted: the next search finds what the first one did."""
    before, steps = state(ground), ground.steps
    for at in sorted(ground.owned):
        buys = data.draw(st.booleans())
        trial = ground.with_purchase((at,)) if buys else ground.without_purchase((at,))
        if trial is not None:
            ground.keep(trial)
    ground.again()
    assert state(ground) == before
    assert ground.steps == steps
    assert all(not ground.takes(at) for at in ground.owned)
