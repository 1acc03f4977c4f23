"""A decision as a question and its answer, and the checks that a move must pass before it acts. Pure.

`answered` decides for everything. `validated` asks of one move, some seconds later, whether it is still right: all of it,
except that empty nodes go each for itself. It must still save enough, and need all that it buys. `confirmed` is the last look before
claims are deleted: what is bought by then counts, and whatever only says «not yet» of the nodes themselves is no reason to take
back what was bought. Nor is what protects their pods and soon ends by itself: that is waited for.
"""

import collections
import dataclasses
import datetime as dt
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.policy import PodDisruptionBudget
from growth.cluster.assemble import Picture
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot
from growth.cluster.wanting import is_done, key_of, movable
from growth.controllers.provisioning.passes import judged, without_scale_down
from growth.planning import occupants, solve
from growth.planning.disruption import consequences, words
from growth.planning.disruption.buffering import holding, taken_by_daemons
from growth.planning.disruption.candidates import empty, may_receive, protection_passes, why_kept
from growth.planning.disruption.continuous import too_few
from growth.planning.disruption.decide import Options, decide
from growth.planning.disruption.model import Decided, Move, OwnedNode, Replacement, Situation
from growth.planning.disruption.room import rooms
from growth.planning.disruption.search import SearchOptions
from growth.planning.disruption.search.departing import Departure, left_over
from growth.planning.disruption.search.orders import orders
from growth.planning.disruption.situating import Facts, situated
from growth.planning.disruption.worth import changed_offers, too_little, too_much
from growth.planning.rehearsal import Arrival, Stage
from growth.units.resources import Amounts

_FIRST_FIT: Final = solve.Options(packer="first-fit")

REASONS: Final = (names.EMPTY, names.DRIFTED_REASON, names.UNDERUTILIZED)
# What no longer counts once something has been bought for a move: its nodes take no pods, and nothing is searched for.
_NOT_YET: Final = frozenset({words.NOMINATED, words.CONSOLIDATE_AFTER, words.LEAVING, words.PRICE_UNKNOWN})
_PROTECTED: Final = frozenset({words.POD_BUDGET, words.DO_NOT_DISRUPT})

# So often in a row a move waits for pods that leave while it waits.
PATIENCE: Final = 4


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that is known, as of one moment. `facts` and `pods` are by the node's name.

    `buffered` are pods that CapacityBuffers stand for. `served` are the (group, kind) of node classes that our cloud makes
    machines of. `spared` are empty nodes of growth pools whose scale-down ends as soon as pods are to come. `closed` are nodes that
    take no pods.
    """

    picture: Picture
    facts: Mapping[str, Facts]
    pods: Mapping[str, Sequence[CachedPod]]
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    moved: Mapping[str, dt.datetime] = dataclasses.field(default_factory=dict)
    buffered: tuple[Demand, ...] = ()
    paused: bool = False
    served: frozenset[tuple[str, str]] = frozenset()
    spared: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """`eligible` counts the nodes that only budgets, limits or want of a better place could keep, by reason and pool; those are
    left out that their pool replaces itself.

    `unreadable` are pods whose do-not-disrupt annotation protects nothing, one of each owner, by its UID, and what is wrong.
    """

    situation: Situation
    decided: Decided
    eligible: Mapping[str, Mapping[str, int]]
    unreadable: Mapping[str, tuple[CachedPod, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`nodes` may go now; `why` says why not all of the move's. `again`: the reason may be over in a moment.

    `homeless`: only want of room speaks against it. `less`: only that less than what it would buy does by now.
    `places` are the nodes that take its pods, and those that wait.
    """

    nodes: tuple[str, ...]
    why: str = ""
    again: bool = False
    situation: Situation
    homeless: bool = False
    less: bool = False
    places: frozenset[str] = frozenset()


def answered(question: Question, options: Options) -> Answer:
    situation = situation_of(question)
    eligible = {
        reason: collections.Counter(node.pool for node in situation.nodes if _is_eligible(node, situation, reason))
        for reason in REASONS
    }
    return Answer(situation, decide(situation, options), eligible, _unreadable(situation))


def _is_eligible(node: OwnedNode, situation: Situation, reason: str) -> bool:
    pool = situation.pools.get(node.pool)
    if pool is None or pool.spec.replicas is not None:
        return False
    if reason == names.UNDERUTILIZED and empty(node.pods):
        return False
    return why_kept(node, situation, reason=reason, graceful=reason != names.DRIFTED_REASON) is None


def _unreadable(situation: Situation) -> Mapping[str, tuple[CachedPod, str]]:
    found: dict[str, tuple[CachedPod, str]] = {}
    for pod in (pod for node in situation.nodes for pod in node.pods if occupants.active(pod)):
        fault = occupants.protection(pod, situation.now).fault
        if fault:
            found.setdefault(pod.uid if pod.owner is None else pod.owner.uid, (pod, fault))
    return found


def situation_of(question: Question, own: Collection[str] = ()) -> Situation:
    """`own` are nodes of the move that is asked about: its mark on them is no reason against it."""
    situation = situated(
        question.picture,
        facts=question.facts,
        pods=question.pods,
        disruption_budgets=question.disruption_budgets,
        moved=question.moved,
        buffered=question.buffered,
        paused=question.paused,
    )
    snapshot = dataclasses.replace(
        situation.snapshot,
        pools=tuple(judged(view, situation.pools, served=question.served) for view in situation.snapshot.pools),
        nodes=tuple(
            without_scale_down(view) if view.name in question.spared else view for view in situation.snapshot.nodes
        ),
    )
    nodes = tuple(_unmarked(node) if node.name in own else node for node in situation.nodes)
    return consequences.closed(dataclasses.replace(situation, snapshot=snapshot, nodes=nodes), question.closed)


def _unmarked(node: OwnedNode) -> OwnedNode:
    """Whether it really leaves, its view tells: a machine on its way out has none."""
    return dataclasses.replace(node, leaving=node.view is None)


def validated(
    question: Question,
    move: Move,
    known: Collection[str] | None = None,
    *,
    options: SearchOptions = SearchOptions(),  # noqa: B008 - frozen
    put_off: int = 0,
) -> Verdict:
    """Whether the move is still right, with nothing done for it yet. Only nodes that are `known` take its pods; None: any.

    `put_off`: so often lately less was found to do for its nodes. Whoever decides then to buy all the same is believed: at once
    where there was room, for that was seen by then, and after some times where pods keep leaving.
    """
    return _checked(question, move, bought=False, known=known, options=options, put_off=put_off)


def confirmed(question: Question, move: Move, known: Collection[str] | None = None) -> Verdict:
    """Whether the claims may be deleted now. `move.replacements` are empty where everything is there already."""
    return _checked(question, move, bought=True, known=known)


def _checked(
    question: Question,
    move: Move,
    *,
    bought: bool,
    known: Collection[str] | None,
    options: SearchOptions | None = None,
    put_off: int = 0,
) -> Verdict:
    situation = situation_of(question, move.nodes)
    owned = {node.name: node for node in situation.nodes}
    single = move.reason == names.EMPTY
    graceful = move.reason != names.DRIFTED_REASON
    ignored = _NOT_YET if bought and not single else frozenset()
    left = {
        pool: room.delete if bought or not move.replacements else room.replace
        for pool, room in rooms(situation, reason=move.reason).items()
    }
    going: list[str] = []
    for name in move.nodes:
        node = owned.get(name)
        stays = None if node is None else why_kept(node, situation, reason=move.reason, graceful=graceful)
        why, again = "", False
        if node is None or node.view is None:
            why = f"node {name} is gone or on its way out"
        elif stays is not None and stays.reason not in ignored:
            why = f"node {name}: {stays.message}"
            again = stays.reason in _PROTECTED and protection_passes(node, situation)
        elif left.get(node.pool, 0) == 0:
            why, again = f"the budgets of NodePool {node.pool} allow less by now", True
        if why and not single:
            return Verdict(nodes=(), why=why, again=again and bought, situation=situation)
        if why or node is None:
            continue
        room = left[node.pool]
        left[node.pool] = None if room is None else room - 1
        going.append(name)
    if single:
        missing = [name for name in move.nodes if name not in going]
        why = f"not empty any more, or protected: {', '.join(missing)}" if missing else ""
        return Verdict(nodes=tuple(going), why=why, situation=situation)
    why = too_few(going, situation) or "; ".join(changed_offers(move, situation))
    if not why and options is not None and move.reason == names.UNDERUTILIZED:
        why = too_little(move, situation, options)
    if why:
        return Verdict(nodes=(), why=why, again=bought, situation=situation)
    if options is not None and move.reason == names.UNDERUTILIZED and move.replacements:
        why = too_much(move, situation, options) if put_off < PATIENCE else ""
        if not why and not put_off:
            without, _ = _housed(dataclasses.replace(move, replacements=()), situation, bought=bought, known=known)
            why = "" if without else "their pods have room by now without what would be bought for them"
        if why:
            return Verdict(nodes=(), why=why, situation=situation, less=True)
    why, places = _housed(move, situation, bought=bought, known=known)
    return Verdict(
        nodes=() if why else tuple(going),
        why=why,
        again=bought and bool(why),
        situation=situation,
        homeless=bool(why),
        places=places,
    )


def _housed(
    move: Move, situation: Situation, *, bought: bool, known: Collection[str] | None
) -> tuple[str, frozenset[str]]:
    """Why some pod of the nodes would have no place where they go, empty where all have theirs; and which nodes take them.

    Machines that are to be bought stand there as the smallest that they may become. Pods without a place come first, and
    may wait for machines that are not up yet; those of the move may not, nor may they count on whom those will hold. But
    once its Node is there, such a machine is a place without pods to those who spread. Those of buffers take what the others
    leave. Where nodes go or machines come it is asked twice: as if they were gone and there, and as it stands at this moment,
    when whoever waits takes what a pod of the move leaves rather than wait.
    """
    own = frozenset(move.nodes)
    strict = move.reason == names.UNDERUTILIZED and not bought
    closed = {node.name for node in situation.nodes if strict and not may_receive(node, situation)}
    others = dataclasses.replace(
        situation.snapshot, nodes=tuple(view for view in situation.snapshot.nodes if view.name not in own), pools=()
    )
    moving = [
        Demand(key_of(pod), pod.shape)
        for node in situation.nodes
        if node.name in own
        for pod in node.pods
        if not is_done(pod) and movable(pod) and not _stays(pod, situation)
    ]
    if not moving:
        return "", frozenset()

    def offered(before: NodeView, filled: NodeView) -> NodeView:
        if not filled.initialized:
            return dataclasses.replace(_full(before), initialized=before.name in situation.registered)
        shut = filled.name in closed or (known is not None and filled.name not in known)
        return _full(filled) if shut else filled

    def housed(others: Snapshot, waiting: Sequence[Demand]) -> tuple[Sequence[str], set[str]]:
        """Who has no place, and which nodes take somebody."""
        views = _filled(others, waiting)
        there = tuple(itertools.starmap(offered, zip(others.nodes, views, strict=True)))
        open_to_them = dataclasses.replace(others, nodes=(*there, *stand_ins(move.replacements, situation)))
        places, homeless = _places(open_to_them, moving, sure=move.reason == names.UNDERUTILIZED)
        pairs = zip(others.nodes, views, strict=True)
        taken = {view.name for before, view in pairs if view is not before and view.initialized}
        return homeless, places.keys() & {view.name for view in others.nodes} | taken

    homeless, places = housed(others, situation.waiting)
    spread = any(each.shape.spec.topology_spread_constraints for each in (*moving, *situation.adrift))
    if not homeless and situation.unsettled and spread:
        standing = tuple(view for view in situation.standing if view.name not in own)
        homeless, more = housed(dataclasses.replace(others, nodes=standing), situation.adrift)
        places |= more
    why = f"{len(homeless)} of their pods would have no place, {homeless[0]} for one" if homeless else ""
    if not why and (situation.buffered or move.reason == names.UNDERUTILIZED):
        why = _left_behind(move, situation, moving)
    return why, frozenset(places)


def _places(
    snapshot: Snapshot, moving: Sequence[Demand], *, sure: bool
) -> tuple[Mapping[str, Sequence[str]], Sequence[str]]:
    """Which nodes take which pods, and who has no place.

    Where we must be `sure` kube-scheduler would find all the places in whichever order the pods come, as when the move was
    decided; else it is enough that they have some, packed tightly or spread.
    """
    plan = solve.solve(snapshot, moving, _FIRST_FIT)
    if not sure and not plan.unplaced:
        return {each.name: each.pods for each in plan.filled}, ()
    places: dict[str, list[str]] = {}
    stage = Stage(snapshot, moving)
    for queue in orders(moving) if sure else [moving]:
        spread = stage.queued(queue).rehearse((), Arrival.AT_ONCE)
        if spread.left:
            return {each.name: each.pods for each in plan.filled}, spread.left
        for key, name in spread.order if not places else ():
            places.setdefault(str(name), []).append(key)
    return places, ()


def _filled(snapshot: Snapshot, demands: Sequence[Demand]) -> tuple[NodeView, ...]:
    """The nodes with the pods that have no place yet, where those find one."""
    if not demands:
        return snapshot.nodes
    shapes = {each.key: each.shape for each in demands}
    plan = solve.solve(snapshot, demands, _FIRST_FIT)
    filled = {each.name: [shapes[key] for key in each.pods] for each in plan.filled}
    return holding(snapshot.nodes, filled)


def _left_behind(move: Move, situation: Situation, moving: Sequence[Demand]) -> str:
    """Who has room now and none when kube-scheduler has bound the pods of the move, in some order, and on nodes as they are.

    It knows nothing of places that are meant for them: what goes elsewhere may take the only room, or the only zone, of
    another. Of moves that must be made whatever they save only the buffers are asked.
    """
    bought = [each.planned for each in move.replacements]
    before = frozenset(left_over(situation, gone=(), evicted=(), claims=(), waiting=frozenset()))
    departure = Departure(situation, gone=move.nodes, evicted=moving, claims=bought)
    for left in departure.in_any_order(before):
        pods = [key for key in left if key not in situation.buffered]
        if pods and move.reason == names.UNDERUTILIZED:
            return f"kube-scheduler would leave {len(pods)} of the pods without a place, {pods[0]} for one"
        if len(left) > len(pods):
            return f"CapacityBuffers would lose the room for {len(left) - len(pods)} of their pods"
    return ""


def _stays(pod: CachedPod, situation: Situation) -> bool:
    """Whether nobody knows when it will want another place: what protects it does not end by itself."""
    return occupants.cannot_leave(pod, situation.pod_budgets, situation.now)


def _full(view: NodeView) -> NodeView:
    return dataclasses.replace(view, allocatable=view.requested)


def stand_ins(replacements: Sequence[Replacement], situation: Situation) -> Iterator[NodeView]:
    """The machines that are to be bought, as if they were there: each has the room that all of its types have."""
    views = {view.ref: view for view in situation.snapshot.pools}
    shapes = collections.ChainMap(
        {each.key: each.shape for each in situation.demands},
        {key_of(pod): pod.shape for node in situation.nodes for pod in node.pods},
    )
    for number, each in enumerate(replacements):
        planned, pool = each.planned, views[each.planned.pool]
        name = f"replacement {number}"
        yield NodeView(
            name=name,
            labels={**planned.labels, names.HOSTNAME_LABEL: name},
            taints=pool.taints,
            allocatable=_room(each, pool),
            requested=taken_by_daemons(planned, shapes),
            pool=planned.pool,
        )


def _room(each: Replacement, pool: PoolView) -> Amounts:
    room: dict[str, int] | None = None
    for kind in pool.instance_types:
        if kind.name in each.types:
            has = kind.allocatable
            room = dict(has) if room is None else {name: min(room[name], has[name]) for name in room if name in has}
    return room or {}
