"""A simulated machine as it is written down: one ConfigMap `kwok-<claim>` in Growth's namespace.

Its name follows from the claim's, so that a repeated creation meets the first. Everything that its kubelet will say of
it stands in the record too: a machine stays what it was bought as, though the catalogue may change meanwhile.
"""

import dataclasses
import datetime as dt
import enum
import json
import zlib
from typing import Any, Final

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.providers.choice import Choice
from growth.units import TimestampError, parse_time, print_micro_time
from growth.units.errors import QuantityError
from growth.units.resources import amounts, quantities

SCHEME: Final = "kwok://"
# On the Node: the claim that its machine was made for, so that a later machine of the same name is not taken for it.
CLAIM_UID_ANNOTATION: Final = "growth.dev/kwok-claim-uid"
# A Node whose kubelet is broken from the start; who plays kubelet leaves it alone.
NEVER_READY_ANNOTATION: Final = "growth.dev/kwok-never-ready"
# The server's limit for a label's value.
LABEL_CHARACTERS: Final = 63


class State(enum.StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DELETING = "deleting"


class Unreadable(ValueError):
    """A record that somebody changed by hand; the message says what is wrong with it."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """`registers_at` is when its kubelet will register; `node` are labels, taints, capacity and allocatable by then."""

    claim: str
    claim_uid: str
    provider_id: str
    instance_type: str
    zone: str
    capacity_type: str
    reservation: str
    state: State
    registers_at: dt.datetime
    labels: dict[str, str]
    taints: tuple[Json, ...]
    capacity: dict[str, str]
    allocatable: dict[str, str]
    uid: str = ""
    revision: str = ""
    created: dt.datetime | None = None


def record_name(claim: str) -> str:
    return f"{names.KWOK_MACHINE_PREFIX}{claim}"


def provider_id_of(claim: str) -> str:
    return f"{SCHEME}{claim}"


def claim_of(provider_id: str) -> str:
    """The claim of a machine by its provider ID; empty where the ID is another cloud's."""
    return provider_id.removeprefix(SCHEME) if provider_id.startswith(SCHEME) else ""


def new_record(claim: NodeClaim, choice: Choice, *, registers_at: dt.datetime) -> Record:
    """What is written down when a machine is bought. Its kubelet registers with the claim's taints, as told by user data."""
    name = claim.metadata.name
    taints: list[Json] = [{"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}]
    taints += [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in (*claim.spec.taints, *claim.spec.startup_taints)
    ]
    return Record(
        claim=name,
        claim_uid=claim.metadata.uid,
        provider_id=provider_id_of(name),
        instance_type=choice.type.name,
        zone=choice.offering.zone,
        capacity_type=choice.offering.capacity_type,
        reservation=choice.offering.reservation,
        state=State.PENDING,
        registers_at=registers_at,
        labels=dict(choice.labels),
        taints=tuple(taints),
        capacity=quantities(choice.type.capacity),
        allocatable=quantities(choice.type.allocatable),
    )


def config_map(record: Record, *, cluster: str) -> Json:
    """The object to create."""
    kubelet = {
        "labels": record.labels,
        "taints": list(record.taints),
        "capacity": record.capacity,
        "allocatable": record.allocatable,
    }
    data = {
        "claimUID": record.claim_uid,
        "providerID": record.provider_id,
        "instanceType": record.instance_type,
        "zone": record.zone,
        "capacityType": record.capacity_type,
        "state": record.state.value,
        "registersAt": print_micro_time(record.registers_at),
        "node": json.dumps(kubelet, sort_keys=True),
        **({"reservation": record.reservation} if record.reservation else {}),
    }
    return {
        "apiVersion": CONFIG_MAP.api_version,
        "kind": CONFIG_MAP.kind,
        "metadata": {"name": record_name(record.claim), "labels": {names.KWOK_MACHINE_LABEL: cluster}},
        "data": data,
    }


def read(item: ConfigMap) -> Record:
    """The record in a ConfigMap; `Unreadable` where it is none."""
    data, meta = item.data, item.metadata
    try:
        kubelet: dict[str, Any] = json.loads(data["node"])
        return Record(
            claim=meta.name.removeprefix(names.KWOK_MACHINE_PREFIX),
            claim_uid=data["claimUID"],
            provider_id=data["providerID"],
            instance_type=data["instanceType"],
            zone=data["zone"],
            capacity_type=data["capacityType"],
            reservation=data.get("reservation", ""),
            state=State(data["state"]),
            registers_at=parse_time(data["registersAt"]),
            labels=dict(kubelet["labels"]),
            taints=tuple(kubelet["taints"]),
            capacity=dict(kubelet["capacity"]),
            allocatable=dict(kubelet["allocatable"]),
            uid=meta.uid,
            revision=meta.resource_version,
            created=meta.creation_timestamp,
        )
    except KeyError as error:
        raise Unreadable(f"ConfigMap {meta.namespace}/{meta.name} lacks {error}") from error
    except (ValueError, TypeError, TimestampError) as error:
        raise Unreadable(f"ConfigMap {meta.namespace}/{meta.name} is no machine: {error}") from error


def machine(record: Record) -> CloudMachine:
    """The machine as the cloud shows it."""
    return CloudMachine(
        provider_id=record.provider_id,
        claim=record.claim,
        claim_uid=record.claim_uid,
        instance_type=record.instance_type,
        zone=record.zone,
        capacity_type=record.capacity_type,
        labels=record.labels,
        capacity=_amounts(record.capacity),
        allocatable=_amounts(record.allocatable),
        created=record.created,
        deleting=record.state is State.DELETING,
    )


def unreadable_machine(item: ConfigMap) -> CloudMachine:
    """A record that nobody can read is still a machine: it has its place in every list."""
    claim = item.metadata.name.removeprefix(names.KWOK_MACHINE_PREFIX)
    return CloudMachine(
        provider_id=item.data.get("providerID", provider_id_of(claim)),
        claim=claim,
        claim_uid=item.data.get("claimUID", ""),
        created=item.metadata.creation_timestamp,
        deleting=item.data.get("state") == State.DELETING.value,
    )


def node_body(record: Record, *, cluster: str, kwok_controller: bool, broken: bool = False) -> Json:
    """The Node that the machine's kubelet registers, not ready yet.

    With `kwok_controller` it carries the mark by which that controller knows its own. A `broken` kubelet registers and
    then never says that it is ready: nobody is to play it.
    """
    hostname = record.claim[:LABEL_CHARACTERS].rstrip("-.")
    mark = {names.KWOK_NODE: names.KWOK_NODE_VALUE} if kwok_controller and not broken else {}
    address = zlib.crc32(record.claim_uid.encode())
    return {
        "apiVersion": NODE.api_version,
        "kind": NODE.kind,
        "metadata": {
            "name": record.claim,
            "labels": {
                **record.labels,
                names.HOSTNAME_LABEL: hostname,
                names.KWOK_MACHINE_LABEL: cluster,
                **mark,
            },
            "annotations": {
                CLAIM_UID_ANNOTATION: record.claim_uid,
                **mark,
                **({NEVER_READY_ANNOTATION: "true"} if broken else {}),
            },
        },
        "spec": {"providerID": record.provider_id, "taints": list(record.taints)},
        "status": {
            "capacity": record.capacity,
            "allocatable": record.allocatable,
            "addresses": [
                {"type": "InternalIP", "address": f"10.{address >> 16 & 255}.{address >> 8 & 255}.{address & 255}"},
                {"type": "Hostname", "address": hostname},
            ],
            "nodeInfo": {
                "architecture": record.labels.get(names.ARCH_LABEL, ""),
                "operatingSystem": record.labels.get(names.OS_LABEL, ""),
                "machineID": record.claim_uid,
                "systemUUID": record.claim_uid,
                "bootID": record.claim_uid,
                "kernelVersion": "simulated",
                "osImage": "simulated",
                "containerRuntimeVersion": "simulated",
                "kubeletVersion": "simulated",
                "kubeProxyVersion": "",
            },
        },
    }


def _amounts(of: dict[str, str]) -> dict[str, int]:
    try:
        return amounts(of)
    except QuantityError as error:
        raise Unreadable(f"its capacity cannot be read: {error}") from error
