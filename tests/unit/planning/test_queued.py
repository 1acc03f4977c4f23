"""Proposals for a queue: the quick rehearsals on arrays, and what they are worth."""

import collections
import dataclasses
import random

import numpy as np
import pytest

from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning import cost
from growth.planning.calm import Calm
from growth.planning.floor import Floor
from growth.planning.market import Floats, Ints, Market
from growth.planning.queued import queued
from growth.planning.rehearsal import Arrival, Stage
from growth.planning.solve import Options, solve
from tests.unit.planning.builders import HOST, SHAPES, kind, pod, pool

SMALL, LARGE, LEAN = kind("small", 4, "8Gi"), kind("large", 16, "64Gi", price=1.5), kind("lean", 8, "8Gi", price=0.7)
SIZES = (("250m", "512Mi"), ("500m", "2Gi"), ("1", "1Gi"), ("2", "6Gi"), ("100m", "3Gi"))


def question(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Snapshot, list[Demand], Market, Ints]:
    """Pods in some order, and the market that the packer makes of them."""
    chance = random.Random(seed)
    sizes = [chance.choice(SIZES) for _ in range(60)]
    waiting = [pod(f"pod-{at:02}", cpu=cpu, memory=memory) for at, (cpu, memory) in enumerate(sizes)]
    demands = [Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in waiting]
    snapshot = Snapshot(currency="EUR", pools=(pool("default", SMALL, LARGE, LEAN),), namespaces={"default": {}})
    asked: list[tuple[Market, Ints]] = []

    def listening(goods: Market, queue: Ints, worth: Floats) -> list[object]:
        asked.append((goods, queue))
        return []

    monkeypatch.setattr(cost, "queued", listening)
    solve(snapshot, demands, Options(packer="cost"))
    monkeypatch.undo()
    goods, queue = asked[0]
    return snapshot, demands, goods, queue


def machines(goods: Market, plan: tuple[int, ...]) -> list[NodeView]:
    bought = [goods.columns[column] for column in plan]
    return [
        NodeView(name=f"n{at}", labels={HOST: f"n{at}"}, allocatable=shelf.options[option].type.allocatable)
        for at, (shelf, option) in enumerate(bought)
    ]


@pytest.mark.parametrize("seed", range(6))
def test_the_quick_rehearsals_say_what_the_rehearsal_says(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On plain pods the arrays bind everybody where the whole model does, at once and one by one."""
    snapshot, demands, goods, queue = question(seed, monkeypatch)
    chance = random.Random(seed)
    plan = tuple(chance.randrange(len(goods.columns)) for _ in range(5))
    floor = Floor(goods, queue)
    stage = Stage(snapshot, demands)
    for arrival, rehearsed in (
        (Arrival.AT_ONCE, floor.at_once([plan])),
        (Arrival.ONE_BY_ONE, floor.one_by_one([plan])),
    ):
        found = stage.rehearse_nodes(machines(goods, plan), arrival)
        places = dict(found.order)
        assert rehearsed[:, 0].tolist() == [places.get(demand.key, -1) for demand in demands]


@pytest.mark.parametrize("seed", range(6))
def test_plans_side_by_side_fare_as_each_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsing many plans in one go changes nothing for any of them."""
    _, _, goods, queue = question(seed, monkeypatch)
    chance = random.Random(seed)
    plans = [tuple(chance.randrange(len(goods.columns)) for _ in range(chance.randint(1, 6))) for _ in range(7)]
    floor = Floor(goods, queue)
    for rehearse in (floor.at_once, floor.one_by_one):
        together = rehearse(plans)
        for at, plan in enumerate(plans):
            assert together[:, at].tolist() == rehearse([plan])[:, 0].tolist()


def test_proposals_hold_what_they_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every drawing fits on its machine, nobody is drawn twice, and the same question has the same answer."""
    _, _, goods, queue = question(1, monkeypatch)
    worth = np.full(len(goods.classes), 50_000_000.0)
    proposals = queued(goods, queue, worth)
    counts = np.bincount(queue, minlength=len(goods.classes))
    assert proposals
    for proposal in proposals:
        assert all((each.pods @ goods.needs <= goods.rooms[each.column]).all() for each in proposal)
        assert (sum(each.pods for each in proposal) <= counts).all()
    again = queued(goods, queue, worth)
    assert [[each.column for each in one] for one in proposals] == [[each.column for each in one] for one in again]


def test_nothing_is_proposed_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without pods there is nothing to buy."""
    _, _, goods, queue = question(2, monkeypatch)
    assert queued(goods, queue[:0], np.zeros(len(goods.classes))) == []


@pytest.mark.parametrize("seed", range(4))
def test_who_may_not_go_everywhere_is_bound_where_it_may(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closed columns take nobody of the row, and a machine holds no more of a row than it may."""
    _, _, goods, queue = question(seed, monkeypatch)
    allowed = goods.allowed.copy()
    allowed[0, 0] = False
    most = goods.most.copy()
    most[1] = 2
    strict = dataclasses.replace(goods, allowed=allowed, most=most)
    plan = (0, 1, 2, 1, 0)
    floor = Floor(strict, queue)
    for where in (floor.at_once([plan])[:, 0], floor.one_by_one([plan])[:, 0]):
        assert not any(plan[at] == 0 for at in where[(queue == 0) & (where >= 0)])
        held = np.bincount(where[(queue == 1) & (where >= 0)], minlength=len(plan))
        assert held.max() <= 2
        assert held.sum() > 0


@pytest.mark.parametrize("times", [5, 12])
def test_a_calm_plan_is_of_one_type_its_halves_and_few_others(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Most machines are of the column, all pods are on them, and it costs no more than it may."""
    _, _, goods, queue = question(3, monkeypatch)
    many = np.tile(queue, times)
    column = int(goods.prices.argmax())
    most = 20 * times * int(goods.prices[column])
    found = Calm(goods, many).plan(column, most=most)
    assert sum(each.column == column for each in found) > len(found) // 2
    assert sum(int(each.pods.sum()) for each in found) == len(many)
    assert sum(int(goods.prices[each.column]) for each in found) <= most
    assert Calm(goods, many).plan(column, most=1) == []


def test_a_calm_plan_stays_when_a_pod_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most machines are the same without one pod of three hundred, whichever it is."""
    _, _, goods, queue = question(3, monkeypatch)
    many = np.tile(queue, 5)
    column = int(goods.prices.argmax())
    most = 60 * int(goods.prices[column])
    whole = collections.Counter(each.column for each in Calm(goods, many).plan(column, most=most))
    for gone in range(0, len(many), 60):
        less = collections.Counter(each.column for each in Calm(goods, np.delete(many, gone)).plan(column, most=most))
        assert (whole & less).total() >= 0.8 * max(whole.total(), less.total())


def test_thousands_of_pods_are_planned_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machines for the sample, as often as it stands for all, hold nearly everybody."""
    _, _, goods, queue = question(4, monkeypatch)
    many = np.tile(queue, 70)
    proposals = queued(goods, many, np.full(len(goods.classes), 50_000_000.0))
    assert proposals
    for proposal in proposals:
        assert sum(int(each.pods.sum()) for each in proposal) >= 0.99 * len(many)
