"""Which pods want a machine now, and when a batch of them is whole."""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any

from growth.api.decoding import convert
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.sorts import Sorts
from growth.controllers.provisioning.batching import Batch
from growth.controllers.provisioning.demand import MARK_SECONDS, Marked, Pending, ripe
from growth.kube.store import Added, Changed, Deleted
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock
from tests.manifests import owned_by, pod

SHAPES = Shapes()
MARK = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
WHEN = "2026-01-01T12:00:00Z"


def cached(name: str, *, marked: bool = False, metadata: Json | None = None, **spec: Any) -> CachedPod:
    status = {"conditions": [{**MARK["conditions"][0], "lastTransitionTime": WHEN}]} if marked else {}
    return SHAPES.keep(convert(pod(name, metadata=metadata, status=status, **spec), Pod))


def created(second: int) -> Json:
    return {"creationTimestamp": f"2026-01-01T12:00:{second:02}Z"}


def known(age: float, *pods: CachedPod, sorts: frozenset[bytes] = frozenset()) -> Marked:
    return Marked(now=100.0, age=1.0, since={(pod.namespace, pod.name): 100.0 - age for pod in pods}, sorts=sorts)


def names(pods: list[CachedPod]) -> list[str]:
    return [pod.name for pod in pods]


# --- ripe


def test_a_marked_pod_counts_at_once() -> None:
    """The scheduler said that there is no room."""
    assert names(ripe([cached("a", marked=True)], known(0.0), Sorts().of)[0]) == ["a"]


def test_a_pod_of_a_marked_sort_counts_with_it() -> None:
    """The scheduler has not come to it yet; the answer would be the same."""
    pods = [cached("a", marked=True), cached("b")]
    assert names(ripe(pods, known(0.0, *pods), Sorts().of)[0]) == ["a", "b"]


def test_a_pod_that_the_scheduler_has_not_come_to_counts_when_it_has_waited() -> None:
    """It was created after the one that was marked last: the scheduler is behind."""
    pods = [cached("first", marked=True, cpu="3", metadata=created(10)), cached("later", metadata=created(11))]
    assert names(ripe(pods, known(1.0, *pods), Sorts().of)[0]) == ["first", "later"]
    young, soonest = ripe(pods, known(0.4, *pods), Sorts().of)
    assert names(young) == ["first"]
    assert soonest is not None
    assert abs(soonest - 0.6) < 1e-9


def test_a_pod_that_the_scheduler_has_passed_over_does_not_count() -> None:
    """It came to a later one already: there is room for this one, or it is nobody's to place."""
    pods = [cached("earlier", metadata=created(9)), cached("marked", marked=True, cpu="3", metadata=created(10))]
    assert names(ripe(pods, known(9.0, *pods), Sorts().of)[0]) == ["marked"]
    other = [cached("other", schedulerName="own", metadata=created(11)), pods[1]]
    assert names(ripe(other, known(9.0, *other), Sorts().of)[0]) == ["marked"]


def test_without_a_mark_there_is_no_demand() -> None:
    """There may well be room: the scheduler is asked first."""
    pods = [cached("a", metadata=created(1)), cached("b", metadata=created(2))]
    assert ripe(pods, known(9.0, *pods), Sorts().of) == ([], None)


def test_a_mark_is_remembered_for_its_like() -> None:
    """The marked pod may be bound already."""
    sorts = Sorts()
    late = cached("late")
    assert names(ripe([late], known(1.0, late, sorts=frozenset({sorts.of(late.shape)})), sorts.of)[0]) == ["late"]


def test_pods_that_no_machine_helps_do_not_count() -> None:
    """A node, a gate, a nomination, a DaemonSet, an end, or a farewell."""
    pods = [
        cached("bound", marked=True, nodeName="n"),
        cached("gated", marked=True, schedulingGates=[{"name": "g"}]),
        SHAPES.keep(convert(pod("promised", status={**MARK, "nominatedNodeName": "n"}), Pod)),
        cached("daemon", marked=True, metadata=owned_by("DaemonSet", "d")),
        SHAPES.keep(convert(pod("done", status={**MARK, "phase": "Succeeded"}), Pod)),
        cached("going", marked=True, metadata={"deletionTimestamp": WHEN}),
    ]
    assert ripe(pods, known(9.0, *pods), Sorts().of) == ([], None)


def test_what_does_not_matter_makes_no_other_sort() -> None:
    """Labels that the pod's own rules do not read, and the names of its volumes: as StatefulSets and Jobs have them."""
    sorts = Sorts()

    def sort(name: str, labels: Json, **spec: Any) -> bytes:
        return sorts.of(cached(name, metadata={"labels": labels}, **spec).shape)

    claim: Callable[[str], list[Json]] = lambda name: [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]  # noqa: E731
    assert sort("a", {"index": "0"}, volumes=claim("v-0")) == sort("b", {"index": "1"}, volumes=claim("v-1"))
    spread = [{"maxSkew": 1, "topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "x"}}}]
    app = {"topologySpreadConstraints": spread}
    assert sort("a", {"app": "x", "index": "0"}, **app) == sort("b", {"app": "x", "index": "1"}, **app)
    assert sort("a", {"app": "x"}, **app) != sort("b", {"app": "y"}, **app)
    assert sort("a", {}) != sort("b", {}, cpu="7")


# --- Pending


class _Clock:
    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> dt.datetime:
        return dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

    def monotonic(self) -> float:
        return self.at

    def boot_time(self) -> float:
        return self.monotonic()


def test_only_pods_that_no_pass_has_seen_are_news() -> None:
    """A scheduler that says the same of a pod again and again calls for no pass."""
    clock, heard = _Clock(), list[bytes]()
    pending = Pending(clock, age=1.0, news=heard.append)
    waiting, marked = cached("a"), cached("a", marked=True)
    key = ("default", "a")
    pending.hear(Added(key, waiting))
    assert not heard
    pending.hear(Changed(key, waiting, marked))
    assert len(heard) == 1
    pending.planned([marked])
    pending.hear(Changed(key, marked, marked))
    assert len(heard) == 1
    pending.hear(Added(("default", "b"), cached("b")))
    assert len(heard) == 2, "its like was marked"
    assert len(pending) == 2
    pending.hear(Deleted(key, marked, final=True))
    assert len(pending) == 1


def test_a_mark_is_forgotten_after_a_while() -> None:
    """Room may have come since."""
    clock, heard = _Clock(), list[bytes]()
    pending = Pending(clock, age=1.0, news=heard.append)
    pending.hear(Added(("default", "a"), cached("a", marked=True)))
    assert pending.marked().sorts
    clock.at = MARK_SECONDS
    assert not pending.marked().sorts
    pending.hear(Added(("default", "b"), cached("b")))
    assert len(heard) == 1


# --- Batch


def batches(adds: list[tuple[float, str]], *, counted: bool = False) -> list[float]:
    """When batches close, for pods of these sorts that arrive at these times."""

    async def main(kernel: Kernel) -> list[float]:
        arrived = 0
        batch = Batch(SimClock(kernel), idle=1.0, longest=10.0, size=lambda: arrived if counted else 0)

        async def feed() -> None:
            for at, sort in adds:
                nonlocal arrived
                await asyncio.sleep(at - kernel.time())
                arrived += 1
                batch.add(sort)

        feeding = kernel.create_task(feed())
        closed = []
        while await batch.closed(30.0):
            closed.append(round(kernel.time(), 3))
        await feeding
        return closed

    return sim.run(main, seed=1).value


def test_a_batch_ends_a_second_after_the_last_new_sort() -> None:
    """Each new sort may change the plan and is waited for."""
    assert batches([(1.0, "a"), (1.5, "b"), (2.4, "c")]) == [3.4]


def test_more_pods_of_a_sort_do_not_prolong_a_batch() -> None:
    """They make the same plan longer."""
    assert batches([(1.0, "a"), *((1.0 + at / 10, "a") for at in range(1, 9))]) == [2.0]


def test_a_batch_ends_after_ten_seconds_whatever_comes() -> None:
    """A cluster that never rests is served all the same."""
    assert batches([(at * 0.9, str(at)) for at in range(14)])[0] == 10.0


def test_a_flood_is_waited_for_while_each_wait_adds_a_quarter() -> None:
    """A rollout that doubles every second is one purchase, and one that only trickles on is not waited for."""
    doubling = [(0.9 * second + at / 100, "a") for second in range(5) for at in range(2**second)]
    assert len(batches(doubling, counted=True)) == 1
    steady = [(at / 10, "a") for at in range(60)]
    assert batches(steady, counted=True)[0] == 5.0
