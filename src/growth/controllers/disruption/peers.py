"""Pods that count where the pods of a move may go, wherever they are themselves: those of a spread, those of an affinity.

The nodes that are to take a pod are read afresh before its own goes. For one that spreads over zones that is not enough: who
came or left in a third zone decides too. Those pods are asked for by their labels, and where the server knows others than
the cache, nothing is done by the cache. Whom pods elsewhere keep out of their whole zone is taken from the cache.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from growth.api import names
from growth.api.meta import LabelSelector, selector_text
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done
from growth.controllers.environment import Environment
from growth.kube.whole import every
from growth.planning.selectors import compiled

_EVERYWHERE: Final = ""


async def agreed(env: Environment, moving: Iterable[CachedPod]) -> bool:
    """Whether the cache knows the pods that count for those of the move, and where they are, as the server does now."""
    asked: dict[tuple[str, str], LabelSelector] = {}
    for shape in dict.fromkeys(pod.shape for pod in moving):
        asked |= {(namespace, selector_text(selector)): selector for namespace, selector in _counted(shape)}
    for (namespace, text), selector in asked.items():
        there = await every(env.api, POD, namespace=namespace, labels=text)
        matches = compiled(selector)
        known = (
            pod
            for pod in env.state.pods.store
            if namespace in {pod.namespace, _EVERYWHERE} and matches(pod.shape.labels)
        )
        if _where(map(env.state.shapes.keep, there)) != _where(known):
            return False
    return True


def _counted(shape: PodShape) -> Iterator[tuple[str, LabelSelector]]:
    """The namespace and the selector of each rule about pods beyond the node that takes this one."""
    for spread in shape.spec.topology_spread_constraints:
        if spread.when_unsatisfiable == "DoNotSchedule" and spread.label_selector is not None:
            yield shape.namespace, spread.label_selector
    affinity = shape.spec.affinity
    for rules in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        for term in rules.required_during_scheduling_ignored_during_execution if rules is not None else ():
            if term.topology_key != names.HOSTNAME_LABEL and term.label_selector is not None:
                own = not term.namespaces and term.namespace_selector is None
                yield shape.namespace if own else _EVERYWHERE, term.label_selector


def _where(pods: Iterable[CachedPod]) -> set[tuple[str, str, bool]]:
    """Pods by UID, with their node, and whether they are leaving: such do not count."""
    return {(pod.uid, pod.node_name, pod.deleting is not None) for pod in pods if not is_done(pod)}
