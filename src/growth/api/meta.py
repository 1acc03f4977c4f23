"""What every Kubernetes object carries: metadata, owners, conditions, label selectors."""

import datetime as dt
from typing import TypeAlias

import msgspec

# Servers send canonical strings; custom resources and files also hold bare numbers.
Quantity: TypeAlias = str | int | float
ResourceList: TypeAlias = dict[str, Quantity]


class Struct(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, rename="camel", gc=False):
    """Base of every typed object: a frozen value, camelCase on the wire, defaults left out when encoded.

    Only the fields that Growth reads are declared; others are skipped when decoding. Hence a struct is never written
    back whole over an object that somebody else may have extended: changes go out as patches (`growth.kube.changes`).
    """


class OwnerReference(Struct, frozen=True):
    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Struct, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: dt.datetime | None = None
    deletion_timestamp: dt.datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Condition(Struct, frozen=True):
    """`metav1.Condition`; the conditions of Pods and Nodes are a little different and live with them."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: dt.datetime | None = None
    observed_generation: int = 0


class LabelSelectorRequirement(Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class ObjectReference(Struct, frozen=True):
    """As servers write it: every part may be missing."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class Object(Struct, frozen=True):
    """What can be said of an object of any kind."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
