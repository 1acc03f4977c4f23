"""What the server says now of the places where the pods of a move are to go: the Nodes, the pods there, the pods in line.

And whether they may be asked to leave where they are: the PodDisruptionBudgets.

The cache may be behind: a watch is late, or silent. Before the first deletion of a move the room and the leave that it
counts on are therefore read afresh. Few places are read one by one, each by a list of its own pods; many by one list of all.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Kind
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done
from growth.controllers.disruption.attempts import each
from growth.controllers.environment import Environment
from growth.controllers.fresh import Look
from growth.controllers.growth.removing import is_marked
from growth.kube.errors import NotFound
from growth.kube.whole import PAGE, every

# So many lists of single nodes are fewer bytes than one of a whole cluster, and no burden.
FEW: Final = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Some nodes by name, None for one that is gone; the pods that are bound there, and all that are bound nowhere yet;
    every PodDisruptionBudget.

    `claims` are those of machines that look like nobody's, by provider ID: their Nodes have no mark of ours yet, and the cache
    does not know of whom they are. `until` is how long one may act by it, by the boot clock.
    """

    until: float
    nodes: Mapping[str, Node | None]
    pods: Mapping[str, tuple[CachedPod, ...]]
    waiting: tuple[CachedPod, ...]
    budgets: tuple[PodDisruptionBudget, ...]
    claims: Mapping[str, NodeClaim] = dataclasses.field(default_factory=dict)

    def marked(self, places: Collection[str]) -> tuple[str, ...]:
        """Those of them that are marked for scale-down: no pod goes there until the mark is off."""
        return tuple(name for name in sorted(places) if (node := self.nodes.get(name)) is not None and is_marked(node))

    def holds_after(self, before: "Surroundings") -> bool:
        """Whether what was found possible `before` is so now: no pod has come, the nodes are what they were, and no budget
        allows less.
        """
        known = {budget.metadata.uid: budget for budget in before.budgets}
        return (
            all(
                (old := before.nodes.get(name)) is not None and node is not None and _takes_the_same(old, node)
                for name, node in self.nodes.items()
            )
            and all(
                (asked := known.get(budget.metadata.uid)) is not None and _allows_as_much(asked, budget)
                for budget in self.budgets
            )
            and {*_uids(self.waiting), *_uids(*self.pods.values())}
            <= {*_uids(before.waiting), *_uids(*before.pods.values())}
        )


async def look(env: Environment, places: Collection[str]) -> Surroundings | None:
    """None where the server does not answer all of it."""
    began = Look.begin(env.clock)
    wanted = sorted(places)
    if len(wanted) > max(FEW, len(env.state.pods.store) // PAGE):
        asked = [""]
    else:
        asked = [*(f"spec.nodeName={name}" for name in wanted), "spec.nodeName="]

    async def node(name: str) -> tuple[Node | None]:
        try:
            return (await env.api.get(NODE, name),)
        except NotFound:
            return (None,)

    async def listed(fields: str) -> list[CachedPod]:
        return [env.state.shapes.keep(pod) for pod in await every(env.api, POD, fields=fields)]

    async def budgets(kind: Kind[PodDisruptionBudget]) -> list[PodDisruptionBudget]:
        return await every(env.api, kind)

    async def named(provider_ids: Collection[str]) -> dict[str, NodeClaim]:
        found = await every(env.api, NODE_CLAIM)
        return {claim.status.provider_id: claim for claim in found if claim.status.provider_id in provider_ids}

    # Once each: while one answer is waited for, the others grow old.
    pods = await each(asked, listed, attempts=1)
    nodes = await each(wanted, node, attempts=1)
    (asking,) = await each((POD_DISRUPTION_BUDGET,), budgets, attempts=1)
    if asking is None or any(one is None for one in pods) or any(one is None for one in nodes):
        return None
    strange = {
        one[0].spec.provider_id for one in nodes if one is not None and one[0] is not None and _is_strange(env, one[0])
    }
    (claims,) = await each((strange,), named, attempts=1) if strange else ({},)
    if claims is None:
        return None
    by_node: dict[str, list[CachedPod]] = {name: [] for name in ("", *wanted)}
    for pod in {pod.uid: pod for some in pods if some is not None for pod in some}.values():
        if pod.node_name in by_node:
            by_node[pod.node_name].append(pod)
    return Surroundings(
        until=began.good_until(env.clock),
        nodes={name: one[0] for name, one in zip(wanted, nodes, strict=True) if one is not None},
        pods={name: tuple(by_node[name]) for name in wanted},
        waiting=tuple(by_node[""]),
        budgets=tuple(asking),
        claims=claims,
    )


def _is_strange(env: Environment, node: Node) -> bool:
    """Whether the Node may be of a claim that the cache has not heard of: only then nobody there has its provider ID."""
    provider_id = node.spec.provider_id
    marked = node.metadata.labels.get(names.REGISTERED_LABEL) == "true"
    return bool(provider_id) and not marked and not env.state.claims.store.find("provider", provider_id)


def _takes_the_same(old: Node, new: Node) -> bool:
    """Whether pods that the one would take the other takes too."""
    return (
        old.metadata.uid == new.metadata.uid
        and new.metadata.deletion_timestamp is None
        and old.metadata.labels == new.metadata.labels
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
    )


def _allows_as_much(old: PodDisruptionBudget, new: PodDisruptionBudget) -> bool:
    return old.spec == new.spec and old.status.disruptions_allowed <= new.status.disruptions_allowed


def _uids(*pods: Iterable[CachedPod]) -> set[str]:
    return {pod.uid for some in pods for pod in some if not is_done(pod)}
