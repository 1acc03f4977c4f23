"""Situations read from manifests: machines with their claims and pods, as `growth plan` and the controllers see them."""

import dataclasses
import datetime as dt
from collections.abc import Mapping
from typing import Any

import msgspec

from growth.api import names
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.policy import PodDisruptionBudget
from growth.cli.manifests.collection import Collection
from growth.cli.manifests.documents import Document, Place
from growth.cluster import hashes
from growth.cluster.assemble import pictured
from growth.cluster.shapes import CachedPod
from growth.planning.disruption.model import Situation
from growth.planning.disruption.situating import Facts, situated
from growth.providers.catalogues import builtin
from tests import manifests
from tests.unit.planning.disrupting import NOW

QUIET = Facts(quiet_seconds=86_400.0)
SMALL, LARGE = "c-2x-amd64-linux", "c-16x-amd64-linux"


def pool(
    name: str = "default", *, types: tuple[str, ...] = (), terms: tuple[str, ...] = ("on-demand",), **spec: Any
) -> Json:
    """Open budgets and no wait, unless the test says otherwise."""
    made = manifests.node_pool(name)
    wanted = [manifests.need(names.INSTANCE_TYPE_LABEL, "In", *types)] if types else []
    wanted += [manifests.need(names.CAPACITY_TYPE_LABEL, "In", *terms), manifests.AMD64, manifests.LINUX]
    made["spec"]["template"]["spec"]["requirements"] = spec.pop("requirements", wanted)
    made["metadata"] |= spec.pop("metadata", {})
    made["spec"]["template"]["spec"] |= spec.pop("template", {})
    disruption = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], **spec.pop("disruption", {})}
    made["spec"] |= {"disruption": disruption, **spec}
    return made


def pods(number: int, *, on: str, cpu: str | int = 1, memory: str = "100Mi", **more: Any) -> list[Json]:
    """Running pods of a ReplicaSet of the node's own name."""
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return [
        manifests.pod(
            f"{on}-{at}",
            metadata={**manifests.owned_by("ReplicaSet", on), "uid": f"{on}-{at}", "labels": {"app": on}, **more},
            status=running,
            cpu=cpu,
            memory=memory,
            nodeName=on,
        )
        for at in range(number)
    ]


def machine(
    name: str,
    kind: str = LARGE,
    *,
    of: Json | str = "default",
    terms: str = "on-demand",
    age: float = 86_400.0,
    zone: str = "test-zone-a",
    conditions: tuple[str, ...] = ("Launched", "Registered", "Initialized"),
    annotations: Json | None = None,
    taints: tuple[Json, ...] = (),
    ready: bool = True,
    **spec: Any,
) -> list[Json]:
    """A node and its claim. With the pool's manifest as `of` it carries the hash of that pool."""
    named = of if isinstance(of, str) else of["metadata"]["name"]
    stamp = {} if isinstance(of, str) else hashes.stamp(msgspec.convert(of, NodePool))
    created = (NOW - dt.timedelta(seconds=age)).isoformat().replace("+00:00", "Z")
    labels = {
        names.NODE_POOL_LABEL: named,
        names.INSTANCE_TYPE_LABEL: kind,
        names.ZONE_LABEL: zone,
        names.CAPACITY_TYPE_LABEL: terms,
        names.ARCH_LABEL: "amd64",
        names.OS_LABEL: "linux",
    }
    told = [{"type": each, "status": "True", "lastTransitionTime": created, "reason": each} for each in conditions]
    initialized = "Initialized" in conditions
    marks = {names.REGISTERED_LABEL: "true", **({names.INITIALIZED_LABEL: "true"} if initialized else {})}
    cpu = int(kind.split("-")[1].removesuffix("x")) if kind.count("-") == 3 else 4
    room = {"cpu": f"{cpu * 1000 - 100}m", "memory": f"{cpu * 2}Gi", "pods": str(cpu * 16)}
    return [
        manifests.claim(
            name,
            labels=labels,
            metadata={"annotations": {**stamp, **(annotations or {})}, "creationTimestamp": created, "uid": name},
            status={
                "providerID": f"kwok://{name}",
                "nodeName": name,
                "capacity": room,
                "allocatable": room,
                "conditions": told,
            },
            **spec,
        ),
        manifests.node(
            name,
            labels={**labels, **marks, names.HOSTNAME_LABEL: name},
            provider=f"kwok://{name}",
            metadata={"annotations": annotations or {}, "creationTimestamp": created},
            status={
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            },
            taints=list(taints),
        ),
    ]


def cluster(
    *objects: Json | list[Json],
    facts: Mapping[str, Facts] | None = None,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    now: dt.datetime = NOW,
    **more: Any,
) -> Situation:
    """Every node has been quiet for a day unless `facts` says otherwise."""
    collection = Collection()
    flat = [each for item in objects for each in (item if isinstance(item, list) else [item])]
    for number, each in enumerate(flat, start=1):
        collection.add(Document(Place("test.yaml", number), each["apiVersion"], each["kind"], each))
    collected = collection.finished()
    by_node: dict[str, list[CachedPod]] = {}
    for pod in collected.objects.pods:
        by_node.setdefault(pod.node_name, []).append(pod)
    known = {node.metadata.name: QUIET for node in collected.objects.nodes}
    picture = pictured(collected.objects, builtin("kwok"), now=now)
    return situated(
        dataclasses.replace(picture, overlays=collected.overlays),
        facts={**known, **(facts or {})},
        pods=by_node,
        disruption_budgets=(*collected.disruption_budgets, *budgets),
        **more,
    )
