"""A cluster's objects at one moment, and what follows from them: the plan, the decision, and who is in the way.

Everything is worked out when it is first asked for. A scene after a change is another scene (`applying.applied`).
"""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.nodes import Node
from growth.api.overlays import NodeOverlay
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.cluster.assemble import Assembled, Objects, Picture, composed, pictured
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, PoolView, Snapshot
from growth.cluster.wanting import key_of
from growth.planning.disruption.candidates import empty, why_kept
from growth.planning.disruption.decide import Options as Deciding
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Decided, Kept, Situation
from growth.planning.disruption.room import rooms
from growth.planning.disruption.situating import situated
from growth.planning.disruption.words import BUDGET
from growth.planning.explaining.facts import facts_of, pods_by_node
from growth.planning.overlays import overlaid
from growth.planning.plan import Plan
from growth.planning.solve import Options, solve


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """What is known of a cluster at `now`. `buffered` are the pods that CapacityBuffers stand for."""

    objects: Objects
    catalogue: Catalogue
    now: dt.datetime
    overlays: tuple[NodeOverlay, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    buffered: tuple[Demand, ...] = ()
    planning: Options = Options()  # noqa: RUF009 - frozen
    deciding: Deciding = Deciding()  # noqa: RUF009 - frozen

    # What follows from it.

    @functools.cached_property
    def picture(self) -> Picture:
        return dataclasses.replace(pictured(self.objects, self.catalogue, now=self.now), overlays=self.overlays)

    @functools.cached_property
    def assembled(self) -> Assembled:
        return composed(self.picture)

    @functools.cached_property
    def snapshot(self) -> Snapshot:
        return overlaid(self.assembled.snapshot, self.overlays)[0]

    @property
    def demands(self) -> tuple[Demand, ...]:
        """The pods that want a place, those of buffers among them."""
        return (*self.assembled.demands, *self.buffered)

    @functools.cached_property
    def plan(self) -> Plan:
        return solve(self.snapshot, self.demands, self.planning)

    @functools.cached_property
    def situation(self) -> Situation:
        return situated(
            self.picture,
            facts=facts_of(self.objects, self.picture, self.plan, buffered=self.buffered, pods=self.pods_on),
            pods=self.pods_on,
            disruption_budgets=self.disruption_budgets,
            buffered=self.buffered,
        )

    @functools.cached_property
    def decided(self) -> Decided:
        return decide(self.situation, self.deciding)

    def standing(self) -> Mapping[str, Kept]:
        """Why nodes are kept by what protects them, by budgets or by whose they are; without any search, so that it takes
        milliseconds for thousands of nodes. A node that is missing here goes, or stays because nothing is gained.
        """
        situation = self.situation
        found = {each.node: each for each in situation.others}
        for node in situation.nodes:
            reason = names.EMPTY if empty(node.pods) else names.UNDERUTILIZED
            kept = why_kept(node, situation, reason=reason)
            if kept is not None:
                found[node.name] = kept
        for reason in (names.EMPTY, names.UNDERUTILIZED):
            blocked = {pool: room for pool, room in rooms(situation, reason=reason).items() if room.delete == 0}
            for node in situation.nodes:
                if node.pool in blocked and empty(node.pods) == (reason == names.EMPTY):
                    told = Kept(node.name, node.pool, BUDGET, blocked[node.pool].blocked, waits=True)
                    found.setdefault(node.name, told)
        return found

    # Who is who.

    @functools.cached_property
    def pods(self) -> Mapping[str, CachedPod]:
        """By namespace/name."""
        return {key_of(pod): pod for pod in self.objects.pods}

    @functools.cached_property
    def pods_on(self) -> Mapping[str, Sequence[CachedPod]]:
        return pods_by_node(self.objects.pods)

    @functools.cached_property
    def pools(self) -> Mapping[PoolRef, NodePool | GrowthPool]:
        found: dict[PoolRef, NodePool | GrowthPool] = {
            PoolRef.karpenter(each.metadata.name): each for each in self.objects.pools
        }
        return found | {PoolRef.growth(each.metadata.name): each for each in self.objects.growth_pools}

    @functools.cached_property
    def views(self) -> Mapping[PoolRef, PoolView]:
        """The pools as planning sees them."""
        return {view.ref: view for view in self.snapshot.pools}

    @functools.cached_property
    def nodes(self) -> Mapping[str, Node]:
        return {each.metadata.name: each for each in self.objects.nodes}

    @functools.cached_property
    def claims(self) -> Mapping[str, NodeClaim]:
        return {each.metadata.name: each for each in self.objects.claims}

    # Questions.

    @functools.cached_property
    def unplaced(self) -> frozenset[str]:
        """The pods that the plan has no place for."""
        return frozenset(each.pod for each in self.plan.unplaced)

    def placed(self, pod: str) -> bool:
        """Whether the pod wants a place and the plan has one."""
        return pod not in self.unplaced and any(each.key == pod for each in self.demands)

    def goes(self, node: str) -> bool:
        """Whether the node would be removed now, or is on its way out."""
        return node not in self.nodes or any(node in move.nodes for move in self.decided.moves)
