"""What is remembered of moves, what is written with them, and who goes first."""

import asyncio
import datetime as dt

import msgspec
import pytest

from growth.api import names
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClassReference
from growth.api.meta import ObjectMeta, OwnerReference
from growth.api.moves import LONG_AGO, Intent, annotation, intent_of
from growth.api.nodes import Node
from growth.api.pods import PodSpec
from growth.cluster.shapes import CachedPod, PodShape
from growth.controllers.disruption.memory import PUT_OFF_SECONDS, REMEMBERED, Memory
from growth.controllers.disruption.moving import Moves, Running, Target
from growth.controllers.precedence import Precedence
from growth.planning.disruption.model import Move

NOW = dt.datetime(2030, 1, 7, 8, 0, tzinfo=dt.UTC)


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> dt.datetime:
        return NOW + dt.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def boot_time(self) -> float:
        return self.monotonic()


def pods(number: int, *, since: int = 0) -> list[CachedPod]:
    """As many pods of one owner; the first ones are gone, and others have come for them."""
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="uid-web")
    shape = PodShape(namespace="default", labels={}, spec=PodSpec())
    return [
        CachedPod(f"web-{at}", f"uid-{at}", "1", shape, node_name="n", owner=owner)
        for at in range(since, since + number)
    ]


def test_who_came_by_a_move_is_remembered_until_the_workload_changes() -> None:
    """Forgotten after hours, and when the workload is scaled; a pod more or less is no change."""
    clock = Clock()
    memory = Memory(clock)
    memory.remember(memory.leaving(pods(3), pods(30)))
    came = {"uid-30": NOW, "uid-31": NOW, "uid-32": NOW}
    assert memory.moved(pods(30, since=3)) == came
    assert memory.moved(pods(28, since=5)) == came
    assert memory.moved(pods(10, since=23)) == {}
    memory.remember(memory.leaving(pods(3), pods(30)))
    clock.seconds = REMEMBERED.total_seconds()
    assert memory.moved(pods(30, since=3)) == {}


def test_those_who_were_there_all_the_time_were_not_moved() -> None:
    """Others of their owner were."""
    memory = Memory(Clock())
    memory.remember(memory.leaving(pods(3), pods(30)))
    assert memory.moved(pods(30)) == {}


def test_who_was_moved_is_known_whatever_the_clocks_say() -> None:
    """The clock of the server, which writes when a pod was created, may be seconds behind ours."""
    clock = Clock()
    memory = Memory(clock)
    memory.remember(memory.leaving(pods(1), pods(2)))
    behind = [msgspec.structs.replace(pod, created=NOW - dt.timedelta(seconds=5)) for pod in pods(2, since=1)]
    assert memory.moved(behind) == {"uid-2": NOW}


def test_those_who_come_before_a_removal_is_answered_were_moved() -> None:
    """Evictions begin as soon as the server knows, which is before we are told that it does."""
    memory = Memory(Clock())
    leaving = memory.leaving(pods(1), pods(2))
    assert memory.moved(pods(2, since=1)) == {}
    memory.remember(leaving)
    assert memory.moved(pods(2, since=1)) == {"uid-2": NOW}


def test_a_later_move_of_their_workload_does_not_make_pods_forget_their_own() -> None:
    """Each came by the last move before it was there, whether or not somebody looked in between."""
    clock = Clock()
    memory = Memory(clock)
    memory.remember(memory.leaving(pods(2), pods(30)))
    clock.seconds = 60.0
    memory.remember(memory.leaving(pods(2, since=2), pods(30, since=2)))
    later = clock.now()
    came = {"uid-30": NOW, "uid-31": NOW, "uid-32": later, "uid-33": later}
    assert memory.moved(pods(30, since=4)) == came
    clock.seconds = 120.0
    memory.remember(memory.leaving(pods(2, since=4), pods(30, since=4)))
    assert memory.moved(pods(30, since=6)) == {**came, "uid-34": clock.now(), "uid-35": clock.now()}


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
    assert memory.failing(names.DRIFTED_REASON) == {"bad"}
    assert memory.failing(names.UNDERUTILIZED) == frozenset()
    memory.succeeded(names.DRIFTED_REASON, ["bad"])
    assert memory.failing(names.DRIFTED_REASON) == frozenset()
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


def test_a_node_for_which_machines_came_up_in_vain_rests_as_pools_do() -> None:
    """A minute, two, and so on, an hour at most; that each attempt takes ten minutes is no peace."""
    clock = Clock()
    memory = Memory(clock)
    for pause in (60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0):
        clock.seconds += 600
        memory.taken_back(["n"], took=600.0, paid=True)
        assert memory.next_release() == pause
        clock.seconds += pause
    memory.taken_back(["n"])
    assert memory.next_release() == 5.0, "what cost nothing is counted apart"
    clock.seconds += 3600 + 600
    memory.taken_back(["n"], took=600.0, paid=True)
    assert memory.next_release() == 60.0


@pytest.mark.parametrize(("nodes", "seconds"), [(0, 600), (7_500, 600), (10_000, 800), (45_000, 3600), (99_999, 3600)])
def test_a_move_may_take_longer_where_many_nodes_go(nodes: int, seconds: float) -> None:
    """Eighty milliseconds for each, ten minutes at least and an hour at most."""
    moves = Moves()
    uses = NodeClassReference(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="default")
    target = Target(Node(metadata=ObjectMeta(name="n")), NodeClaim(NodeClaimSpec(uses, requirements=())))
    for part in (nodes // 3, nodes - nodes // 3):
        targets = dict.fromkeys((f"n-{part}-{at}" for at in range(part)), target)
        move = Move(reason=names.EMPTY, nodes=tuple(targets), pools=("default",))
        moves.add(Running(move=move, targets=targets, since=0.0, at=NOW))
    assert moves.patience() == seconds


def test_how_often_a_move_was_put_off_is_remembered() -> None:
    """For these nodes and no others, and not for ever."""
    clock = Clock()
    memory = Memory(clock)
    assert memory.times_put_off(frozenset({"a", "b"})) == 0
    for times in (1, 2, 3):
        memory.put_off(frozenset({"a", "b"}))
        assert memory.times_put_off(frozenset({"b", "a"})) == times
    assert memory.times_put_off(frozenset({"a"})) == 0
    clock.seconds += PUT_OFF_SECONDS
    assert memory.times_put_off(frozenset({"a", "b"})) == 0
    memory.put_off(frozenset({"a", "b"}))
    assert memory.times_put_off(frozenset({"a", "b"})) == 1


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
