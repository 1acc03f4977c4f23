"""What a claim needs next, from the claim, the Nodes with its provider ID, and the time. No I/O.

    Launch ──► (machine) ──► Register ──► Initialize ──► Nothing
      │            │             │            │
      └────────────┴─────────────┴────────────┴──► GiveUp when its time is over; Wait until something changes

A claim that nobody could launch, whose machine never registered or whose node never became usable is given up after a
time of its own; paused claims are not.
"""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from growth.api import names
from growth.api.conditions import find, is_true, since
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.cluster.machines import own_node
from growth.planning.readiness import (
    CLOUD_INITIALIZES,
    NOT_REGISTERED,
    SEVERAL_NODES,
    Obstacle,
    obstacle_to_use,
)

# In its first moments a node changes from one obstacle to the next; only what still stands then is worth a write.
SETTLING_SECONDS: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How many seconds each stage may take."""

    launch: float
    registration: float
    initialization: float


@dataclasses.dataclass(frozen=True, slots=True)
class Nothing:
    """The claim is not in its beginnings any more, or somebody else is at work on it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Look again after so many seconds, if nothing changes before."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class Launch:
    """Ask the cloud for the machine."""


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """Somebody took our finalizer off: put it back, or the claim could vanish while its machine runs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Register:
    """The machine's Node is there: make it the claim's."""

    node: Node


@dataclasses.dataclass(frozen=True, slots=True)
class Initialize:
    """The Node can take pods."""

    node: Node


@dataclasses.dataclass(frozen=True, slots=True)
class Tell:
    """Write why a condition does not hold, if that stands for a while; then look again after so many seconds."""

    condition: str
    obstacle: Obstacle
    seconds: float


@dataclasses.dataclass(frozen=True, slots=True)
class GiveUp:
    """The stage took too long: the claim goes, and its machine with it. `reason` is the metric's word."""

    reason: str
    seconds: float


Step: TypeAlias = Nothing | Wait | Launch | Hold | Register | Initialize | Tell | GiveUp

LAUNCH_TIMEOUT: Final = "launch_timeout"
REGISTRATION_TIMEOUT: Final = "registration_timeout"
INITIALIZATION_TIMEOUT: Final = "initialization_timeout"


def next_step(
    claim: NodeClaim,
    nodes: Sequence[Node],
    *,
    now: dt.datetime,
    patience: Patience,
    paused: bool = False,
    tried: bool = True,
    wanted: bool = True,
) -> Step:
    """`nodes` are those with the claim's provider ID. Paused claims are neither launched nor given up.

    What a contradiction stops waits for its end, whatever time that takes, as long as somebody still wants the claim.

    A claim of which neither we (`tried`) nor its status know that a launch was tried is tried once, however old it is.
    """
    if claim.metadata.deletion_timestamp is not None:
        return Nothing()
    nodes = [node for node in nodes if node.metadata.deletion_timestamp is None]
    if not launched(claim):
        return _launch(claim, now=now, patience=patience, paused=paused, tried=tried, wanted=wanted)
    if not held(claim):
        return Hold()
    if not is_true(claim.status.conditions, names.REGISTERED):
        return _registration(claim, nodes, now=now, patience=patience, paused=paused)
    node = own_node(claim, nodes)
    if node is not None and names.REGISTERED_LABEL not in node.metadata.labels:
        # The Node was deleted and its kubelet made it anew.
        return Wait(patience.registration) if waits_for_cloud(node) else Register(node)
    if is_true(claim.status.conditions, names.INITIALIZED):
        anew = node is not None and names.INITIALIZED_LABEL not in node.metadata.labels
        return Initialize(node) if anew and node is not None and obstacle_to_use(claim, node) is None else Nothing()
    return _initialization(claim, node, now=now, patience=patience, paused=paused)


def held(claim: NodeClaim) -> bool:
    """Whether the claim cannot go before we let it."""
    return names.TERMINATION_FINALIZER in claim.metadata.finalizers


def launched(claim: NodeClaim) -> bool:
    """Whether the claim says which machine is its own."""
    return bool(claim.status.provider_id) and is_true(claim.status.conditions, names.LAUNCHED)


def stage(claim: NodeClaim) -> tuple[str, dt.datetime | None]:
    """The condition that the claim reached last, empty for a new one, and since when it waits for the next."""
    if not launched(claim):
        return "", claim.metadata.creation_timestamp
    reached = names.REGISTERED if is_true(claim.status.conditions, names.REGISTERED) else names.LAUNCHED
    return reached, _began(claim, reached)


def waits_for_cloud(node: Node) -> bool:
    """Whether the cloud's controller has yet to initialise the Node: it writes labels over ours, and no pod comes before.

    A Node that does not keep pods away by our own taint is taken at once, and its labels are put right later.
    """
    keys = {taint.key for taint in node.spec.taints}
    return {names.CLOUD_UNINITIALIZED_TAINT, names.UNREGISTERED_TAINT} <= keys


def comes_up(claim: NodeClaim, node: Node) -> bool:
    """Whether the node lacks nothing but what a kubelet's first moments bring: no pod could go there yet anyway."""
    taints = tuple(taint for taint in node.spec.taints if taint.key != names.UNREGISTERED_TAINT)
    taken = msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=taints))
    obstacle = obstacle_to_use(claim, taken)
    return obstacle is not None and obstacle.reason in {names.NODE_NOT_READY, names.KNOWN_EPHEMERAL_TAINTS_EXIST}


def contradicted(claim: NodeClaim) -> bool:
    """Whether the claim says that what the cloud holds contradicts itself."""
    told = find(claim.status.conditions, names.LAUNCHED)
    return told is not None and told.reason == names.INVARIANT_VIOLATION


def _launch(claim: NodeClaim, *, now: dt.datetime, patience: Patience, paused: bool, tried: bool, wanted: bool) -> Step:
    told = find(claim.status.conditions, names.LAUNCHED)
    if contradicted(claim) and wanted:
        return Wait(patience.launch) if paused else Launch()  # until people have resolved it, nothing is given up
    left = _left(claim.metadata.creation_timestamp, patience.launch, now=now)
    if paused:
        return Wait(patience.launch)
    # Where nobody has tried yet we were away for long, or our clock is not the server's.
    return Launch() if left > 0 or (told is None and not tried) else GiveUp(LAUNCH_TIMEOUT, patience.launch)


def _registration(
    claim: NodeClaim, nodes: Sequence[Node], *, now: dt.datetime, patience: Patience, paused: bool
) -> Step:
    node = own_node(claim, nodes)
    if node is not None and not waits_for_cloud(node):
        return Register(node)
    left = _left(_began(claim, names.LAUNCHED), patience.registration, now=now)
    # A machine that runs a Node, whichever that is, has joined: pods may be on it, unless its taints still keep them away.
    stays = paused or any(each.is_ready and not waits_for_cloud(each) for each in nodes)
    if left <= 0 and not stays:
        return GiveUp(REGISTRATION_TIMEOUT, patience.registration)
    obstacle = CLOUD_INITIALIZES if node is not None else SEVERAL_NODES if nodes else NOT_REGISTERED
    again = patience.registration if paused or left <= 0 else left
    return _told_or_wait(claim, names.REGISTERED, obstacle, seconds=max(left, again))


def _initialization(claim: NodeClaim, node: Node | None, *, now: dt.datetime, patience: Patience, paused: bool) -> Step:
    obstacle = obstacle_to_use(claim, node)
    if obstacle is None and node is not None:
        return Initialize(node)
    registered = _began(claim, names.REGISTERED)
    left = _left(registered, patience.initialization, now=now)
    if left <= 0 and not paused:
        return GiveUp(INITIALIZATION_TIMEOUT, patience.initialization)
    left = max(left, patience.initialization if paused else 0)
    settling = _left(registered, SETTLING_SECONDS, now=now)
    if settling > 0:
        return Wait(min(settling, left))
    assert obstacle is not None
    return _told_or_wait(claim, names.INITIALIZED, obstacle, seconds=left)


def _told_or_wait(claim: NodeClaim, condition: str, obstacle: Obstacle, *, seconds: float) -> Step:
    told = find(claim.status.conditions, condition)
    if told is not None and (told.status, told.reason) == (obstacle.status, obstacle.reason):
        return Wait(seconds)
    return Tell(condition, obstacle, seconds)


def _began(claim: NodeClaim, condition: str) -> dt.datetime | None:
    """Since when the condition holds. It is dated by the clock of whoever wrote it, the claim by the server's: what seems to
    have been before the claim was not.
    """
    told, born = since(claim.status.conditions, condition), claim.metadata.creation_timestamp
    return told if told is None or born is None else max(told, born)


def _left(start: dt.datetime | None, seconds: float, *, now: dt.datetime) -> float:
    """What is left of a time that began then; all of it where nobody knows when it began."""
    return seconds if start is None else seconds - (now - start).total_seconds()
