"""What the lifecycle writes, as edits of raw objects: doing one twice is doing it once."""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.conditions import CLAIM_CONDITIONS, FALSE, TRUE, set_ready
from growth.api.edits import (
    add_finalizer,
    add_owner,
    add_taint,
    remove_taint,
    set_annotations,
    set_condition,
    set_labels,
)
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.placement import NO_EXECUTE
from growth.controllers.provisioning.claims import is_relaxed
from growth.planning.readiness import NOT_REGISTERED, Obstacle
from growth.units.resources import quantities

# What concerns the claim alone and would say something false of a Node.
CLAIM_ONLY_ANNOTATIONS: Final = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", names.BOUGHT_FOR_ANNOTATION}
)


def launch_labels(claim: NodeClaim, machine: CloudMachine) -> dict[str, str]:
    """The labels that a claim gets with its machine, where it has not set them itself. Its requirements count more than
    what the cloud says.
    """
    uses = claim.spec.node_class_ref
    known = {
        names.INSTANCE_TYPE_LABEL: machine.instance_type,
        names.ZONE_LABEL: machine.zone,
        names.CAPACITY_TYPE_LABEL: machine.capacity_type,
    }
    return {
        **{key: value for key, value in known.items() if value},
        **machine.labels,
        **{
            each.key: each.values[0]
            for each in claim.spec.requirements
            if each.operator == "In" and len(each.values) == 1
        },
        names.node_class_label(uses.group, uses.kind): uses.name,
    }


def tell_launched(draft: Json, claim: NodeClaim, machine: CloudMachine, *, now: dt.datetime) -> None:
    """The status of a claim that has its machine and no Node yet."""
    status = draft.setdefault("status", {})
    status["providerID"] = machine.provider_id
    if machine.image_id:
        status["imageID"] = machine.image_id
    for field, held in (("capacity", machine.capacity), ("allocatable", machine.allocatable)):
        if held:
            status[field] = quantities(held)
    set_condition(draft, names.LAUNCHED, status=TRUE, now=now)
    if is_relaxed(claim):
        reason, message = names.MIN_VALUES_RELAXED, _relaxed(claim)
        set_condition(draft, names.MIN_VALUES_RELAXED, status=TRUE, reason=reason, message=message, now=now)
    for condition in (names.REGISTERED, names.INITIALIZED):
        tell_obstacle(draft, condition, NOT_REGISTERED, now=now)


def _relaxed(claim: NodeClaim) -> str:
    """What the claim had to choose from, where its pool asks for more."""
    had = ", ".join(f"{each.min_values} of {each.key}" for each in claim.spec.requirements if each.min_values)
    most = claim.metadata.annotations.get(names.MAX_PRICE_ANNOTATION)
    within = f" within {names.MAX_PRICE_ANNOTATION} {most}" if most else ""
    return f"minValues of its NodePool could not be met{within}; values to choose from: {had or 'none'}"


def tell_obstacle(draft: Json, condition: str, obstacle: Obstacle, *, now: dt.datetime) -> None:
    """Why a condition of the claim does not hold. A condition that holds meanwhile is left alone."""
    held = draft.get("status", {}).get("conditions") or ()
    if any(each.get("type") == condition and each.get("status") == TRUE for each in held):
        return
    set_condition(draft, condition, status=obstacle.status, reason=obstacle.reason, message=obstacle.message, now=now)
    set_ready(draft, CLAIM_CONDITIONS, now=now)


def tell_launch_failure(draft: Json, *, status: str, reason: str, message: str, now: dt.datetime) -> None:
    """Of a claim that somebody else has bought a machine for meanwhile nothing is told."""
    assert status in {FALSE, "Unknown"}
    tell_obstacle(draft, names.LAUNCHED, Obstacle(status=status, reason=reason, message=message), now=now)


def tell_registered(
    draft: Json, *, node: str, obstacle: Obstacle | None, registered: dt.datetime, now: dt.datetime
) -> None:
    """The status of a claim whose Node is its own since `registered`; `obstacle` is what keeps it from use, if anything
    does.
    """
    draft.setdefault("status", {})["nodeName"] = node
    set_condition(draft, names.REGISTERED, status=TRUE, now=registered)
    if obstacle is None:
        set_condition(draft, names.INITIALIZED, status=TRUE, now=now)
        set_ready(draft, CLAIM_CONDITIONS, now=now)
    else:
        tell_obstacle(draft, names.INITIALIZED, obstacle, now=now)


def take_node(draft: Json, claim: NodeClaim) -> None:
    """Makes the Node the claim's: finalizer, owner, labels, annotations, taints. Labels that the claim lacks stay."""
    add_finalizer(draft, names.TERMINATION_FINALIZER)
    owner: Json = {
        "apiVersion": NODE_CLAIM.api_version,
        "kind": NODE_CLAIM.kind,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
        "blockOwnerDeletion": True,
    }
    add_owner(draft, owner)
    keeps_taints = _labels(draft).get(names.DO_NOT_SYNC_TAINTS_LABEL) == "true"
    set_labels(draft, {**claim.metadata.labels, names.REGISTERED_LABEL: "true"})
    annotations = claim.metadata.annotations.items()
    set_annotations(draft, {key: value for key, value in annotations if key not in CLAIM_ONLY_ANNOTATIONS})
    if not keeps_taints:
        for taint in (*claim.spec.taints, *claim.spec.startup_taints):
            if not _has_taint(draft, taint.key, taint.effect):
                add_taint(draft, key=taint.key, effect=taint.effect, value=taint.value)
    remove_taint(draft, key=names.UNREGISTERED_TAINT, effect=NO_EXECUTE)


def is_taken(draft: Json, claim: NodeClaim) -> bool:
    """Whether the Node is the claim's already. One that lost its label is: owner and label came in one write."""
    owners = draft["metadata"].get("ownerReferences") or ()
    owned = any(each.get("uid") == claim.metadata.uid for each in owners)
    return owned and (_labels(draft).get(names.REGISTERED_LABEL) == "true" or lacks_unregistered_taint(draft))


def mark_registered(draft: Json) -> None:
    set_labels(draft, {names.REGISTERED_LABEL: "true"})


def mark_initialized(draft: Json) -> None:
    set_labels(draft, {names.INITIALIZED_LABEL: "true"})


def lacks_unregistered_taint(draft: Json) -> bool:
    """Whether pods could have come to the Node before its labels and taints were right."""
    return not _has_taint(draft, names.UNREGISTERED_TAINT, NO_EXECUTE)


def _labels(draft: Json) -> Mapping[str, str]:
    labels: Mapping[str, str] = draft["metadata"].get("labels") or {}
    return labels


def _has_taint(draft: Json, key: str, effect: str) -> bool:
    taints = draft.get("spec", {}).get("taints") or ()
    return any(each.get("key") == key and each.get("effect") == effect for each in taints)
