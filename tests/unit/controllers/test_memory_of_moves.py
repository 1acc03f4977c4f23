"""What is remembered of moves, what is written with them, and who goes first."""

import asyncio
import datetime as dt

from growth.api import names
from growth.api.meta import ObjectMeta, OwnerReference
from growth.api.moves import LONG_AGO, Intent, annotation, intent_of
from growth.api.pods import PodSpec
from growth.cluster.shapes import CachedPod, PodShape
from growth.controllers.disruption.memory import REMEMBERED, Memory
from growth.controllers.precedence import Precedence

NOW = dt.datetime(2030, 1, 7, 8, 0, tzinfo=dt.UTC)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> dt.datetime:
        return NOW + dt.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds


def pods(number: int) -> list[CachedPod]:
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="uid-web")
    shape = PodShape(namespace="default", labels={}, spec=PodSpec())
    return [CachedPod(f"web-{at}", f"uid-{at}", "1", shape, node_name="n", owner=owner) for at in range(number)]


def test_whose_pods_were_moved_is_remembered_until_they_change() -> None:
    """By their owner; forgotten after hours, and when the workload is scaled; a pod more or less is no change."""
    clock = Clock()
    memory = Memory(clock)
    memory.remember(pods(3), pods(30))
    assert memory.moved(pods(30)) == {"uid-web": NOW}
    assert memory.moved(pods(28)) == {"uid-web": NOW}
    assert memory.moved(pods(10)) == {}
    memory.remember(pods(3), pods(30))
    clock.seconds = REMEMBERED.total_seconds()
    assert memory.moved(pods(30)) == {}


def test_a_pool_waits_longer_after_each_failure() -> None:
    """A minute, two, four; for its reason alone, and no more once a move has been made."""
    clock = Clock()
    memory = Memory(clock)
    for pause in (60.0, 120.0, 240.0):
        memory.failed(names.DRIFTED_REASON, ["bad"])
        assert memory.next_release() == pause
        assert memory.held_back(names.DRIFTED_REASON) == {"bad"}
        assert memory.held_back(names.UNDERUTILIZED) == frozenset()
        clock.seconds += pause
        assert memory.held_back(names.DRIFTED_REASON) == frozenset()
    memory.succeeded(names.DRIFTED_REASON, ["bad"])
    memory.failed(names.DRIFTED_REASON, ["bad"])
    assert memory.next_release() == 60.0


def test_a_node_rests_longer_each_time_its_move_is_taken_back() -> None:
    """Five seconds, ten, and so on, five minutes at most; as new once it was left in peace for so long."""
    clock = Clock()
    memory = Memory(clock)
    for pause in (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0):
        memory.taken_back(["n"])
        assert memory.next_release() == pause
        clock.seconds += pause - 1
        assert memory.resting() == {"n"}
        clock.seconds += 1
        assert memory.resting() == frozenset()
    memory.taken_back(["other"])
    assert memory.next_release() == 5.0
    clock.seconds += 300
    memory.taken_back(["n"])
    assert memory.next_release() == 5.0


def test_what_a_claim_says_of_its_move_can_be_read_again() -> None:
    """What cannot be read began long ago, for this claim alone: then it is taken back."""
    intent = Intent(reason="Drifted", at=NOW, group=("a", "b"))
    assert intent_of(ObjectMeta(name="a", annotations=annotation(intent))) == intent
    assert intent_of(ObjectMeta(name="a")) is None
    for text in ("", "{}", "nonsense", '{"with": ["other"]}', '{"at": "2030-01-07T08:00:00", "with": ["a"]}'):
        read = intent_of(ObjectMeta(name="a", annotations={names.MOVE_ANNOTATION: text}))
        assert read is not None, text
        assert (read.at, read.group) == (LONG_AGO, ("a",)), text


def test_a_search_waits_for_plans_and_is_told_of_them() -> None:
    """It begins when no plan is being made, and knows that one has begun since, though it may have ended."""

    async def body() -> list[bool]:
        precedence = Precedence()
        with precedence.first():
            waiting = asyncio.ensure_future(precedence.free())
            await asyncio.sleep(0)
            seen = [waiting.done()]
        turn = await waiting
        seen.append(turn.preempted())
        with precedence.first():
            seen.append(turn.preempted())
        return [*seen, turn.preempted(), (await precedence.free()).preempted()]

    assert asyncio.run(body()) == [False, False, True, True, False]
