"""The bound for a whole cluster: what its pods could cost at least, wherever they are now."""

import dataclasses

import pytest

from growth.api.pods import Pod
from growth.api.pools import PoolRef
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot
from growth.planning.least import least_hourly
from growth.planning.solve import Options, solve
from tests.unit.planning.builders import kind, node, pod, pool


def demands(*pods: Pod) -> list[Demand]:
    shapes = Shapes()
    return [Demand(f"{each.metadata.namespace}/{each.metadata.name}", shapes.shape(each)) for each in pods]


def cluster(*pools: PoolView, nodes: tuple[NodeView, ...] = ()) -> Snapshot:
    return Snapshot(currency="EUR", pools=pools, nodes=nodes)


POOL = pool("default", kind("small", 2, price=0.02), kind("large", 8, price=0.06))


@pytest.mark.parametrize("number", [1, 3, 10, 40])
def test_no_plan_costs_less(number: int) -> None:
    """From an empty cluster the cheapest plan that we find costs the bound or more, and not twice as much beyond a few pods."""
    pods = demands(*(pod(f"p{at}", cpu="900m") for at in range(number)))
    least = least_hourly(cluster(POOL), pods)
    planned = solve(cluster(POOL), pods, Options(packer="cost", rehearse=False)).hourly
    assert least is not None
    assert 0 < least <= planned
    if number >= 10:
        assert planned < 2 * least


def test_our_own_machines_have_no_say_in_it() -> None:
    """The bound is of the pods: what they stand on now, how much and how dear, does not change it."""
    pods = demands(*(pod(f"p{at}", cpu="900m") for at in range(6)))
    ours = dataclasses.replace(node("dear", cpu="64"), pool=PoolRef.karpenter("default"))
    assert least_hourly(cluster(POOL, nodes=(ours,)), pods) == least_hourly(cluster(POOL), pods)


def test_room_on_nodes_of_nobody_lowers_it() -> None:
    """What fits there needs no machine."""
    pods = demands(*(pod(f"p{at}", cpu="900m") for at in range(6)))
    free = least_hourly(cluster(POOL, nodes=(node("foreign", cpu="3"),)), pods)
    whole = least_hourly(cluster(POOL), pods)
    assert free is not None
    assert whole is not None
    assert free < whole
    assert least_hourly(cluster(POOL, nodes=(node("foreign", cpu="64", memory="64Gi"),)), pods) == 0


def test_pods_that_no_pool_can_hold_are_left_out() -> None:
    """They lower the bound, and are no error; without pods or pools it is nothing."""
    fits, huge = demands(pod("a"), pod("huge", cpu="99"))
    assert least_hourly(cluster(POOL), [fits, huge]) == least_hourly(cluster(POOL), [fits])
    assert least_hourly(cluster(POOL), [huge]) == 0
    assert least_hourly(cluster(POOL), []) == 0
    assert least_hourly(cluster(), [fits]) == 0
