"""Inputs at the edges, for the packer `cost`: whatever is asked for or sold, it plans, and no worse than first fit."""

from collections.abc import Mapping, Sequence
from typing import Final

import pytest

from growth.api.instance_types import InstanceType
from growth.api.pods import Pod
from growth.cluster.snapshot import NodeView, PoolView
from growth.planning.solve import Options
from tests.unit.planning.builders import (
    EURO,
    HOST,
    TYPE,
    far,
    growth_pool,
    kind,
    near,
    need,
    node,
    offering,
    plan,
    pod,
    pods,
    pool,
    spread,
    term,
)

SMALL: Final = kind("small", 4, "16Gi", price=0.2)
LARGE: Final = kind("large", 16, "64Gi", price=0.7)
FREE: Final = kind("free", 4, "16Gi", price=0.0)
BARE: Final = InstanceType(name="bare", labels=SMALL.labels, capacity={}, overhead={}, offerings=(offering(),))
MANY: Final = [kind(f"t{i}", 1 + i % 97, f"{1 + i % 83}Gi", price=0.01 + i * 7919 % 1000 / 1000) for i in range(60)]
APP: Final = {"app": "a"}

ODD: Final[Mapping[str, Sequence[PoolView | NodeView | Sequence[Pod]]]] = {
    "nothing is asked for": [pool("default", SMALL), []],
    "nothing is sold": [pods(3)],
    "machines cost nothing": [pool("default", FREE), pods(20)],
    "some machines cost nothing": [pool("default", FREE, SMALL, LARGE), pods(20)],
    "machines cost a fortune": [pool("default", kind("x", 4, price=9e9), kind("y", 8, price=9.1e9)), pods(60)],
    "pods that ask for nothing": [pool("default", SMALL, LARGE), pods(300, cpu="", memory="")],
    "pods that ask for nothing, at no price": [pool("default", FREE), pods(300, cpu="", memory="")],
    "only devices are asked for": [
        pool("default", kind("g", 4, price=1.0, extended={"example.com/gpu": 4}), SMALL),
        pods(30, cpu="", memory="", extended={"example.com/gpu": "1"}),
    ],
    "only memory is asked for": [pool("default", SMALL, LARGE), pods(50, cpu="", memory="3Gi")],
    "one pod, one type": [pool("default", SMALL), [pod()]],
    "no pod fits": [pool("default", SMALL), pods(20, cpu="100")],
    "half of the pods fit": [pool("default", SMALL), pods(20, cpu="100"), pods(20, "other")],
    "more than 64 bits of memory": [pool("default", SMALL), [pod("huge", memory="100Ei")], pods(3)],
    "sums of more than 64 bits": [
        pool("default", kind("h", 4_000_000, "4Ei", price=1e3, pods=100_000)),
        pods(99, memory="1Ei"),
    ],
    "more of a device than is sold anywhere": [
        pool("default", SMALL),
        node("n", room={"example.com/token": "9223372036854775807"}),
        [pod("much", extended={"example.com/token": "4E"}), pod("little", extended={"example.com/token": "1"})],
    ],
    "more of a device than anybody asks for": [
        pool("default", kind("d", 4, price=0.2, extended={"example.com/token": (1 << 63) - 1}), SMALL),
        pods(9, extended={"example.com/token": "1"}),
    ],
    "a type without any room": [pool("default", BARE, SMALL), pods(20)],
    "many types": [pool("default", *MANY), pods(30), pods(30, "thin", cpu="3300m", memory="500Mi")],
    "only spot": [pool("default", kind("s", 4, offerings=[offering("a", 0.1, "spot")])), pods(40)],
    "nothing is available": [pool("default", kind("s", 4, offerings=[offering("a", None)])), pods(9)],
    "a node takes everything": [pool("default", SMALL), node("n", cpu="64", memory="256Gi"), pods(20)],
    "limits are used up": [pool("default", SMALL, LARGE, limits={"cpu": "10"}, used={"cpu": "12"}), pods(40)],
    "a limit of one node": [pool("default", SMALL, LARGE, limits={"nodes": 1}), pods(40)],
    "maxima of none and one": [
        growth_pool("g", SMALL, LARGE, most={"small": 0, "large": 1}),
        pods(40, selector={"growth.dev/pool": "g"}),
    ],
    "more values wanted than there are": [pool("default", SMALL, needs=[need(TYPE, "Exists", least=5)]), pods(9)],
    "ports of the host": [pool("default", SMALL, LARGE), pods(20, ports=[80])],
    "all apart": [pool("default", SMALL, LARGE), pods(20, labels=APP, affinity=far(term(HOST, app="a")))],
    "all together": [pool("default", SMALL, LARGE), pods(20, labels=APP, affinity=near(term(HOST, app="a")))],
    "evenly over hosts": [pool("default", SMALL, LARGE), pods(20, labels=APP, spread=[spread(HOST, app="a")])],
    "every pod of its own priority": [
        pool("default", SMALL, LARGE),
        [pod(f"p{i}", priority=i * 100_000 - 2_000_000) for i in range(40)],
    ],
    "thirty pools": [*(pool(f"p{i}", SMALL, LARGE, weight=i) for i in range(30)), pods(40)],
}


@pytest.mark.parametrize("node_cost", [0, EURO, 1_000_000 * EURO])
@pytest.mark.parametrize("odd", ODD)
def test_odd_inputs_are_planned_no_worse_than_by_first_fit(odd: str, node_cost: int) -> None:
    """No fewer pods have a place, and the same pods on new machines cost no more; the bound is below both."""
    made = plan(*ODD[odd], options=Options(packer="cost", node_cost=node_cost, rehearse=False)).plan
    first = plan(*ODD[odd]).plan
    assert len(made.unplaced) <= len(first.unplaced)
    if len(made.unplaced) == len(first.unplaced):
        assert made.objective is not None
        assert made.objective <= first.hourly + node_cost * len(first.claims)
        assert (made.lower_bound or 0) <= made.objective


@pytest.mark.parametrize("odd", ODD)
def test_odd_inputs_are_rehearsed(odd: str) -> None:
    """The judge passes the plan, and it places as many pods as first fit."""
    made = plan(*ODD[odd], options=Options(packer="cost")).plan
    assert len(made.unplaced) <= len(plan(*ODD[odd]).plan.unplaced)
