"""A cluster's objects at one moment, and what follows from them: the plan, the decision, and who is in the way.

Everything is worked out when it is first asked for. A scene after a change is another scene (`applying.applied`).
"""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence, Set

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim, NodeClassReference, NodePool
from growth.api.meta import ObjectMeta
from growth.api.nodes import Node
from growth.api.overlays import NodeOverlay
from growth.api.placement import NO_SCHEDULE
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.cluster.assemble import Assembled, Objects, Picture, composed, pictured
from growth.cluster.machines import Machine
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, PoolView, Snapshot
from growth.cluster.wanting import is_done, key_of, movable
from growth.planning import trimming
from growth.planning.disruption import words
from growth.planning.disruption.candidates import empty, why_kept
from growth.planning.disruption.consequences import absent
from growth.planning.disruption.decide import Options as Deciding
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Decided, Kept, Situation
from growth.planning.disruption.room import rooms
from growth.planning.disruption.search import told_apart
from growth.planning.disruption.situating import situated
from growth.planning.disruption.static import sold
from growth.planning.disruption.surplus import Held, excess, missing, most, standing
from growth.planning.disruption.words import BUDGET
from growth.planning.emptying import ScaleDown
from growth.planning.explaining import warming
from growth.planning.explaining.facts import facts_of, pods_by_node
from growth.planning.explaining.lowering import Lowering, lowered
from growth.planning.explaining.refilling import Lack, lack
from growth.planning.explaining.renewing import Renewed, renewed
from growth.planning.explaining.scaling import scale_down
from growth.planning.explaining.scaling import why_kept as growth_kept
from growth.planning.explaining.warming import Warm
from growth.planning.overlays import OverlayProblem, overlaid
from growth.planning.plan import Plan
from growth.planning.solve import Options, solve
from growth.planning.wishes import for_no_wish


@dataclasses.dataclass(frozen=True, kw_only=True)
class Scene:
    """What is known of a cluster at `now`. `buffered` are the pods that CapacityBuffers stand for. `served` are the (group,
    kind) of node classes that the cloud makes machines of, and other kinds are left alone; where there are none, all count.
    """

    objects: Objects
    catalogue: Catalogue
    now: dt.datetime
    overlays: tuple[NodeOverlay, ...] = ()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    buffered: tuple[Demand, ...] = ()
    served: frozenset[tuple[str, str]] = frozenset()
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
    def _laid(self) -> tuple[Snapshot, tuple[OverlayProblem, ...]]:
        snapshot, problems = overlaid(self.assembled.snapshot, self.overlays)
        return self._without_foreign(snapshot), problems

    @property
    def snapshot(self) -> Snapshot:
        return self._laid[0]

    @property
    def overlay_problems(self) -> tuple[OverlayProblem, ...]:
        """The overlays that were not laid."""
        return self._laid[1]

    @property
    def demands(self) -> tuple[Demand, ...]:
        """The pods that want a place, those of buffers among them."""
        return (*self.assembled.demands, *self.buffered)

    @functools.cached_property
    def plan(self) -> Plan:
        return self._planned_without(frozenset(), ())

    def _planned_without(self, gone: Set[str], moving: Sequence[Demand]) -> Plan:
        """The plan when some nodes are gone and their pods wait beside those that do."""
        nodes = tuple(node for node in self.snapshot.nodes if node.name not in gone)
        leaving = {key_of(pod) for each in self.picture.counted.values() for pod in each.moving}
        staying = dataclasses.replace(self.snapshot, nodes=nodes) if gone else self.snapshot
        plan = for_no_wish(
            solve,
            warming.on_their_way(staying, self.warm),
            (*self.demands, *moving),
            self.planning,
            leaving=leaving | {each.key for each in moving},
            virtual={each.key for each in self.buffered},
        )
        return warming.as_bought(plan, self.warm, node_cost=self.planning.node_cost)

    @functools.cached_property
    def warm(self) -> Mapping[str, Warm]:
        """What growth pools buy at once, whatever pods there are; a plan counts on its room."""
        return warming.missing(self.snapshot, self.objects.growth_pools)

    @functools.cached_property
    def situation(self) -> Situation:
        return self._situated(frozenset(), self.plan)

    @functools.cached_property
    def relieved(self) -> Situation:
        """The situation once what pools have too many of is on its way out, and its pods want other places."""
        return self._situated(self.surplus, self.lowering.plan) if self.surplus else self.situation

    def _situated(self, going: Set[str], plan: Plan) -> Situation:
        facts = facts_of(self.objects, self.picture, plan, buffered=self.buffered, pods=self.pods_on)
        found = situated(
            self.picture,
            facts={
                name: dataclasses.replace(
                    each, acting=name in going, foreign=self._whose(self.picture.counted[name].machine)
                )
                for name, each in facts.items()
            },
            pods=self.pods_on,
            disruption_budgets=self.disruption_budgets,
            buffered=self.buffered,
        )
        stated = dataclasses.replace(found, snapshot=self._without_foreign(found.snapshot))
        return self._emptied(stated, sorted(going - {each.name for each in found.nodes}))

    def _emptied(self, situation: Situation, going: Sequence[str]) -> Situation:
        """With machines on their way out that no decision is about, such as growth pools' or those without a Node yet: nobody
        comes there, and their pods want other places.
        """
        if not going:
            return situation
        pods = [pod for name in going for pod in self.pods_on.get(name, ()) if not is_done(pod) and movable(pod)]
        return dataclasses.replace(
            absent(situation, going),
            demands=(*situation.demands, *(Demand(key_of(pod), pod.shape) for pod in pods)),
            ending=situation.ending | {key_of(pod) for pod in pods},
        )

    @functools.cached_property
    def foreign_pools(self) -> Mapping[PoolRef, str]:
        """The pools that are left alone because another provider serves them, and how that is known."""
        uses = {
            PoolRef.karpenter(each.metadata.name): each.spec.template.spec.node_class_ref for each in self.objects.pools
        }
        named = {PoolRef.growth(each.metadata.name): each.spec.node_class_ref for each in self.objects.growth_pools}
        found = {ref: self._foreign(each) for ref, each in (uses | named).items()}
        return {ref: told for ref, told in found.items() if told}

    def _without_foreign(self, snapshot: Snapshot) -> Snapshot:
        """With pools of others as such where nothing can be bought; their nodes have the room that they have."""
        told = self.foreign_pools
        if not told:
            return snapshot
        pools = (
            dataclasses.replace(view, problem=told[view.ref]) if view.ref in told and not view.problem else view
            for view in snapshot.pools
        )
        return dataclasses.replace(snapshot, pools=tuple(pools))

    def _whose(self, machine: Machine) -> str:
        return self._foreign(machine.claim.spec.node_class_ref) if machine.claim is not None else ""

    def _foreign(self, uses: NodeClassReference | None) -> str:
        """Whose the machines of the class are, where they are not ours; without a class they are."""
        if uses is None or not uses.kind or not self.served or (uses.group, uses.kind) in self.served:
            return ""
        return f"its node class is a {uses.kind} of {uses.group or 'the core group'}, which another provider serves"

    @functools.cached_property
    def decided(self) -> Decided:
        """What goes now: what pools have too many of, what static pools replace, and what disruption takes besides."""
        found, static = decide(self.relieved, self.deciding), self.renewed(self.relieved)
        gone = self.surplus | {name for move in static.moves for name in move.nodes}
        told = {each.node: each for each in static.kept}
        kept = [self._by_own_rules(each) for each in told_apart(self.relieved, found, self.deciding.search)]
        return dataclasses.replace(
            found,
            moves=(*self.lowering.moves, *static.moves, *found.moves),
            kept=tuple(told.get(each.node, each) for each in kept if each.node not in gone),
        )

    def renewed(self, situation: Situation) -> Renewed:
        """Of the drifted machines of static pools those that go; one that has too many comes down first."""
        found = [
            renewed(
                situation.pools[name],
                standing(pool, *self._claims_of(PoolRef.karpenter(name))),
                situation,
                sold=functools.partial(sold, self.picture, pool, self.planning),
                priced=self.deciding.priced,
            )
            for name, pool in self._static.items()
            if not self.too_many(pool)
        ]
        return Renewed(
            tuple(move for each in found for move in each.moves), tuple(kept for each in found for kept in each.kept)
        )

    @functools.cached_property
    def lacking(self) -> tuple[Lack, ...]:
        """What static pools buy at once, whatever pods there are; no plan counts on its room."""
        short = {
            name: missing(pool, standing(pool, *self._claims_of(PoolRef.karpenter(name))))
            for name, pool in self._static.items()
        }
        return tuple(
            lack(self._static[name], number, sold(self.picture, self._static[name], self.planning))
            for name, number in short.items()
            if number
        )

    @functools.cached_property
    def _static(self) -> Mapping[str, NodePool]:
        """The static pools that somebody keeps at their number, by name."""
        return {
            pool.metadata.name: pool
            for pool in self.objects.pools
            if pool.spec.replicas is not None and self._resizes(PoolRef.karpenter(pool.metadata.name))
        }

    @functools.cached_property
    def scaling_down(self) -> ScaleDown:
        """What growth pools do about their empty nodes."""
        return scale_down(
            self.picture,
            pods=self.pods_on,
            wanted={filled.name for filled in self.lowering.plan.filled},
            going=self.surplus,
            foreign=self._whose,
        )

    def of_growth(self, machine: Machine) -> Kept | None:
        """Why a growth pool's own rules keep an initialised node; None where disruption decides, or it goes."""
        pool = self.pools.get(machine.pool) if machine.pool is not None else None
        own = pool if isinstance(pool, GrowthPool) else None
        return growth_kept(machine, own, pods=self.pods_on.get(machine.name, ()), down=self.scaling_down)

    def _by_own_rules(self, kept: Kept) -> Kept:
        """In the words of the pool's own rules where those keep the node."""
        machine = self.picture.counted[kept.node].machine
        if kept.reason != words.GROWTH_POOL or kept.waits or not machine.initialized:
            return kept
        if self.goes_empty(kept.node):
            told = f"it is empty: NodePool {kept.pool} removes it unless a pod comes"
            return dataclasses.replace(kept, message=told, waits=True)
        return self.of_growth(machine) or kept

    @functools.cached_property
    def surplus(self) -> frozenset[str]:
        """Nodes that go because their pool has more than its limit or its replicas allow."""
        return frozenset(name for pool in self.pools.values() for name in self.too_many(pool))

    @functools.cached_property
    def lowering(self) -> Lowering:
        """The same as moves, one a pool; nothing holds them but what holds a drain. What is bought for their pods counts."""
        going = {ref: self.too_many(pool) for ref, pool in self.pools.items()}
        return lowered(
            {ref: nodes for ref, nodes in going.items() if nodes},
            self.plan,
            planned=self._planned_without,
            pods=self.pods_on,
            prices={node.name: node.price for node in self.snapshot.nodes},
        )

    def too_many(self, pool: NodePool | GrowthPool) -> tuple[str, ...]:
        """The machines that a pool has more than it may have, in the order in which they go.

        What is paused counts, and does not go.
        """
        if isinstance(pool, GrowthPool):
            return self._beyond(pool)
        bound = most(pool)
        ref = PoolRef.karpenter(pool.metadata.name)
        if bound is None or not self._resizes(ref):
            return ()
        own = self._machines_of(ref)
        staying = [claim.metadata.name for claim in standing(pool, *self._claims_of(ref)).staying]
        free = [name for name in staying if not _held_fast(own[name])]
        ranked = [
            dataclasses.replace(held(own[name], self.pods_on.get(own[name].name, ())), name=name) for name in free
        ]
        chosen = excess(ranked, most=max(0, bound - (len(staying) - len(free))), now=self.now)
        return tuple(own[name].name for name in chosen)

    def _beyond(self, pool: GrowthPool) -> tuple[str, ...]:
        """Of a growth pool. A machine whose Node is paused has its turn as others have, and no other goes in its place."""
        ref = PoolRef.growth(pool.metadata.name)
        if not self._resizes(ref):
            return ()
        own = {name: each for name, each in self._machines_of(ref).items() if not _deleted(each)}
        members = [
            trimming.member(each.claim, each.node, self.pods_on.get(each.name, ()))
            for each in own.values()
            if each.claim is not None
        ]
        chosen = trimming.in_order(pool, members, now=self.now)[: trimming.beyond(pool, len(members))]
        return tuple(own[name].name for name in chosen if not _node_paused(own[name]))

    def _resizes(self, ref: PoolRef) -> bool:
        """Whether anybody sees to the pool's number of machines."""
        meta = self.pools[ref].metadata
        if meta.deletion_timestamp is not None or _paused(meta):
            return False
        return ref not in self.foreign_pools

    def _machines_of(self, ref: PoolRef) -> dict[str, Machine]:
        """By claim."""
        return {
            each.machine.claim.metadata.name: each.machine
            for each in self.picture.counted.values()
            if each.machine.claim is not None and each.machine.pool == ref
        }

    def _claims_of(self, ref: PoolRef) -> tuple[list[NodeClaim], set[str]]:
        """The pool's claims, and the names of those that somebody is disrupting."""
        own = self._machines_of(ref)
        marked = {name for name, machine in own.items() if machine.node is not None and _disrupted(machine.node)}
        return [machine.claim for machine in own.values() if machine.claim is not None], marked

    def standing(self) -> Mapping[str, Kept]:
        """Why nodes are kept by what protects them, by budgets or by whose they are; without any search, so that it takes
        milliseconds for thousands of nodes. A node that is missing here goes, or stays because nothing is gained.
        """
        situation = self.situation
        found = {each.node: self._by_own_rules(each) for each in situation.others}
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
        """Whether the node is gone, or would be removed as things are: now, or for growth pools when its time is over."""
        if node not in self.nodes or node in self.surplus:
            return True
        if self.goes_empty(node) or self._scaled_down(node):
            return self.goes_empty(node)
        return any(node in move.nodes for move in self.decided.moves)

    def goes_empty(self, node: str) -> bool:
        """Whether its growth pool removes it because it is empty: now, or when its time is over."""
        down = self.scaling_down
        if node in down.remove or any(node == each.node for each in down.mark):
            return True
        return self._scaled_down(node) and node not in down.cancel

    def _scaled_down(self, node: str) -> bool:
        """Whether its growth pool has marked it."""
        machine = self.picture.counted[node].machine
        return machine.pool is not None and machine.pool.group == names.GROWTH and self._marked(node)

    def _marked(self, node: str) -> bool:
        return node in self.nodes and any(each.key == names.SCALE_DOWN_TAINT for each in self.nodes[node].spec.taints)


def _paused(meta: ObjectMeta) -> bool:
    return meta.annotations.get(names.PAUSED_ANNOTATION, "false") != "false"


def _held_fast(machine: Machine) -> bool:
    """Whether a person has paused it."""
    return any(each is not None and _paused(each.metadata) for each in (machine.node, machine.claim))


def _node_paused(machine: Machine) -> bool:
    return machine.node is not None and _paused(machine.node.metadata)


def _deleted(machine: Machine) -> bool:
    """Whether its claim is being deleted."""
    return machine.claim is not None and machine.claim.metadata.deletion_timestamp is not None


def _disrupted(node: Node) -> bool:
    """Whether somebody is disrupting it."""
    return any(each.key == names.DISRUPTED_TAINT and each.effect == NO_SCHEDULE for each in node.spec.taints)


def held(machine: Machine, pods: Sequence[CachedPod]) -> Held:
    """A machine with a claim, for the question which go first where there are too many."""
    claim, node = machine.claim, machine.node
    assert claim is not None
    annotated = [each.metadata.annotations for each in (claim, node) if each is not None]
    return Held(
        name=machine.name,
        launched=bool(claim.status.provider_id),
        pods=pods,
        protected=any(each.get(names.DO_NOT_DISRUPT_ANNOTATION) == "true" for each in annotated),
        created=claim.metadata.creation_timestamp,
        going=machine.leaving,
    )
