"""Builders of manifests: the smallest object that is still one, and whatever a test wants to say about it."""

import json
import pathlib
from typing import Any

from growth.api.kinds import Json

KWOK_CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}


def meta(name: str, **more: Any) -> Json:
    return {"name": name, **more}


def pod_spec(
    *, cpu: str | int = "100m", memory: str | int = "128Mi", requests: Json | None = None, **spec: Any
) -> Json:
    """Devices are requested with a limit, as servers demand."""
    resources: Json = {"requests": {"cpu": cpu, "memory": memory, **(requests or {})}}
    if requests:
        resources["limits"] = requests
    return {"containers": [{"name": "main", "image": "example/app", "resources": resources}], **spec}


def pod(
    name: str, *, namespace: str = "default", metadata: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta(name, namespace=namespace), **(metadata or {})},
        "spec": pod_spec(**spec),
        "status": status or {},
    }


def owned_by(kind: str, name: str) -> Json:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{kind}-{name}", "controller": True}
    return {"ownerReferences": [owner]}


def workload(kind: str, name: str, *, template: Json | None = None, labels: Json | None = None, **spec: Any) -> Json:
    version = "batch/v1" if kind in {"Job", "CronJob"} else "apps/v1"
    inner = {"metadata": {"labels": labels or {"app": name}}, "spec": template or pod_spec()}
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": meta(name, namespace="default"),
        "spec": {"selector": {"matchLabels": labels or {"app": name}}, "template": inner, **spec},
    }


def node_pool(
    name: str = "default",
    *requirements: Json,
    metadata: Json | None = None,
    template: Json | None = None,
    labels: Json | None = None,
    status: Json | None = None,
    **spec: Any,
) -> Json:
    inner = {"nodeClassRef": KWOK_CLASS, "requirements": [*requirements, ON_DEMAND, AMD64, LINUX], **(template or {})}
    outer: Json = {"spec": inner, **({"metadata": {"labels": labels}} if labels else {})}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {**meta(name), **(metadata or {})},
        "spec": {"template": outer, **spec},
        "status": status or {},
    }


def growth_pool(
    name: str = "default", *types: Json, metadata: Json | None = None, status: Json | None = None, **spec: Any
) -> Json:
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {**meta(name), **(metadata or {})},
        "spec": {"serverTypes": list(types) or [{"name": "cx33", "max": 10}], **spec},
        "status": status or {},
    }


def need(key: str, operator: str, *values: str, **more: Any) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **more}


ON_DEMAND = need("karpenter.sh/capacity-type", "In", "on-demand")
AMD64 = need("kubernetes.io/arch", "In", "amd64")
LINUX = need("kubernetes.io/os", "In", "linux")


def node(
    name: str,
    *,
    labels: Json | None = None,
    cpu: str = "4",
    memory: str = "16Gi",
    provider: str = "",
    status: Json | None = None,
    metadata: Json | None = None,
    **spec: Any,
) -> Json:
    room = {"cpu": cpu, "memory": memory, "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {**meta(name, labels=labels or {}), **(metadata or {})},
        "spec": {**({"providerID": provider} if provider else {}), **spec},
        "status": {"capacity": room, "allocatable": room, **(status or {})},
    }


def claim(
    name: str,
    *requirements: Json,
    labels: Json | None = None,
    status: Json | None = None,
    metadata: Json | None = None,
    **spec: Any,
) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {**meta(name, labels=labels or {}), **(metadata or {})},
        "spec": {"nodeClassRef": KWOK_CLASS, "requirements": list(requirements), **spec},
        "status": status or {},
    }


def overlay(name: str, *requirements: Json, **spec: Any) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "NodeOverlay",
        "metadata": meta(name),
        "spec": {"requirements": list(requirements), **spec},
    }


def written(folder: pathlib.Path, *objects: Json, name: str = "objects.json") -> str:
    """The path of a file with the objects as a List."""
    path = folder / name
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)
