"""Pods that leave a machine: nothing is bought for them where kube-scheduler would find room."""

import dataclasses

from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.plan import Plan
from growth.planning.solve import Options, solve
from growth.planning.wishes import for_no_wish
from tests.unit.planning.builders import HOST, SHAPES, SMALL, far, node, pod, pool, term

COST = Options(packer="cost")
LOOSE = pod("loose", cpu="300m", labels={"app": "cache"}, affinity=far(term(HOST, app="cache")))
LEAVING = (LOOSE, pod("first", cpu="500m"), pod("second", cpu="500m"))


def cluster(*, room: str = "1", up: bool = True) -> Snapshot:
    """First fit fills the one node that takes the loose pod with others, who could as well go to the next."""
    taken = pod("there", cpu="10m", labels={"app": "cache"})
    nodes = [node("a", cpu=room), node("b", taken, cpu="1100m")]
    return Snapshot(
        currency="EUR",
        pools=(pool("default", SMALL),),
        nodes=tuple(dataclasses.replace(each, initialized=up) for each in nodes),
        namespaces={"default": {}},
    )


def demands() -> list[Demand]:
    return [Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in LEAVING]


def asked(snapshot: Snapshot, *, leaving: bool = True, options: Options = COST) -> Plan:
    keys = {each.key for each in demands()}
    return for_no_wish(solve, snapshot, demands(), options, leaving=keys if leaving else set(), virtual=set())


def test_nothing_is_bought_for_pods_that_kube_scheduler_would_seat_in_its_order() -> None:
    """They are bound within a moment, and the machine would be removed again."""
    assert len(solve(cluster(), demands(), COST).claims) == 1
    plan = asked(cluster())
    assert plan.claims == ()
    assert plan.unplaced == ()
    places = {key: each.name for each in plan.filled for key in each.pods}
    assert places["default/loose"] == "a"
    assert sorted(places) == ["default/first", "default/loose", "default/second"]
    assert sorted(plan.order) == sorted(places.items())


def test_a_machine_is_bought_where_somebody_has_no_room_in_that_order_either() -> None:
    assert len(asked(cluster(room="250m")).claims) == 1


def test_pods_that_wait_have_been_refused_by_kube_scheduler() -> None:
    assert len(asked(cluster(), leaving=False).claims) == 1


def test_nodes_that_are_not_up_are_no_room_for_pods_that_leave() -> None:
    """Who leaves is bound long before."""
    assert len(asked(cluster(up=False)).claims) == 1


def test_nothing_is_rehearsed_where_that_is_not_wanted() -> None:
    assert len(asked(cluster(), options=dataclasses.replace(COST, rehearse=False)).claims) == 1
