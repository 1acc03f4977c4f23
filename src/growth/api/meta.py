"""What every Kubernetes object carries: metadata, owners, conditions, label selectors."""

import datetime as dt
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from growth.api.schema import Schema

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

    schema: ClassVar = Schema("One aspect of the object's state, as its controller sees it.")

    type: Annotated[
        str,
        Schema(
            "The aspect.",
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ]
    status: Annotated[
        str, Schema("Whether it holds; Unknown while that is open.", enum=("True", "False", "Unknown"), required=True)
    ] = "Unknown"
    reason: Annotated[
        str,
        Schema(
            "Why, in one word for programs.", max_length=1024, pattern="^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?|)$"
        ),
    ] = ""
    message: Annotated[str, Schema("Why, in a sentence for people.", max_length=32768)] = ""
    last_transition_time: Annotated[dt.datetime | None, Schema("When `status` last changed.", required=True)] = None
    observed_generation: Annotated[
        int, Schema("The `metadata.generation` that was looked at.", format="int64", minimum=0)
    ] = 0


# A list of conditions as every kind of ours has it: one entry a type.
CONDITIONS: Final = Schema("What is known of the object's state.", list_type="map", list_map_keys=("type",))


class LabelSelectorRequirement(Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


def selector_text(selector: LabelSelector) -> str:
    """The selector in the syntax of a server's queries; empty for one that selects everything."""
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        values = ",".join(sorted(each.values))
        match each.operator:
            case "In":
                parts.append(f"{each.key} in ({values})")
            case "NotIn":
                parts.append(f"{each.key} notin ({values})")
            case "Exists":
                parts.append(each.key)
            case "DoesNotExist":
                parts.append(f"!{each.key}")
    return ",".join(parts)


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
