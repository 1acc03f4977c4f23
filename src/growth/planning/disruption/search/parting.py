"""Pods on their way out: whoever buys while they still hold their room buys what nobody needs when they are gone.

What is bought too much is removed again, and with it pods are moved a second time. So a purchase waits that would be
smaller once they have ended; not for such as take longer than a machine needs to come up, nor for such as are overdue.
"""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

from growth.api.requests import requests_of
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import NodeView
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.model import Situation
from growth.planning.disruption.search.course import Course, Step
from growth.planning.disruption.search.ground import Ground, Trial
from growth.planning.disruption.search.prices import worst_launch
from growth.planning.disruption.search.resting import COMING_UP
from growth.units import QuantityError
from growth.units.resources import Amounts, add, subtract


def parting(situation: Situation) -> Mapping[str, Sequence[CachedPod]]:
    """The pods that will have ended before a machine that is bought now is up, by their node."""
    until = situation.now + COMING_UP
    found = {
        node.name: tuple(
            pod
            for pod in node.pods
            if pod.deleting is not None and situation.now <= pod.deleting <= until and occupants.leaves_room(pod)
        )
        for node in situation.nodes
        if node.view is not None
    }
    return {name: pods for name, pods in found.items() if pods}


def when_gone(situation: Situation) -> Situation | None:
    """The situation without them; None where nobody is on the way out."""
    ending = parting(situation)
    return _without(situation, ending) if ending else None


def wait(course: Course, soon: Situation) -> bool:
    """Takes steps back that would buy for less in the situation that comes; whether there were any."""
    if not any(step.bought for step in course.steps):
        return False
    ground = Ground(soon, list(course.ground.owned.values()), course.options)
    for at in sorted(course.gone):
        ground.nodes.close(at)
    waiting = [step for step in course.steps if step.bought and _cheaper_then(course, step, ground)]
    course.ground.steps += ground.steps
    course.steps = [step for step in course.steps if step not in waiting]
    for step in waiting:
        for at in step.nodes:
            told = "pods that are on their way out leave room for some of its own"
            course.say(course.ground.owned[at], words.PODS_ENDING, told, waits=True)
    return bool(waiting)


def _cheaper_then(course: Course, step: Step, ground: Ground) -> bool:
    """Whether by then so much less must be bought as a move must save at least."""
    paid = sum(course.ground.owned[at].price or 0 for at in step.nodes)
    now = sum(each.planned.price for each in step.bought)
    trial = ground.with_purchase(step.nodes)
    if trial is None:
        return False
    then = _cost(trial)
    trial.undo()
    return then < now and (now - then) * 100 >= paid * course.options.least_percent


def _cost(trial: Trial) -> int:
    return sum(min(worst_launch(claim.shelf, claim.mask).values()) for claim in trial.claims)


def _without(situation: Situation, ending: Mapping[str, Sequence[CachedPod]]) -> Situation:
    views = {
        node.name: _left(node.view, [pod.shape for pod in ending[node.name]])
        for node in situation.nodes
        if node.view is not None and node.name in ending
    }
    snapshot = situation.snapshot
    nodes = tuple(views.get(view.name, view) for view in snapshot.nodes)
    return dataclasses.replace(situation, snapshot=dataclasses.replace(snapshot, nodes=nodes))


def _left(view: NodeView, gone: Sequence[PodShape]) -> NodeView:
    held, uncounted = collections.Counter(dict(view.pods)), collections.Counter(dict(view.uncounted))
    held.subtract(gone)
    uncounted.subtract(gone)
    less = subtract(view.requested, add({}, *map(_requests, gone)))
    return dataclasses.replace(
        view,
        requested={name: max(0, amount) for name, amount in less.items()},
        pods=tuple((shape, count) for shape, count in held.items() if count > 0),
        uncounted=tuple((shape, count) for shape, count in uncounted.items() if count > 0),
    )


def _requests(shape: PodShape) -> Amounts:
    try:
        return requests_of(shape.spec)
    except QuantityError:
        return {}
