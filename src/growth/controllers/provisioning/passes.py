"""One pass as a question and its answer. Pure, so that it can be asked away from the event loop."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence, Set

from growth.api import names
from growth.api.karpenter import NodePool
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.cluster.assemble import Picture, composed
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand, PoolView, Snapshot
from growth.cluster.wanting import key_of
from growth.controllers.provisioning.claims import dearest
from growth.controllers.provisioning.demand import Marked, ripe
from growth.planning import occupants
from growth.planning.overlays import OverlayProblem, overlaid
from growth.planning.plan import Plan
from growth.planning.solve import Options, solve


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is to be planned. `held` are pods whose place is found already, by key; `virtual` are pods of buffers.

    `served` are the (group, kind) of node classes that our cloud makes machines of. `paused` is why nothing may be
    bought anywhere; empty when it may.
    """

    picture: Picture
    marked: Marked
    sort: Callable[[PodShape], bytes]
    held: Set[str] = frozenset()
    virtual: tuple[Demand, ...] = ()
    served: Set[tuple[str, str]] = frozenset()
    paused: str = ""
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    options: Options = dataclasses.field(default_factory=Options)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """`plan` is None where nothing wanted a place. `pods` are the real ones that were planned for, by key.

    `ignored` counts pods that wait for something else than a machine. `soonest` is in how many seconds another pod will
    count. `snapshot` is what was planned on, overlays laid. `dearest` is the most that each planned machine can cost.
    """

    plan: Plan | None
    snapshot: Snapshot
    pods: Mapping[str, CachedPod]
    pools: Mapping[str, NodePool]
    ignored: int = 0
    soonest: float | None = None
    warnings: tuple[str, ...] = ()
    overlay_problems: tuple[OverlayProblem, ...] = ()
    dearest: tuple[int, ...] = ()

    @property
    def views(self) -> dict[PoolRef, PoolView]:
        return {pool.ref: pool for pool in self.snapshot.pools}


def answered(question: Question) -> Answer:
    """Plans. Equal questions have equal answers."""
    found, soonest = ripe(question.picture.pending, question.marked, question.sort)
    picture = dataclasses.replace(question.picture, pending=[pod for pod in found if key_of(pod) not in question.held])
    assembled = composed(picture)
    pods = {key_of(pod): pod for pod in picture.pending}
    for each in picture.counted.values():
        pods.update((key_of(pod), pod) for pod in each.moving)
    pools = {pool.metadata.name: pool for pool in picture.pools}
    snapshot = dataclasses.replace(
        assembled.snapshot,
        pools=tuple(
            _judged(view, pools[view.ref.name], question)
            for view in assembled.snapshot.pools
            if view.ref.group == names.KARPENTER
        ),
    )
    snapshot, problems = overlaid(snapshot, picture.overlays)
    away = question.held | _staying(question)
    demands = (*(each for each in assembled.demands if each.key not in away), *question.virtual)
    plan = solve(snapshot, demands, question.options) if demands else None
    return Answer(
        plan=plan,
        snapshot=snapshot,
        pods={each.key: pods[each.key] for each in demands if each.key in pods},
        pools=pools,
        ignored=_ignored(question.picture.pending),
        soonest=soonest,
        warnings=assembled.warnings,
        overlay_problems=problems,
        dearest=_dearest(plan, snapshot) if plan is not None else (),
    )


def _staying(question: Question) -> Set[str]:
    """Pods of machines on their way out that cannot leave, by key: a machine for them would stand empty for nobody knows
    how long. Where their machine has a deadline they will be made to leave.
    """
    picture, found = question.picture, set()
    for each in picture.counted.values():
        claim = each.machine.claim
        if claim is None or names.TERMINATION_TIMESTAMP_ANNOTATION not in claim.metadata.annotations:
            found |= {
                key_of(pod)
                for pod in each.moving
                if occupants.cannot_leave(pod, question.disruption_budgets, picture.now)
            }
    return found


def _dearest(plan: Plan, snapshot: Snapshot) -> tuple[int, ...]:
    """The most that each planned machine can cost; most lists of types are shared by many machines."""
    views = {pool.ref: pool for pool in snapshot.pools}
    known: dict[object, int] = {}
    found: list[int] = []
    for planned in plan.claims:
        needs = planned.requirements
        key = (
            planned.pool,
            planned.price,
            planned.instance_types,
            needs.get(names.ZONE_LABEL),
            needs.get(names.CAPACITY_TYPE_LABEL),
        )
        if key not in known:
            known[key] = dearest(planned, views[planned.pool])
        found.append(known[key])
    return tuple(found)


def _judged(view: PoolView, pool: NodePool, question: Question) -> PoolView:
    """The pool with what keeps us from buying there, beyond what it says of itself."""
    uses = pool.spec.template.spec.node_class_ref
    problem = view.problem
    if question.paused:
        problem = question.paused
    elif not problem and (uses.group, uses.kind) not in question.served:
        problem = (
            f"its node class is a {uses.kind} of {uses.group or 'the core group'}, which this cloud does not serve"
        )
    return view if problem == view.problem else dataclasses.replace(view, problem=problem)


def _ignored(pending: Sequence[CachedPod]) -> int:
    return sum(bool(pod.shape.spec.scheduling_gates or pod.nominated_node_name) for pod in pending)
