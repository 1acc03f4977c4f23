"""What a search is asked, with time taken out: two searches that are asked the same find the same.

Time only matters by what it says now: whose protection has ended, where nothing has come or gone for long enough, who was
moved a moment ago, whose pods will have ended soon. So a situation that only grew older is the same question.
"""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence

from growth.api.karpenter import NodePool
from growth.api.policy import PodDisruptionBudgetSpec
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.disruption.candidates import may_receive
from growth.planning.disruption.model import OwnedNode, Room, Situation
from growth.planning.disruption.search.ground import moving
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.disruption.search.parting import parting
from growth.planning.disruption.search.resting import Resting


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    """A node of ours as a search sees it. `takes`: moved pods may go there. `rests`: it is replaced for a smaller saving.
    `leave` are those that would have to leave.
    """

    name: str
    pool: str
    price: int | None
    created: dt.datetime | None
    replaces: bool
    given_up: tuple[str, ...]
    view: NodeView | None
    pods: tuple[CachedPod, ...]
    leaving: bool
    ready: bool
    takes: bool
    rests: bool
    leave: tuple[CachedPod, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """All that `consolidate` reads; compared by what it says."""

    rooms: Mapping[str, Room]
    demands: tuple[Demand, ...]
    closing: tuple[NodeView, ...]
    ending: frozenset[str]
    registered: frozenset[str]
    nodes: tuple[_Node, ...]
    candidates: tuple[_Node, ...]
    moved: Mapping[str, dt.datetime]
    parting: frozenset[str]
    allowed: tuple[tuple[str, PodDisruptionBudgetSpec, int], ...]
    buffered: frozenset[str]
    pools: Mapping[str, NodePool]
    snapshot: Snapshot
    options: SearchOptions


def asked(
    situation: Situation, candidates: Sequence[OwnedNode], rooms: Mapping[str, Room], options: SearchOptions
) -> Asked:
    def seen(node: OwnedNode, leave: Sequence[CachedPod] = ()) -> _Node:
        return _Node(
            name=node.name,
            pool=node.pool,
            price=node.price,
            created=node.created,
            replaces=node.replaces,
            given_up=node.given_up,
            view=node.view,
            pods=tuple(node.pods),
            leaving=node.leaving,
            ready=node.ready,
            takes=may_receive(node, situation),
            rests=options.rests(node),
            leave=tuple(leave),
        )

    return Asked(
        rooms=dict(rooms),
        demands=situation.demands,
        closing=situation.closing,
        ending=situation.ending,
        registered=situation.registered,
        nodes=tuple(map(seen, situation.nodes)),
        candidates=tuple(seen(node, moving(node, situation)) for node in candidates),
        moved=Resting(situation, options.settling).moved,
        parting=frozenset(pod.uid for pods in parting(situation).values() for pod in pods),
        allowed=tuple(
            (each.metadata.namespace, each.spec, each.status.disruptions_allowed)
            for each in situation.disruption_budgets
        ),
        buffered=situation.buffered,
        pools=situation.pools,
        snapshot=dataclasses.replace(situation.snapshot, revision=0),
        options=dataclasses.replace(options, stop=None),
    )
