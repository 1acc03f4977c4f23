"""What a NodeRemovalRequest needs next, from what the server and the cloud say now. No I/O.

    Pending ──► Deprovisioning ⇄ CouldNotRemove ──► RemovalFailed (terminal)
       │              │
       └──────────────┴──► cancelled while the cloud has not accepted, finished when the machine is gone

The cloud is asked only while nothing runs on the node. Until it has accepted, pods on the node cancel the removal of an
empty one; afterwards they are asked to leave, for as long as the node lives. A node that was chosen, empty or for a move, is
kept where the mark by which it was chosen is gone. An answer that the cloud cannot do it now is no refusal: the same attempt goes
on, soon.
"""

import dataclasses
import datetime as dt
import enum
from collections.abc import Sequence
from typing import Final, TypeAlias

from growth.api import names
from growth.api.growthpools import (
    COULD_NOT_REMOVE,
    DEPROVISIONING,
    EMPTY,
    MOVED,
    PENDING,
    REMOVAL_FAILED,
    NodeRemovalRequest,
    StoryEvent,
)
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.api.placement import NO_SCHEDULE
from growth.cluster.shapes import CachedPod
from growth.controllers.tainting import tainted
from growth.planning import occupants
from growth.planning.emptying import running

# What happened, in the story of a removal.
DELETION_REQUESTED: Final = names.DELETION_REQUESTED
DELETION_ACCEPTED: Final = "Deletion accepted"
DELETION_FAILED: Final = names.DELETION_FAILED
DELETION_POSTPONED: Final = "Deletion postponed"

# How soon is looked again after what the cloud or the pods of a node are to do.
POLL_SECONDS: Final = 5.0
# How soon the cloud is asked again about a machine whose deletion it has accepted, at first and at last.
FIRST_POLL_SECONDS: Final = 1.0
LAST_POLL_SECONDS: Final = 3.0
# How soon it is asked again where it denies a machine that it has not agreed to delete, or does not answer: at first and at last.
DOUBT_SECONDS: Final = 10.0
LONGEST_DOUBT_SECONDS: Final = 20.0
# So long after the taint a scheduler that has not seen it yet may still bind a pod.
SETTLE_SECONDS: Final = 1.0


class Machine(enum.Enum):
    """What the cloud says of the machine. `UNKNOWN` is not gone, and `DENIED`, a «not found» without a second, is not yet."""

    THERE = "there"
    DELETING = "deleting"
    DENIED = "denied"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    retry_after: float
    most: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Everything as it is now. `node` None: no Node of the machine. `wanted`: pods are about to come to the node.

    `denied_seconds`: for how long the cloud has denied the machine.
    """

    claim: NodeClaim | None
    node: Node | None = None
    pods: Sequence[CachedPod] = ()
    machine: Machine = Machine.UNKNOWN
    denied_seconds: float = 0.0
    wanted: bool = False
    paused: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Nothing:
    """It waits for somebody else, or for people."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Begin:
    """Write that it is pending."""


@dataclasses.dataclass(frozen=True, slots=True)
class Mark:
    """Put the taint on the node."""


@dataclasses.dataclass(frozen=True, slots=True)
class Drain:
    """Ask these pods to leave, and look again."""

    pods: tuple[CachedPod, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """Ask the cloud: write so first, look once more, then ask."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fail:
    """Nobody asks again; people are told."""

    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Cancel:
    """The node stays: take the mark off, then delete the request."""

    why: str


@dataclasses.dataclass(frozen=True, slots=True)
class Finish:
    """The machine is gone: delete the claim, then the request. `lost` are pods that were bound too late."""

    lost: tuple[CachedPod, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Forget:
    """Delete the request: there is nothing to remove any more."""


Step: TypeAlias = Nothing | Wait | Begin | Mark | Drain | Attempt | Fail | Cancel | Finish | Forget


def next_step(request: NodeRemovalRequest, scene: Scene, *, now: dt.datetime, patience: Patience) -> Step:
    claim, status = scene.claim, request.status
    if request.metadata.deletion_timestamp is not None:
        return Nothing()
    if claim is None:
        return Forget()
    if claim.metadata.deletion_timestamp is not None or status.phase == REMOVAL_FAILED:
        return Nothing()  # whoever deleted the claim sees to its end; a failed removal is for people
    if status.phase == "":
        return Begin()
    if status.phase not in {PENDING, DEPROVISIONING, COULD_NOT_REMOVE}:
        return Nothing()  # a phase of a newer version of us
    busy = running(scene.pods)
    alive = scene.node is not None and scene.node.is_ready
    if status.removal_attempt and _is_gone(request, scene.machine, alive=alive):
        return Finish(busy)
    if scene.machine in {Machine.DENIED, Machine.GONE, Machine.UNKNOWN}:
        # The collection controller sees to machines that are gone without a deletion of ours.
        return Wait(min(max(scene.denied_seconds, DOUBT_SECONDS), LONGEST_DOUBT_SECONDS))
    if scene.machine is Machine.DELETING or accepted(request):
        if scene.node is not None and not is_marked(scene.node):
            return Mark()  # it cannot be kept any more: at least nobody else comes
        return _accepted(request, busy, now=now, patience=patience)
    return _unaccepted(request, scene, busy, now=now, patience=patience)


def _is_gone(request: NodeRemovalRequest, machine: Machine, *, alive: bool) -> bool:
    """One «not found» is enough where the cloud has accepted, whatever the Node says: it is Ready for most of a minute more.

    An attempt that was only written down may never have been made: then the Node must be silent too.
    """
    if accepted(request):
        return machine in {Machine.DENIED, Machine.GONE}
    return machine is Machine.GONE and not alive


def _accepted(
    request: NodeRemovalRequest, busy: tuple[CachedPod, ...], *, now: dt.datetime, patience: Patience
) -> Step:
    staying = tuple(pod for pod in busy if not occupants.stuck(pod, now))
    if staying:
        return Drain(staying)
    left = _left(request, now=now, patience=patience)
    if left > 0:
        return Wait(min(left, _poll(request, now)))
    if _is_last(request, patience):
        return Fail(
            f"the cloud accepted the deletion {request.status.removal_attempt} times and the machine is still there"
        )
    return Attempt()


def _unaccepted(
    request: NodeRemovalRequest, scene: Scene, busy: tuple[CachedPod, ...], *, now: dt.datetime, patience: Patience
) -> Step:
    marked = scene.node is None or is_marked(scene.node)
    if request.spec.reason == EMPTY:
        if busy:
            return Cancel(f"pods run there: {_named(busy)}")
        if not marked:
            return Cancel(f"the taint {names.SCALE_DOWN_TAINT} was taken off, so that pods may be on their way")
        if scene.wanted:
            return Cancel("pods are about to come")
    if request.spec.reason in MOVED and not marked and scene.node is not None and not tainted(scene.node):
        # Who asked for it may have stood still meanwhile, and another leader took the move back.
        return Cancel(f"the taint {names.DISRUPTED_TAINT} was taken off: its move is not made")
    if scene.paused:
        return Wait(POLL_SECONDS)
    if not marked:
        return Mark()
    staying = tuple(pod for pod in busy if not occupants.stuck(pod, now))
    if staying:  # a kubelet that is dead ends no pod: the others are not waited for
        return Drain(staying)
    left = _left(request, now=now, patience=patience)
    if left > 0:
        return Wait(left)
    if _is_last(request, patience):
        return Fail(f"the cloud was asked {request.status.removal_attempt} times")
    return Attempt()


def _left(request: NodeRemovalRequest, *, now: dt.datetime, patience: Patience) -> float:
    """What is left of the time between two attempts."""
    last = request.status.remove_attempted_at
    return 0.0 if last is None or postponed(request) else patience.retry_after - (now - last).total_seconds()


def _is_last(request: NodeRemovalRequest, patience: Patience) -> bool:
    """Whether the last attempt that may be made was answered."""
    return request.status.removal_attempt >= patience.most and not postponed(request)


def postponed(request: NodeRemovalRequest) -> bool:
    """Whether the cloud said of the last attempt that it cannot do it now: it is neither accepted nor refused."""
    return bool(request.status.events) and request.status.events[-1].name == DELETION_POSTPONED


def _poll(request: NodeRemovalRequest, now: dt.datetime) -> float:
    """When to look whether the machine is gone: soon at first, then half as often each time, up to a bound."""
    last = request.status.remove_attempted_at
    elapsed = 0.0 if last is None else (now - last).total_seconds()
    return min(max(elapsed, FIRST_POLL_SECONDS), LAST_POLL_SECONDS)


def accepted(request: NodeRemovalRequest) -> bool:
    """Whether the cloud has accepted the last attempt, as far as we have written it down."""
    for event in reversed(request.status.events):
        if event.name == DELETION_ACCEPTED:
            return True
        if event.name in {DELETION_REQUESTED, DELETION_FAILED}:
            return False
    return False


def is_marked(node: Node) -> bool:
    return any(taint.key == names.SCALE_DOWN_TAINT and taint.effect == NO_SCHEDULE for taint in node.spec.taints)


def refused(attempts: int, why: str, *, now: dt.datetime, patience: Patience) -> tuple[str, StoryEvent]:
    """The phase after the cloud has refused, and what the story says."""
    phase = REMOVAL_FAILED if attempts >= patience.most else COULD_NOT_REMOVE
    return phase, StoryEvent(at=now, name=DELETION_FAILED, reason=why)


def _named(pods: Sequence[CachedPod], most: int = 3) -> str:
    shown = ", ".join(f"{pod.namespace}/{pod.name}" for pod in pods[:most])
    return f"{shown} and {len(pods) - most} more" if len(pods) > most else shown
