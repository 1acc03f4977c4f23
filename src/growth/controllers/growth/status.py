"""What a growth pool says of itself: what it has type by type, and what stands in its way. Pure."""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import FALSE, TRUE, UNKNOWN, find, is_true, set_ready
from growth.api.edits import remove_condition, set_condition
from growth.api.growthpools import UNMET, GrowthPool, NodeRequest, ServerType, UnmetOffering
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim, NodeClassReference
from growth.api.kinds import Json
from growth.api.meta import Condition
from growth.cluster.machines import types_of
from growth.cluster.node_requests import COUNTED, claim_name, server_type, unmet_everywhere_until
from growth.cluster.pricing import by_name
from growth.units import parse_time, print_time

UNKNOWN_SERVER_TYPE: Final = "UnknownServerType"
SEVERAL_ARCHITECTURES: Final = "SeveralArchitectures"
NAME_TOO_LONG: Final = "NameTooLong"
NOT_SERVED: Final = "NodeClassNotServed"
CLASS_UNKNOWN: Final = "NodeClassReadinessUnknown"
# The pool's name is the value of a label on its nodes.
LONGEST_NAME: Final = 63

_READY_NEEDS: Final = (names.VALIDATION_SUCCEEDED, names.SERVER_TYPES_ORDERABLE, names.NODE_CLASS_READY)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Class:
    """The node class of a pool. `served`: our cloud makes machines of its kind. `conditions` None: it does not exist."""

    uses: NodeClassReference
    served: bool = True
    known: bool = True
    conditions: Sequence[Condition] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that the status is made of. `paused` is why nothing happens to the pool; empty when it may.

    `types` are those that machines of the pool's node class can be, by name in lower case.
    """

    catalogue: Catalogue
    types: Mapping[str, InstanceType]
    claims: tuple[NodeClaim, ...]
    requests: tuple[NodeRequest, ...]
    node_class: Class
    paused: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Line:
    """One server type of a pool: machines that can take pods, and machines on their way."""

    name: str
    ready: int
    in_flight: int
    unmet_until: dt.datetime | None


def raw(pool: GrowthPool) -> Json:
    """A pool from the cache as `tell` takes it: enough to see whether there is anything to tell, never to be written."""
    draft: Json = msgspec.json.decode(msgspec.json.encode(pool))
    return draft


def lines(pool: GrowthPool, facts: Facts, *, now: dt.datetime) -> list[Line]:
    """Type by type, in the order of the spec."""
    there = {claim.metadata.name for claim in facts.claims}
    ready: dict[str, int] = {}
    coming: dict[str, int] = {}
    for claim in facts.claims:
        if claim.metadata.deletion_timestamp is not None:
            continue
        counts = ready if is_true(claim.status.conditions, names.INITIALIZED) else coming
        for name in types_of(claim)[:1]:
            counts[name] = counts.get(name, 0) + 1
    for request in facts.requests:
        if request.status.phase in COUNTED and claim_name(request.metadata.name) not in there:
            name = server_type(request).lower()
            coming[name] = coming.get(name, 0) + 1
    until = unmet(pool, facts, now=now)
    return [
        Line(name, ready.get(name, 0), coming.get(name, 0), until.get(name))
        for name in dict.fromkeys(each.name.lower() for each in pool.spec.server_types)
    ]


def unmet(pool: GrowthPool, facts: Facts, *, now: dt.datetime) -> dict[str, dt.datetime]:
    """Until when the pool asks for a type nowhere, by its name in lower case."""
    found: dict[str, dt.datetime] = {}
    for request in facts.requests:
        until = request.status.unmet_until
        if request.status.phase == UNMET and until is not None:
            name = server_type(request).lower()
            found[name] = max(until, found.get(name, until))
    refused = [each for each in pool.status.unmet_offerings if each.until > now]
    for name in sorted({each.type for each in refused} & facts.types.keys() - found.keys()):
        everywhere = unmet_everywhere_until(facts.types[name], refused)
        if everywhere is not None:
            found[name] = everywhere
    return found


def remember(draft: Json, refused: Iterable[UnmetOffering], *, now: dt.datetime) -> None:
    """Adds what the cloud refused to what the draft says. An entry whose time is not over is not prolonged."""
    listed = _unmet_now(draft, now=now)
    there = {_offering(each) for each in listed}
    for each in refused:
        entry: Json = {"type": each.type, "location": each.location, "until": print_time(each.until)}
        if each.capacity_type:
            entry["capacityType"] = each.capacity_type
        if not {_offering(entry), (each.type, each.location, "")} & there:
            listed.append(entry)
    _write_unmet(draft, listed)


def _unmet_now(draft: Json, *, now: dt.datetime) -> list[Json]:
    listed = (draft.get("status") or {}).get("unmetOfferings") or []
    return [each for each in listed if parse_time(each["until"]) > now]


def _offering(entry: Json) -> tuple[str, str, str]:
    return entry["type"], entry["location"], entry.get("capacityType") or ""


def _write_unmet(draft: Json, listed: list[Json]) -> None:
    status = draft.setdefault("status", {})
    if listed:
        status["unmetOfferings"] = sorted(listed, key=_offering)
    else:
        status.pop("unmetOfferings", None)


def tell(draft: Json, pool: GrowthPool, facts: Facts, *, now: dt.datetime) -> None:
    """Makes the status of the draft say so."""
    status = draft.setdefault("status", {})
    there = {claim.metadata.name for claim in facts.claims}
    there |= {claim_name(each.metadata.name) for each in facts.requests if each.status.phase in COUNTED}
    if status.get("nodes", 0) != len(there):
        status["nodes"] = len(there)
    told = [_shown(line) for line in lines(pool, facts, now=now)]
    if _known(status.get("serverTypes")) != told:
        status["serverTypes"] = told
    _write_unmet(draft, _unmet_now(draft, now=now))
    _tell_validation(draft, pool, now=now)
    _tell_types(draft, pool, facts.catalogue, now=now)
    _tell_class(draft, facts.node_class, now=now)
    _tell_architecture(draft, pool, facts.catalogue, now=now)
    if facts.paused:
        set_condition(draft, names.PAUSED, status=TRUE, message=facts.paused, now=now)
    else:
        remove_condition(draft, names.PAUSED)
    set_ready(draft, _READY_NEEDS, now=now)


def _shown(line: Line) -> Json:
    told: Json = {"name": line.name, "ready": line.ready, "inFlight": line.in_flight}
    return told if line.unmet_until is None else {**told, "unmetUntil": print_time(line.unmet_until)}


def _known(listed: list[Json] | None) -> list[Json]:
    """As `_shown` writes it: a cached pool leaves out what is nothing, and spells times in its own way."""
    found = []
    for each in listed or []:
        told: Json = {"name": each["name"], "ready": each.get("ready", 0), "inFlight": each.get("inFlight", 0)}
        until = each.get("unmetUntil")
        if until:
            told["unmetUntil"] = print_time(dt.datetime.fromisoformat(until))
        found.append(told)
    return found


def _tell_validation(draft: Json, pool: GrowthPool, *, now: dt.datetime) -> None:
    if len(pool.metadata.name) <= LONGEST_NAME:
        set_condition(draft, names.VALIDATION_SUCCEEDED, status=TRUE, now=now)
        return
    message = (
        f"the pool's name is longer than {LONGEST_NAME} characters, which no label can hold: make it under another name"
    )
    set_condition(draft, names.VALIDATION_SUCCEEDED, status=FALSE, reason=NAME_TOO_LONG, message=message, now=now)


def _tell_types(draft: Json, pool: GrowthPool, catalogue: Catalogue, *, now: dt.datetime) -> None:
    """True as long as one of the types can be ordered; the message names the others, and their successors."""
    sold = by_name(catalogue.types)
    missing = [each for each in pool.spec.server_types if each.name.lower() not in sold]
    message = "; ".join(_missing(each, catalogue) for each in missing)
    outlived = any(each.name.lower() in catalogue.successors for each in missing)
    reason = names.NO_LONGER_ORDERABLE if outlived else UNKNOWN_SERVER_TYPE if missing else ""
    status = FALSE if len(missing) == len(pool.spec.server_types) else TRUE
    set_condition(draft, names.SERVER_TYPES_ORDERABLE, status=status, reason=reason, message=message, now=now)


def _missing(asked: ServerType, catalogue: Catalogue) -> str:
    successor = catalogue.successors.get(asked.name.lower())
    if successor is not None:
        return f"{asked.name} can no longer be ordered from {catalogue.cloud}: use {successor.upper()}"
    return f"{catalogue.cloud} sells no server type {asked.name}: correct its name or remove it"


def judged(found: Class) -> tuple[str, str, str]:
    """Whether machines can be made of the class: status, reason and message of the condition."""
    uses = found.uses
    if not found.served:
        told = f"node classes {uses.kind} of {uses.group} are not served by this cloud: name another in nodeClassRef"
        return FALSE, NOT_SERVED, told
    if not found.known:
        return UNKNOWN, CLASS_UNKNOWN, "node classes have not been read yet"
    if found.conditions is None:
        told = f"node class {uses.kind} {uses.name} does not exist: create it, or name another in nodeClassRef"
        return FALSE, names.NODE_CLASS_NOT_FOUND, told
    ready = find(found.conditions, names.READY)
    if ready is not None and ready.status == FALSE:
        return FALSE, ready.reason or names.NODE_CLASS_NOT_READY, ready.message
    return TRUE, "", ""


def _tell_class(draft: Json, found: Class, *, now: dt.datetime) -> None:
    status, reason, message = judged(found)
    set_condition(draft, names.NODE_CLASS_READY, status=status, reason=reason, message=message, now=now)


def _tell_architecture(draft: Json, pool: GrowthPool, catalogue: Catalogue, *, now: dt.datetime) -> None:
    """Said only of a pool with types of several architectures."""
    chosen, all_ = architectures(pool, catalogue)
    if len(all_) < 2:
        remove_condition(draft, names.ONE_ARCHITECTURE)
        return
    message = (
        f"the server types are of {' and '.join(sorted(all_))}: pods that name no {names.ARCH_LABEL} get {chosen}, as the"
        " first type has it"
    )
    set_condition(draft, names.ONE_ARCHITECTURE, status=FALSE, reason=SEVERAL_ARCHITECTURES, message=message, now=now)


def architectures(pool: GrowthPool, catalogue: Catalogue) -> tuple[str, set[str]]:
    """That of the first type that is sold, and all of them."""
    sold = by_name(catalogue.types)
    kinds: list[InstanceType] = [
        sold[each.name.lower()] for each in pool.spec.server_types if each.name.lower() in sold
    ]
    known = [kind.labels_of_today.get(names.ARCH_LABEL, ()) for kind in kinds]
    found = {values[0] for values in known if values}
    return (known[0][0] if known and known[0] else ""), found
