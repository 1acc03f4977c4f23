"""What holds of every decision of the search, whatever the cluster."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import key_of
from growth.planning.disruption import search
from growth.planning.disruption.model import OwnedNode, Room, Situation
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.search.orders import orders
from growth.planning.rehearsal import Arrival, Stage
from tests.unit.planning.builders import HOST, far, kind, offering, pods, spread, term
from tests.unit.planning.searching import owned, situation

RULES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"cpu": "500m"},
    {"cpu": "2", "memory": "500Mi"},
    {"labels": {"app": "a"}, "affinity": far(term(HOST, app="a"))},
    {"labels": {"app": "z"}, "spread": [spread(app="z", skew=2)]},
    {"ports": [8080]},
)


def sold(name: str, cpu: int, price: float) -> InstanceType:
    ways = (offering("a", price, names.ON_DEMAND), offering("b", price * 1.1, names.ON_DEMAND))
    return kind(name, cpu, f"{4 * cpu}Gi", offerings=(*ways, offering("a", price * 0.6, names.SPOT)))


TYPES = (sold("s", 2, 0.2), sold("m", 4, 0.45), sold("l", 8, 0.75), sold("x", 16, 1.9))


@st.composite
def clusters(draw: st.DrawFn) -> Situation:
    nodes: list[OwnedNode] = []
    for at in range(draw(st.integers(1, 9))):
        of = draw(st.sampled_from(TYPES))
        terms, zone = draw(st.sampled_from([(names.ON_DEMAND, "a"), (names.ON_DEMAND, "b"), (names.SPOT, "a")]))
        rule = draw(st.sampled_from(RULES))
        most = 1 if "ports" in rule or "affinity" in rule else of.allocatable["cpu"] // 2000
        held = pods(draw(st.integers(0, most)), f"p{at}", **rule)
        price = draw(st.sampled_from([-1.0, -1.0, -1.0, None]))
        quiet = draw(st.sampled_from([0.0, 86_400.0]))
        nodes.append(owned(f"n{at}", *held, of=of, terms=terms, zone=zone, price=price, quiet_seconds=quiet))
    waiting = pods(draw(st.integers(0, 2)), "w")
    return situation(*nodes, sold=TYPES, pending=waiting, disruption={"consolidateAfter": "1m"})


def rooms() -> st.SearchStrategy[Room]:
    some = st.one_of(st.none(), st.integers(0, 4))
    return st.builds(Room, some, some, buy=some)


@given(cluster=clusters(), room=rooms(), gate=st.booleans())
def test_every_decision_can_be_made(cluster: Situation, room: Room, *, gate: bool) -> None:
    """Each candidate goes or is kept, once; budgets hold; what is bought costs less; nobody is left without a place."""
    made = search.consolidate(cluster, cluster.nodes, {"default": room}, SearchOptions(spot_to_spot=gate))
    of_name = {node.name: node for node in cluster.nodes}
    going = [name for move in made.moves for name in move.nodes]
    assert sorted([*going, *(each.node for each in made.kept)]) == sorted(of_name)
    buying = [move for move in made.moves if move.replacements]
    assert room.delete is None or len(going) <= room.delete
    assert room.replace is None or sum(len(move.nodes) for move in buying) <= room.replace
    assert room.buy is None or sum(len(move.replacements) for move in buying) <= room.buy
    for move in made.moves:
        assert not set(move.destinations) & set(going)
        prices = [of_name[name].price or 0 for name in move.nodes]
        assert all(prices)
        assert move.savings == sum(prices) - sum(each.planned.price for each in move.replacements)
        assert move.savings > 0
        assert sum(each.max_price for each in move.replacements) < sum(prices)
    _nobody_is_left(cluster, going, [each.planned for move in buying for each in move.replacements])


def _nobody_is_left(cluster: Situation, going: list[str], claims: list[Any]) -> None:
    """In none of the orders in which the search lets them come back, behind those who wait already. Of these only such as
    would wait anyway are left.
    """
    stays = tuple(node for node in cluster.snapshot.nodes if node.name not in going)
    held = {node.name: node.pods for node in cluster.nodes}
    evicted = [Demand(key_of(pod), pod.shape) for name in going for pod in held[name]]
    anyway = Stage(cluster.snapshot, cluster.demands).rehearse([], Arrival.BEFOREHAND).left
    for queue in orders(evicted):
        stage = Stage(dataclasses.replace(cluster.snapshot, nodes=stays), (*cluster.demands, *queue))
        assert set(stage.rehearse(claims, Arrival.BEFOREHAND).left) <= set(anyway)
