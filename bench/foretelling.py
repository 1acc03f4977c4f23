"""Why something else happened than `growth whatif` had foretold: the question is asked again with one thing changed.

First as it came: the successors of the node's pods in the order in which they were made; or all pods that wait in theirs;
or the successors and also the machines, one after the other, in the order in which they came up; or that without the default
spread, which kube-scheduler knows and the simulated scheduler does not. The first of them that gives what happened is why they
differ. An order is chance: nobody can foretell it.

Then in many ways that might have come: other orders of the successors; other orders in which kube-scheduler comes back to
all that wait; successors in two parts, as evictions come that take their time, so that machines are bought for the first
before the second is there; machines that come up in other orders; and orders without the default spread. In how many of them
it comes as it came is told.

Nothing is said but what comes of being played; where nothing gives what happened, that is said.
"""

import collections
import dataclasses
import datetime as dt
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec

from growth.api import names
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.planning.explaining.applying import with_pods
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.whatif import Changed, Course, Played, orders, played
from growth.planning.plan import PlannedClaim
from growth.sim.seams import Step

TRIED: Final = 100  # so many ways of each kind are tried
UNEXPLAINED: Final = "not explained"
CHANCE: Final = "chance"
ORDERS: Final = "orders of the successors"
UNSPREAD: Final = "the simulated scheduler does not spread by default"

Machine = tuple[str, str, str, str]
"""Pool, type, zone and terms."""
Outcome = TypeVar("Outcome")


def workload(pod: CachedPod) -> str:
    return pod.shape.labels.get("app", key_of(pod))


def planned(claim: PlannedClaim) -> Machine:
    return (str(claim.pool), claim.instance_type, claim.zone, claim.capacity_type)


def labelled(labels: Mapping[str, str]) -> Machine:
    """Of a claim or a Node."""
    return (
        labels.get(names.NODE_POOL_LABEL) or f"{names.GROWTH}/{labels.get(names.POOL_LABEL, '')}",
        labels.get(names.INSTANCE_TYPE_LABEL, ""),
        labels.get(names.ZONE_LABEL, ""),
        labels.get(names.CAPACITY_TYPE_LABEL, ""),
    )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """The workloads whose pods were made since, and the machines that came up; `before` are pods that were made before the
    question was asked. Each in their order.
    """

    pods: tuple[str, ...] = ()
    machines: tuple[Machine, ...] = ()
    before: tuple[str, ...] = ()


class Watch:
    """A listener of the world's witness that remembers what comes, from before the question is asked."""

    def __init__(self) -> None:
        self._before: tuple[str, ...] = ()
        self._made: list[str] = []
        self._pods: list[str] = []
        self._machines: list[Machine] = []

    def ask(self) -> None:
        """Now the question is asked: what comes after this came since."""
        self._before = tuple(self._made)
        self._pods.clear()
        self._machines.clear()

    def __call__(self, step: Step) -> None:
        if step.new is None:
            return
        labels = step.new["metadata"].get("labels") or {}
        if step.which == ("", "pods") and step.old is None:
            self._made.append("/".join(step.key))
            self._pods.append(labels.get("app", "/".join(step.key)))
        elif step.which == ("", "nodes") and _is_up(step.new) and not (step.old and _is_up(step.old)):
            self._machines.append(labelled(labels))

    def came(self) -> Came:
        return Came(pods=tuple(self._pods), machines=tuple(self._machines), before=self._before)


def _is_up(node: Mapping[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"].get("conditions", ()))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """One thing that may be why, and what it leads to: as it came, and in ways that might have come."""

    reason: str
    as_it_came: tuple[str, Played] | None = None
    ways: str
    ends: Iterator[Played]


def why(
    changed: Changed, came: Came, *, happened: Outcome, outcome: Callable[[Played], Outcome], tried: int = TRIED
) -> str:
    """The reason that gives what happened with the least changed; without one as it came, those that might have."""
    found: dict[bool, list[str]] = {True: [], False: []}
    tries = list(_tries(changed, came, tried))
    for each in tries:
        same = [outcome(end) == happened for end in each.ends]
        share = f"{sum(same)} of {len(same)} {each.ways}"
        if each.as_it_came is not None and outcome(each.as_it_came[1]) == happened:
            found[True].append(f"{each.reason}: so it comes {each.as_it_came[0]} (and with {share})")
        elif any(same):
            found[False].append(f"{each.reason}: so it comes with {share}")
    told = found[True][:1] or found[False]
    return "; ".join(told) or f"{UNEXPLAINED}: so it comes with none of the {', '.join(each.ways for each in tries)}"


def _tries(changed: Changed, came: Came, tried: int) -> Iterator[_Try]:
    queued = _as_made(changed, came.pods)
    yield _Try(
        reason=CHANCE,
        as_it_came=("with the successors in the order in which they came", played(queued)),
        ways=ORDERS,
        ends=map(played, orders(changed, tried)),
    )
    # The times of pods are whole seconds: of those that were made in the same one nobody knows who came first.
    yield _Try(
        reason=CHANCE,
        as_it_came=(
            "with all pods that wait in the order in which they came",
            played(_as_made(changed, came.pods, before=came.before)),
        ),
        ways="orders of all pods that wait",
        ends=map(played, _queues(changed, tried)),
    )
    yield _Try(
        reason=CHANCE,
        as_it_came=(
            "with the successors and the machines, one by one, in the order in which they came",
            played(queued, course=Course(coming=_As(came.machines))),
        ),
        ways=f"{ORDERS} with machines that come up one by one",
        ends=_one_by_one(changed, tried),
    )
    yield _Try(
        reason=UNSPREAD,
        as_it_came=(
            "without a default spread, with successors and machines in the order in which they came",
            played(queued, course=Course(coming=_As(came.machines), spread_by_default=False)),
        ),
        ways=f"{ORDERS} without a default spread",
        ends=_unspread(changed, tried),
    )
    yield _Try(reason=CHANCE, ways="ways in which successors come in two parts", ends=_in_parts(changed, tried))


# -- as it came -------------------------------------------------------------------------------------------------------


def _as_made(changed: Changed, made: Sequence[str], *, before: Sequence[str] = ()) -> Changed:
    """The successors in the order in which pods of their workloads were made; they are alike but for their names. Those
    that wait already and were made `before` stand in that order before them.
    """
    lines: dict[str, collections.deque[str]] = {}
    for pod in _successors(changed):
        lines.setdefault(workload(pod), collections.deque()).append(key_of(pod))
    own = {key for line in lines.values() for key in line}
    waiting = {key_of(pod) for pod in changed.scene.objects.pods if not pod.node_name}
    turns = [key for key in before if key in waiting - own]
    turns += [lines[each].popleft() for each in made if lines.get(each)]
    turns += [key for line in lines.values() for key in line]
    places = {key: place for place, key in enumerate(turns)}
    now = changed.scene.now
    pods = [
        msgspec.structs.replace(pod, created=now + dt.timedelta(milliseconds=places[key_of(pod)]))
        if key_of(pod) in places
        else pod
        for pod in changed.scene.objects.pods
    ]
    return dataclasses.replace(changed, scene=with_pods(changed.scene, pods))


class _As:
    """Machines of plan after plan in the order in which such ones came up; others behind them."""

    def __init__(self, machines: Sequence[Machine]) -> None:
        self._places: dict[Machine, collections.deque[int]] = {}
        for place, machine in enumerate(machines):
            self._places.setdefault(machine, collections.deque()).append(place)
        self._last = len(machines)

    def __call__(self, claims: Sequence[PlannedClaim]) -> list[PlannedClaim]:
        placed = [(self._place(planned(claim)), number, claim) for number, claim in enumerate(claims)]
        return [claim for _, _, claim in sorted(placed, key=lambda each: each[:2])]

    def _place(self, machine: Machine) -> int:
        line = self._places.get(machine)
        return line.popleft() if line else self._last


# -- as it might have come --------------------------------------------------------------------------------------------


def _successors(changed: Changed) -> list[CachedPod]:
    """The pods of the nodes that go, as they come again."""
    assert changed.origin is not None
    there = {key_of(pod) for name in changed.gone for pod in changed.origin.pods_on.get(name, ())}
    return [pod for pod in changed.scene.objects.pods if key_of(pod) in there]


def _queues(changed: Changed, tried: int) -> Iterator[Changed]:
    """The change with the pods that wait in other orders."""
    scene = changed.scene
    for turn in range(tried):
        pods = list(scene.objects.pods)
        waiting = [at for at, pod in enumerate(pods) if not pod.node_name]
        random.Random(turn).shuffle(waiting)
        for late, at in enumerate(waiting):
            pods[at] = msgspec.structs.replace(pods[at], created=scene.now + dt.timedelta(milliseconds=late))
        yield dataclasses.replace(changed, scene=with_pods(scene, pods))


def _in_parts(changed: Changed, tried: int) -> Iterator[Played]:
    """How it ends where some of the successors come when machines for the others have been bought."""
    origin = changed.origin
    assert origin is not None
    successors = _successors(changed)
    for turn in range(tried):
        chance = random.Random(turn)
        late = chance.sample(successors, chance.randint(1, max(1, len(successors) - 1)))
        first = dataclasses.replace(changed, scene=_without(changed.scene, late), origin=_without(origin, late))
        begun = played(first)
        rest = Changed(scene=with_pods(begun.scene, [*begun.scene.objects.pods, *late]))
        end = played(rest, since=len(begun.bought))
        yield dataclasses.replace(end, bought=(*begun.bought, *end.bought))


def _without(scene: Scene, pods: Sequence[CachedPod]) -> Scene:
    left_out = {key_of(pod) for pod in pods}
    return with_pods(scene, [pod for pod in scene.objects.pods if key_of(pod) not in left_out])


def _one_by_one(changed: Changed, tried: int) -> Iterator[Played]:
    """How it ends where no two machines come up at the same moment: pods fill the first as if there were no other."""
    ways = list(orders(changed, tried))
    for turn in range(tried):
        chance = random.Random(turn)

        def coming(claims: Sequence[PlannedClaim], chance: random.Random = chance) -> list[PlannedClaim]:
            return chance.sample(claims, len(claims))

        yield played(ways[turn % len(ways)], course=Course(coming=coming))


def _unspread(changed: Changed, tried: int) -> Iterator[Played]:
    """How it ends where pods that state no spread have none."""
    course = Course(spread_by_default=False)
    return (played(each, course=course) for each in orders(changed, tried))
