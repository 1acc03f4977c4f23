"""What counts for the pods of a move beyond the nodes that are to take them, and whether the cache knows it as the server does.

Those nodes are read afresh before a move deletes. That is not enough where pods spread over zones: who came or left in a third
zone decides too. Nor where machines elsewhere are on their way out: their pods want the same room. So pods of a spread or an
affinity are asked for by their labels, and claims all at once; where the server knows others than the cache, nothing is done
by the cache. Whom pods elsewhere keep out of their whole zone is taken from the cache.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.meta import LabelSelector, selector_text
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done
from growth.controllers.environment import Environment
from growth.kube.whole import every
from growth.planning.selectors import compiled

_EVERYWHERE: Final = ""


async def agreed(env: Environment, moving: Iterable[CachedPod]) -> bool:
    """Whether the cache knows which machines leave, and the pods that count for those of the move, as the server does now."""
    going = {claim.metadata.uid for claim in await every(env.api, NODE_CLAIM) if _leaves(claim)}
    if going - {claim.metadata.uid for claim in env.state.claims.store if _leaves(claim)}:
        return False
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


def _leaves(claim: NodeClaim) -> bool:
    return claim.metadata.deletion_timestamp is not None


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
