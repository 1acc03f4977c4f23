"""What the status of a NodePool is to say, from what is known of it. No I/O."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import FALSE, POOL_CONDITIONS, TRUE, UNKNOWN, find, set_ready
from growth.api.edits import remove_condition, set_condition
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.meta import Condition, ObjectMeta
from growth.api.nodes import Node
from growth.cluster.machines import Machine
from growth.controllers.health import Verdict
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add, quantities

# As long as nothing is known: the words of Karpenter's own conditions.
AWAITING: Final = ("AwaitingReconciliation", "object is awaiting reconciliation")
# A pool without machines says zero of these, so that dashboards have a line from the start.
ALWAYS: Final = ("cpu", "memory", "pods", "ephemeral-storage", "nodes")

VALIDATION_FAILED: Final = "NodePoolValidationFailed"
CLASS_TERMINATING: Final = "NodeClassTerminating"
CLASS_UNKNOWN: Final = "NodeClassReadinessUnknown"
LIMIT_REACHED: Final = "NodeLimitReached"


@dataclasses.dataclass(frozen=True, slots=True)
class NodeClass:
    """What matters of the pool's node class."""

    metadata: ObjectMeta
    conditions: Sequence[Condition]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of a pool. `node_class` None: it does not exist; `classes_known` False: nobody can say.

    `paused` says why nothing is bought or disrupted; `health` is None where nothing is known of its last machines.
    `in_place` says why drifted machines go before others are bought. `ended` says which types that it names can no longer be
    ordered; None: nobody knows what is sold. `buys`: there is something that can be.
    """

    problems: Sequence[str]
    node_class: NodeClass | None
    classes_known: bool
    paused: str
    resources: Amounts
    nodes: int
    health: Verdict | None
    in_place: str = ""
    ended: str | None = ""
    buys: bool = True


def held(claims: Iterable[tuple[NodeClaim, Node | None]]) -> tuple[dict[str, int], int]:
    """What a pool's machines have in sum, and how many there are: those that the cloud gave us, gone ones left out.

    A machine of which nobody can read what it has counts as a machine.
    """
    total: dict[str, int] = dict.fromkeys(ALWAYS, 0)
    nodes = 0
    for claim, node in claims:
        if not claim.status.provider_id:
            continue
        nodes += 1
        try:
            total = add(total, Machine(node, claim).capacity)
        except QuantityError:
            continue
    return {**total, "nodes": nodes}, nodes


def begins_anew(pool: NodePool, node_class: NodeClass | None) -> bool:
    """Whether pool or class changed since NodeRegistrationHealthy was told: what was, says nothing of what comes."""
    told = find(pool.status.conditions, names.NODE_REGISTRATION_HEALTHY)
    if told is None:
        return True
    seen = pool.status.node_class_observed_generation
    class_changed = node_class is not None and seen != node_class.metadata.generation
    return class_changed or told.observed_generation != pool.metadata.generation


def raw(pool: NodePool) -> Json:
    """A pool from the cache as `tell` takes it: enough to see whether there is anything to tell, never to be written."""
    draft: Json = msgspec.json.decode(msgspec.json.encode(pool))
    return draft


def tell(draft: Json, facts: Facts, *, now: dt.datetime) -> None:
    """Makes the status of the draft say so."""
    status = draft.setdefault("status", {})
    resources = quantities(facts.resources)
    if status.get("resources") != resources:
        status["resources"] = resources
    if status.get("nodes", 0) != facts.nodes:
        status["nodes"] = facts.nodes
    _tell_validation(draft, facts.problems, now=now)
    _tell_class(draft, facts, now=now)
    _tell_health(draft, facts, now=now)
    if facts.node_class is not None and facts.node_class.metadata.generation:
        status["nodeClassObservedGeneration"] = facts.node_class.metadata.generation
    if facts.paused:
        set_condition(draft, names.PAUSED, status=TRUE, message=facts.paused, now=now)
    else:
        remove_condition(draft, names.PAUSED)
    if facts.in_place:
        set_condition(
            draft, names.REPLACES_IN_PLACE, status=TRUE, reason=LIMIT_REACHED, message=facts.in_place, now=now
        )
    else:
        remove_condition(draft, names.REPLACES_IN_PLACE)
    _tell_types(draft, facts, now=now)
    set_ready(draft, POOL_CONDITIONS, now=now)


def _tell_types(draft: Json, facts: Facts, *, now: dt.datetime) -> None:
    """What was told before stands while nobody knows what is sold."""
    if facts.ended:
        set_condition(
            draft,
            names.SERVER_TYPES_ORDERABLE,
            status=TRUE if facts.buys else FALSE,
            reason=names.NO_LONGER_ORDERABLE,
            message=facts.ended,
            now=now,
        )
    elif facts.ended is not None:
        remove_condition(draft, names.SERVER_TYPES_ORDERABLE)


def _tell_validation(draft: Json, problems: Sequence[str], *, now: dt.datetime) -> None:
    if problems:
        message = "; ".join(problems)
        set_condition(
            draft, names.VALIDATION_SUCCEEDED, status=FALSE, reason=VALIDATION_FAILED, message=message, now=now
        )
    else:
        set_condition(draft, names.VALIDATION_SUCCEEDED, status=TRUE, now=now)


def _tell_class(draft: Json, facts: Facts, *, now: dt.datetime) -> None:
    status, reason, message = _readiness(facts)
    set_condition(draft, names.NODE_CLASS_READY, status=status, reason=reason, message=message, now=now)


def _readiness(facts: Facts) -> tuple[str, str, str]:
    if not facts.classes_known:
        return UNKNOWN, CLASS_UNKNOWN, "Node Class Readiness Unknown"
    if facts.node_class is None:
        return FALSE, names.NODE_CLASS_NOT_FOUND, "the node class that nodeClassRef names does not exist"
    if facts.node_class.metadata.deletion_timestamp is not None:
        return FALSE, CLASS_TERMINATING, "NodeClass is Terminating"
    ready = find(facts.node_class.conditions, names.READY)
    if ready is None or ready.status not in {TRUE, FALSE}:
        return UNKNOWN, CLASS_UNKNOWN, "Node Class Readiness Unknown"
    if ready.status == FALSE:
        return FALSE, ready.reason or names.NODE_CLASS_NOT_READY, ready.message
    return TRUE, "", ""


def _tell_health(draft: Json, facts: Facts, *, now: dt.datetime) -> None:
    verdict = facts.health
    if verdict is None:
        reason, message = AWAITING
        set_condition(draft, names.NODE_REGISTRATION_HEALTHY, status=UNKNOWN, reason=reason, message=message, now=now)
    elif verdict.healthy:
        set_condition(draft, names.NODE_REGISTRATION_HEALTHY, status=TRUE, now=now)
    else:
        set_condition(
            draft,
            names.NODE_REGISTRATION_HEALTHY,
            status=FALSE,
            reason=verdict.reason or "RegistrationFailed",
            message=verdict.message,
            now=now,
        )
