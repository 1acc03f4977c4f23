"""Pods that CapacityBuffers stand for: no scheduler binds them, they have what the others leave, and a move must leave it."""

from typing import Any

import msgspec

from growth.api import names
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.cluster.shapes import Shapes
from growth.cluster.snapshot import Demand
from growth.planning.disruption.decide import decide
from tests import manifests
from tests.unit.planning.clusters import SMALL, cluster, machine, pods, pool
from tests.unit.planning.test_deciding import drifted, moves

# Nothing can be bought.
FULL: dict[str, Any] = {"limits": {"nodes": "3"}}


def of_buffer(number: int, cpu: str, name: str = "spare") -> tuple[Demand, ...]:
    shape = Shapes().keep(msgspec.convert(manifests.pod("spare", cpu=cpu), Pod)).shape
    return tuple(Demand(f"default/capacitybuffer:{name}#{at}", shape) for at in range(number))


def three() -> list[Json]:
    """A small node whose pod fits on either of two large ones that stay: on the full one, and on the other, where
    kube-scheduler puts it.
    """
    stays = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
    return [
        *machine("going", SMALL),
        *pods(1, on="going"),
        *machine("full", annotations=stays),
        *pods(14, on="full"),
        *machine("roomy", annotations=stays),
        *pods(1, on="roomy"),
    ]


def test_a_move_is_judged_by_where_kube_scheduler_would_put_the_pods() -> None:
    """Packed on the full node its pod would leave the buffer its room; kube-scheduler puts it on the other."""
    assert moves(decide(cluster(pool(**FULL), three()))) == [("Underutilized", ("going",), 0)]
    assert moves(decide(cluster(pool(**FULL), three(), buffered=of_buffer(1, "14500m")))) == []


def test_pods_of_buffers_are_packed_and_not_spread() -> None:
    """The large one has room beside the pod that comes, if the small one goes to the full node: nobody spreads them."""
    found = decide(cluster(pool(**FULL), three(), buffered=(*of_buffer(1, "1500m", "a"), *of_buffer(1, "13500m", "b"))))
    assert moves(found) == [("Underutilized", ("going",), 0)]


def test_drift_buys_room_for_the_buffer_too() -> None:
    """What replaces a drifted node is large enough for its pods and for those of the buffer that was kept there."""
    of = pool(limits={"nodes": "5"}, disruption={"consolidateAfter": "Never"})
    made = decide(cluster(of, machine("old"), pods(2, on="old"), facts=drifted("old"), buffered=of_buffer(1, "12")))
    (move,) = made.moves
    (bought,) = move.replacements
    assert bought.planned.requests["cpu"] >= 14_000
    assert move.evictions == 2


def test_a_situation_knows_them_from_pods_that_wait() -> None:
    """Both are demands, but only the ones exist."""
    found = cluster(pool(), manifests.pod("waits"), buffered=of_buffer(2, "1"))
    assert [each.key for each in found.waiting] == ["default/waits"]
    assert len(found.of_buffers) == 2
