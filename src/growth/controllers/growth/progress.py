"""What a NodeRequest needs next, from the request, its claim and the time. No I/O.

    Pending ──► Provisioning ──► Ready ──► (forgotten after readyTTL)
       │              └──► Deprovisioning ──► a NodeRemovalRequest, and forgotten
       ├──► Unmet ──► (claim ended, forgotten after unmetTTL)
       └──► (refused where its pods can be, not elsewhere: written in the pool, claim ended, forgotten)

The request mirrors its claim: launched is `Provisioning`, registered the event `nodeLabelled`, initialised `Ready`. Only a
cloud that refused the type in every location makes it `Unmet`. A request that allows some locations only, all of which were
refused, ends: the pool keeps what was refused. Whatever else fails is told, and tried again. Where the two differ the
claim is right: `Unmet` beside a claim that was not refused for want of the type is `Pending` again, and no claim ends by it.
"""

import dataclasses
import datetime as dt
from typing import Final, TypeAlias

from growth.api import names
from growth.api.conditions import TRUE, find, is_true, since
from growth.api.growthpools import (
    DEPROVISIONING,
    PENDING,
    PROVISIONING,
    READY,
    NodeRequest,
    StoryEvent,
)
from growth.api.karpenter import NodeClaim

# What happened, in the story of a request.
NODE_REQUESTED: Final = "nodeRequested"
NODE_REQUEST_FAILED: Final = "nodeRequestFailed"
NODE_PROVISIONED: Final = "nodeProvisioned"
NODE_LABELLED: Final = "nodeLabelled"
NODE_READY: Final = "nodeReady"
NODE_NOT_READY: Final = "nodeNotReady"

# So many are kept of a story, the newest.
STORY: Final = 20


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How many seconds things may take, and how long what is over is kept."""

    readiness: float
    ready_ttl: float
    unmet_ttl: float


@dataclasses.dataclass(frozen=True, slots=True)
class Nothing:
    """Somebody is deleting the request already, or it waits for the claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class Wait:
    """Look again after so many seconds, if nothing changes before."""

    seconds: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Write this into the status; what is empty stays as it is, but `unmet_until` goes with the phase."""

    phase: str
    events: tuple[StoryEvent, ...] = ()
    node_id: str = ""
    unmet_until: dt.datetime | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Ask:
    """Create the claim."""


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """The cloud has none of what the claim allows: write into the pool what that is, then end claim or request by it."""

    failed: StoryEvent


@dataclasses.dataclass(frozen=True, slots=True)
class EndClaim:
    """Delete the claim: the cloud has no machine for it."""


@dataclasses.dataclass(frozen=True, slots=True)
class AskForRemoval:
    """Create the NodeRemovalRequest of the machine; then the request is over."""


@dataclasses.dataclass(frozen=True, slots=True)
class Forget:
    """Delete the request. `why` is told to people where it did not end as it should; empty where it did."""

    why: str = ""


Step: TypeAlias = Nothing | Wait | Tell | Ask | Refused | EndClaim | AskForRemoval | Forget


def next_step(
    request: NodeRequest, claim: NodeClaim | None, *, now: dt.datetime, patience: Patience, made: bool = False
) -> Step:
    """`claim` is the one of this very request; None where there is none. `made`: there was one before, as far as we know."""
    if request.metadata.deletion_timestamp is not None:
        return Nothing()
    match request.status.phase:
        case "" | "Pending":
            return _pending(request, claim, now=now, made=made)
        case "Provisioning":
            return _provisioning(request, claim, now=now, patience=patience)
        case "Ready":
            if claim is None or _going(claim):
                return Forget()
            return _kept(request, patience.ready_ttl, now=now)
        case "Unmet":
            if claim is not None and not _going(claim):
                return EndClaim() if _out_of_stock(claim) else Tell(phase=PENDING)
            until = request.status.unmet_until or _last(request, now) + dt.timedelta(seconds=patience.unmet_ttl)
            left = (until - now).total_seconds()
            return Wait(left) if left > 0 else Forget()
        case "Deprovisioning":
            return Forget() if claim is None or _going(claim) else AskForRemoval()
        case _:
            return Nothing()  # a phase of a newer version of us


def _pending(request: NodeRequest, claim: NodeClaim | None, *, now: dt.datetime, made: bool) -> Step:
    if _going(claim) if claim is not None else made:
        # Another claim would have the same name, which may be what was refused. Pods that still need a machine are planned.
        return Forget(f"its claim went without a machine{_obstacle(claim) if claim is not None else ''}")
    if request.status.phase == "" or not request.status.node_claim_name:
        return Tell(phase=PENDING, events=(StoryEvent(at=now, name=NODE_REQUESTED),))
    if claim is None:
        return Ask()
    told = find(claim.status.conditions, names.LAUNCHED)
    if claim.status.provider_id and told is not None and told.status == TRUE:
        events = _once(request, NODE_PROVISIONED, now)
        return Tell(phase=PROVISIONING, node_id=claim.status.provider_id, events=events)
    if told is None or told.status == TRUE or told.reason == names.LAUNCHED:
        return Nothing()
    failed = StoryEvent(at=now, name=NODE_REQUEST_FAILED, reason=told.message or told.reason)
    if _out_of_stock(claim):
        return Refused(failed)
    return Nothing() if _told(request, failed) else Tell(phase=PENDING, events=(failed,))


def _provisioning(request: NodeRequest, claim: NodeClaim | None, *, now: dt.datetime, patience: Patience) -> Step:
    if claim is None or _going(claim):
        return Forget("its claim was deleted before the machine was ready")
    conditions = claim.status.conditions
    events = _once(request, NODE_LABELLED, now) if is_true(conditions, names.REGISTERED) else ()
    if is_true(conditions, names.INITIALIZED):
        return Tell(phase=READY, events=(*events, *_once(request, NODE_READY, now)))
    if events:
        return Tell(phase=PROVISIONING, events=events)
    launched = since(conditions, names.LAUNCHED) or _last(request, now)
    left = patience.readiness - (now - launched).total_seconds()
    if left > 0:
        return Wait(left)
    why = f"it was not ready {patience.readiness:.0f} s after its launch{_obstacle(claim)}"
    return Tell(phase=DEPROVISIONING, events=(StoryEvent(at=now, name=NODE_NOT_READY, reason=why),))


def _obstacle(claim: NodeClaim) -> str:
    """What the claim itself says is missing."""
    for type_ in (names.LAUNCHED, names.REGISTERED, names.INITIALIZED):
        told = find(claim.status.conditions, type_)
        if told is not None and told.status != TRUE and told.message:
            return f": {told.message}"
    return ""


def _kept(request: NodeRequest, ttl: float, *, now: dt.datetime) -> Step:
    left = ttl - (now - _last(request, now)).total_seconds()
    return Wait(left) if left > 0 else Forget()


def _last(request: NodeRequest, now: dt.datetime) -> dt.datetime:
    """When something last happened to the request."""
    events = request.status.events
    return events[-1].at if events else request.metadata.creation_timestamp or now


def _told(request: NodeRequest, event: StoryEvent) -> bool:
    last = request.status.events[-1] if request.status.events else None
    return last is not None and (last.name, last.reason) == (event.name, event.reason)


def _once(request: NodeRequest, name: str, now: dt.datetime) -> tuple[StoryEvent, ...]:
    """The event, unless the story has it already."""
    return () if any(event.name == name for event in request.status.events) else (StoryEvent(at=now, name=name),)


def _out_of_stock(claim: NodeClaim) -> bool:
    """The claim has no machine, and says itself that the cloud has none for it."""
    told = find(claim.status.conditions, names.LAUNCHED)
    refused = told is not None and told.status != TRUE and told.reason == names.INSUFFICIENT_CAPACITY_ERROR
    return refused and not claim.status.provider_id


def _going(claim: NodeClaim) -> bool:
    return claim.metadata.deletion_timestamp is not None
