"""What counts for the pods of a move beyond the nodes that are to take them, and whether the cache knows it as the server does.

Those nodes are read afresh before a move deletes. That is not enough where pods spread over zones: who came or left in a third
zone decides too. Nor where machines elsewhere are on their way out: their pods want the same room. So pods of a spread or an
affinity are asked for by their labels, and claims and Nodes all at once, for deleting either deletes both; where the server knows
others than the cache, nothing is done by the cache. The claims tell too whether another process has bought something for the
nodes of the move; what the cache knows of is given back by `mending` and holds nothing up. Whom pods elsewhere keep out of their
whole zone is taken from the cache.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from growth.api import moves as intents
from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.meta import LabelSelector, selector_text
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.cluster.replacing import replaces
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done
from growth.controllers.environment import Environment
from growth.kube.whole import every
from growth.planning.selectors import compiled

_EVERYWHERE: Final = ""


async def agreed(
    env: Environment, moving: Iterable[CachedPod], *, going: Collection[str], coming: Collection[str]
) -> bool:
    """Whether the cache knows which machines leave, and the pods that count for those of the move, as the server does now; and
    whether the claims that are `going` are replaced by none but those that are `coming` or that it knows of.
    """
    leaving = _deleted((*env.state.claims.store, *env.state.nodes.store))
    claims, nodes = await every(env.api, NODE_CLAIM), await every(env.api, NODE)
    if _unheard(env, _deleted((*claims, *nodes)) - leaving) or _is_begun(env, claims, going, coming):
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


def _is_begun(env: Environment, claims: Iterable[NodeClaim], going: Collection[str], coming: Collection[str]) -> bool:
    """Whether something else was bought for a move of the same nodes, and the cache has not heard of it."""
    return any(
        claim.metadata.name not in coming
        and claim.metadata.deletion_timestamp is None
        and env.state.claims.store.get(claim.metadata.name) is None
        and intents.intent_of(claim.metadata) is not None
        and not set(going).isdisjoint(replaces(claim))
        for claim in claims
    )


def _unheard(env: Environment, there: set[str]) -> set[str]:
    """UIDs of claims and Nodes that are being deleted, while the cache takes their machine for one that stays.

    One of the two is enough for it to know. `there` lacks what it knew when the server was asked: that may be gone by the answer.
    """
    news = there - _deleted((*env.state.claims.store, *env.state.nodes.store))
    if not news:
        return news
    machines = (counted.machine for counted in env.state.picture(env.clock.now()).counted.values())
    leaving = ((machine.node, machine.claim) for machine in machines if machine.leaving)
    return news - {each.metadata.uid for both in leaving for each in both if each is not None}


def _deleted(some: Iterable[NodeClaim | Node]) -> set[str]:
    return {each.metadata.uid for each in some if each.metadata.deletion_timestamp is not None}


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
