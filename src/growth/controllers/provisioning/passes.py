"""One pass as a question and its answer. Pure, so that it can be asked away from the event loop."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Final

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodePool
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.cluster.assemble import Picture, composed
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand, NodeView, PoolView, Snapshot
from growth.cluster.wanting import key_of
from growth.controllers.provisioning.claims import short_list
from growth.controllers.provisioning.demand import Marked, ripe
from growth.planning import occupants
from growth.planning.offerings import template_requirements
from growth.planning.overlays import OverlayProblem, overlaid
from growth.planning.plan import Filter, Plan, Reason, Unplaced
from growth.planning.pod_budgets import PodBudgets
from growth.planning.recent import Recent
from growth.planning.requirements import RequirementError
from growth.planning.solve import Options, solve
from growth.planning.wishes import for_no_wish


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be planned. `held` are pods whose place is found already, by key; `virtual` are pods of buffers.

    `served` are the (group, kind) of node classes that our cloud makes machines of. `paused` is why nothing may be
    bought anywhere; empty when it may. `resting` are pods that are left out for now, by key. `spared` are nodes whose
    scale-down ends as soon as somebody needs them.
    """

    picture: Picture
    marked: Marked
    sort: Callable[[PodShape], bytes]
    held: Set[str] = frozenset()
    virtual: tuple[Demand, ...] = ()
    served: Set[tuple[str, str]] = frozenset()
    paused: str = ""
    resting: Set[str] = frozenset()
    spared: Set[str] = frozenset()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    options: Options = dataclasses.field(default_factory=Options)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`plan` is None where nothing wanted a place. `pods` are the real ones that were planned for, by key.

    `ignored` counts pods that wait for something else than a machine. `soonest` is in how many seconds another pod will
    count. `snapshot` is what was planned on, overlays laid. `types` are those that the plan's claims list, in their order.
    `shapes` are of all that was planned for, pods of buffers among them, by key.
    """

    plan: Plan | None
    snapshot: Snapshot
    pods: Mapping[str, CachedPod]
    pools: Mapping[str, NodePool]
    ignored: int = 0
    soonest: float | None = None
    warnings: tuple[str, ...] = ()
    overlay_problems: tuple[OverlayProblem, ...] = ()
    types: tuple[tuple[str, ...], ...] = ()
    shapes: Mapping[str, PodShape] = dataclasses.field(default_factory=dict)
    growth_pools: Mapping[str, GrowthPool] = dataclasses.field(default_factory=dict)
    note: str = ""  # what else people should know of how the plan was made

    @property
    def views(self) -> dict[PoolRef, PoolView]:
        return {pool.ref: pool for pool in self.snapshot.pools}


def answered(question: Question) -> Answer:
    """Plans. Equal questions have equal answers."""
    found, soonest = ripe(question.picture.pending, question.marked, question.sort)
    left_out = question.held | question.resting
    picture = dataclasses.replace(question.picture, pending=[pod for pod in found if key_of(pod) not in left_out])
    assembled = composed(picture)
    pods = {key_of(pod): pod for pod in picture.pending}
    for each in picture.counted.values():
        pods.update((key_of(pod), pod) for pod in each.moving)
    pools = {pool.metadata.name: pool for pool in picture.pools}
    growth_pools = {pool.metadata.name: pool for pool in picture.growth_pools}
    snapshot = dataclasses.replace(
        assembled.snapshot,
        pools=tuple(
            judged(view, pools, served=question.served, paused=question.paused)
            if view.ref.group == names.KARPENTER
            else _judged_growth(view, growth_pools[view.ref.name], question)
            for view in assembled.snapshot.pools
        ),
        nodes=tuple(
            without_scale_down(node) if node.name in question.spared else node for node in assembled.snapshot.nodes
        ),
    )
    snapshot, problems = overlaid(snapshot, picture.overlays)
    away = question.held | _staying(question)
    demands = (*(each for each in assembled.demands if each.key not in away), *question.virtual)
    plan = None
    if demands:
        plan = for_no_wish(
            planned,
            snapshot,
            demands,
            question.options,
            leaving={key_of(pod) for each in picture.counted.values() for pod in each.moving},
            virtual={each.key for each in question.virtual},
        )
    types = types_of(plan, snapshot, pools) if plan is not None else ()
    return Answer(
        plan=plan,
        snapshot=snapshot,
        pods={each.key: pods[each.key] for each in demands if each.key in pods},
        pools=pools,
        ignored=_ignored(question.picture.pending),
        soonest=soonest,
        warnings=assembled.warnings,
        overlay_problems=problems,
        types=types,
        shapes={each.key: each.shape for each in demands},
        growth_pools=growth_pools,
    )


def _staying(question: Question) -> Set[str]:
    """Pods of machines on their way out that cannot leave, by key: a machine for them would stand empty for nobody knows
    how long. Where their machine has a deadline they will be made to leave.
    """
    picture, found = question.picture, set()
    budgets = PodBudgets(question.disruption_budgets)
    for each in picture.counted.values():
        claim = each.machine.claim
        if claim is None or names.TERMINATION_TIMESTAMP_ANNOTATION not in claim.metadata.annotations:
            found |= {key_of(pod) for pod in each.moving if occupants.cannot_leave(pod, budgets, picture.now)}
    return found


def planned(snapshot: Snapshot, demands: Sequence[Demand], options: Options) -> Plan:
    """The plan. Pods that planning itself fails on, which is a bug of ours, have no place; the others get theirs."""
    asked = (dataclasses.replace(snapshot, revision=0), tuple(demands), options)
    known = _RECENT.find(asked)
    if known is not None:
        return dataclasses.replace(known, revision=snapshot.revision)
    return _RECENT.keep(asked, _planned(snapshot, demands, options))


# Pods that nothing can be bought for are planned for again whenever anything has changed, mostly what does not concern them.
_RECENT: Final[Recent[tuple[Snapshot, tuple[Demand, ...], Options], Plan]] = Recent(kept=4)


def _planned(snapshot: Snapshot, demands: Sequence[Demand], options: Options) -> Plan:
    try:
        return solve(snapshot, demands, options)
    except Exception as error:
        broken = _broken(snapshot, demands, options)
        sound = [each for each in demands if each.shape not in broken]
        if len(sound) == len(demands):
            raise  # no pod alone is the cause
        plan = solve(snapshot, sound, options)
        why = f"planning for it failed, which is a bug in Growth: {type(error).__name__}: {error}"
        reasons = (Reason(None, Filter.UNSUPPORTED, why),)
        failed = tuple(Unplaced(each.key, reasons) for each in demands if each.shape in broken)
        return dataclasses.replace(plan, unplaced=(*plan.unplaced, *failed))


def _broken(snapshot: Snapshot, demands: Sequence[Demand], options: Options) -> Set[PodShape]:
    """The shapes that planning fails on, found by halves."""
    samples = list({each.shape: each for each in demands}.values())
    broken: set[PodShape] = set()

    def search(some: Sequence[Demand]) -> None:
        try:
            solve(snapshot, some, options)
        except Exception:  # noqa: BLE001 - which one it is does not matter here
            if len(some) == 1:
                broken.add(some[0].shape)
                return
            middle = len(some) // 2
            search(some[:middle])
            search(some[middle:])

    search(samples)
    return broken


def types_of(plan: Plan, snapshot: Snapshot, pools: Mapping[str, NodePool]) -> tuple[tuple[str, ...], ...]:
    """The types that each planned machine's claim lists; most share them with many others."""
    views = {pool.ref: pool for pool in snapshot.pools}
    known: dict[object, tuple[str, ...]] = {}
    found: list[tuple[str, ...]] = []
    for each in plan.claims:
        key = (each.pool, each.max_price, each.instance_types, id(each.requirements))
        if key not in known:
            if each.pool.group == names.GROWTH:  # a request names one type
                known[key] = (each.instance_type,)
            else:
                pool, view = pools[each.pool.name], views[each.pool]
                known[key] = short_list(each, pool=pool, view=view, currency=plan.currency)
        found.append(known[key])
    return tuple(found)


def judged(
    view: PoolView, pools: Mapping[str, NodePool], *, served: Set[tuple[str, str]], paused: str = ""
) -> PoolView:
    """The pool with what keeps us from buying there, beyond what it says of itself. `pools` are by the PoolRef in words.

    In a pool that is not among them nothing is bought. One of `growth.dev` without a node class has the cloud's own.
    """
    if str(view.ref) not in pools:
        return dataclasses.replace(view, problem="no machine is replaced by one of this pool (optimise: WhenEmpty)")
    uses = pools[str(view.ref)].spec.template.spec.node_class_ref
    problem = view.problem
    if paused:
        problem = paused
    elif not problem and uses.kind and (uses.group, uses.kind) not in served:
        problem = (
            f"its node class is a {uses.kind} of {uses.group or 'the core group'}, which this cloud does not serve"
        )
    if not problem:
        try:
            template_requirements(view)
        except RequirementError as error:
            problem = f"its requirements cannot be read: {error}"
    return view if problem == view.problem else dataclasses.replace(view, problem=problem)


def _judged_growth(view: PoolView, pool: GrowthPool, question: Question) -> PoolView:
    """A pool of `growth.dev` with what keeps us from buying there; one without a class has the cloud's own."""
    uses = pool.spec.node_class_ref
    problem = question.paused or view.problem
    if not problem and uses is not None and (uses.group, uses.kind) not in question.served:
        problem = f"its node class is a {uses.kind} of {uses.group}, which this cloud does not serve"
    return view if problem == view.problem else dataclasses.replace(view, problem=problem)


def without_scale_down(node: NodeView) -> NodeView:
    """As the node would be if its scale-down were cancelled, which costs nothing."""
    return dataclasses.replace(node, taints=tuple(each for each in node.taints if each.key != names.SCALE_DOWN_TAINT))


def _ignored(pending: Sequence[CachedPod]) -> int:
    return sum(bool(pod.shape.spec.scheduling_gates or pod.nominated_node_name) for pod in pending)
