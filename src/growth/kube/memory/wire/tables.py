"""Tables, as `kubectl get` asks for them: the columns of built-in kinds and the printer columns of custom ones."""

import datetime as dt
from collections.abc import Callable, Mapping
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.resources import Column, Resource
from growth.kube.memory.wire import cells, jsonpath
from growth.kube.memory.wire.ages import age

Cells = Callable[[Json, dt.datetime], list[Any]]


def _columns(text: str) -> list[Json]:
    """`Name|Ready|Age|+Node:integer`: plus is shown with -o wide, a colon gives another type than string."""
    made: list[Json] = []
    for part in text.split("|"):
        name, _, kind = part.lstrip("+").partition(":")
        made.append(
            {
                "name": name,
                "type": kind or "string",
                "format": "name" if name == "Name" else "",
                "description": "",
                "priority": 1 if part.startswith("+") else 0,
            }
        )
    return made


_TEMPLATE: Final = "+Containers|+Images|+Selector"

_BUILTIN: Final[Mapping[str, tuple[list[Json], Cells]]] = {
    kind: (_columns(text), make)
    for kind, text, make in (
        ("Pod", "Name|Ready|Status|Restarts|Age|+IP|+Node|+Nominated Node|+Readiness Gates", cells.pod),
        (
            "Node",
            "Name|Status|Roles|Age|Version|+Internal-IP|+External-IP|+OS-Image|+Kernel-Version|+Container-Runtime",
            cells.node,
        ),
        ("Namespace", "Name|Status|Age", cells.namespace),
        ("ConfigMap", "Name|Data|Age", cells.config_map),
        ("Secret", "Name|Type|Data|Age", cells.secret),
        ("Service", "Name|Type|Cluster-IP|External-IP|Port(s)|Age|+Selector", cells.service),
        ("ServiceAccount", "Name|Age", cells.plain),
        (
            "Event",
            "Last Seen|Type|Reason|Object|+Subobject|+Source|Message|+First Seen|+Count|+Name",
            cells.event,
        ),
        (
            "PersistentVolumeClaim",
            "Name|Status|Volume|Capacity|Access Modes|StorageClass|VolumeAttributesClass|Age|+VolumeMode",
            cells.claim,
        ),
        (
            "PersistentVolume",
            (
                "Name|Capacity|Access Modes|Reclaim Policy|Status|Claim|StorageClass|VolumeAttributesClass|Reason|Age"
                "|+VolumeMode"
            ),
            cells.volume,
        ),
        ("Lease", "Name|Holder|Age", cells.lease),
        (
            "PodDisruptionBudget",
            "Name|Min Available|Max Unavailable|Allowed Disruptions:integer|Age",
            cells.budget,
        ),
        (
            "PriorityClass",
            "Name|Value:integer|Global-Default:boolean|Age|PreemptionPolicy",
            cells.priority_class,
        ),
        (
            "StorageClass",
            "Name|Provisioner|ReclaimPolicy|VolumeBindingMode|AllowVolumeExpansion|Age",
            cells.storage_class,
        ),
        ("CSINode", "Name|Drivers:integer|Age", cells.csi_node),
        ("VolumeAttachment", "Name|Attacher|PV|Node|Attached:boolean|Age", cells.attachment),
        ("Deployment", f"Name|Ready|Up-to-date|Available|Age|{_TEMPLATE}", cells.deployment),
        ("ReplicaSet", f"Name|Desired:integer|Current:integer|Ready:integer|Age|{_TEMPLATE}", cells.replica_set),
        ("StatefulSet", "Name|Ready|Age|+Containers|+Images", cells.stateful_set),
        (
            "DaemonSet",
            "Name|Desired:integer|Current:integer|Ready:integer|Up-to-date:integer|Available:integer|Node Selector|Age|"
            + _TEMPLATE,
            cells.daemon_set,
        ),
        ("Job", f"Name|Status|Completions|Duration|Age|{_TEMPLATE}", cells.job),
        (
            "CronJob",
            f"Name|Schedule|Timezone|Suspend:boolean|Active:integer|Last Schedule|Age|{_TEMPLATE}",
            cells.cron_job,
        ),
    )
}
_OTHERS: Final = (_columns("Name|Created At:date"), cells.created_at)


def columns_of(resource: Resource) -> list[Json]:
    """The column definitions of a kind."""
    if not resource.custom:
        return _BUILTIN.get(resource.kind, _OTHERS)[0]
    return [
        *_columns("Name"),
        *(
            {
                "name": column.name,
                "type": column.type,
                "format": column.format,
                "description": column.description,
                "priority": column.priority,
            }
            for column in resource.columns
        ),
    ]


def row_of(resource: Resource, stored: Json, now: dt.datetime, *, include: str) -> Json:
    """One row; `include` says how much of the object goes along: None, Metadata or Object."""
    if resource.custom:
        values = [stored["metadata"]["name"], *(_custom_cell(column, stored, now) for column in resource.columns)]
    else:
        values = _BUILTIN.get(resource.kind, _OTHERS)[1](stored, now)
    row: Json = {"cells": values}
    if include == "Object":
        row["object"] = stored
    elif include != "None":
        row["object"] = partial(stored)
    return row


def partial(stored: Json) -> Json:
    """An object of which only the metadata is shown."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": stored["metadata"]}


def _custom_cell(column: Column, stored: Json, now: dt.datetime) -> Any:
    value = jsonpath.first(stored, column.path)
    if value is None:
        return None
    match column.type:
        case "date":
            return age(value, now) if isinstance(value, str) else None
        case "integer":
            return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "number":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case _:
            return cells.text(value)


def table(
    resource: Resource, items: list[Json], metadata: Json, now: dt.datetime, *, include: str, headed: bool = True
) -> Json:
    """A table of objects; a watch sends the column definitions with its first event only."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns_of(resource) if headed else None,
        "rows": [row_of(resource, item, now, include=include) for item in items],
    }
