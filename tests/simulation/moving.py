"""Moves on a stage: machines with pods that could be had cheaper, and who brings up what is bought for them."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json, Kind
from growth.api.moves import Intent, annotation
from growth.api.nodes import NODE
from growth.kube.memory import MemoryApi
from tests.simulation.ending import CLASS_LABEL, add_owned, add_pod
from tests.simulation.owning import Stage

ALL: Json = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]}
LARGE = "c-16x-amd64-linux"
REQUIREMENTS = [
    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
    {"key": names.CAPACITY_TYPE_LABEL, "operator": "In", "values": ["on-demand"]},
]


async def add_ready_pool(stage: Stage, name: str = "default", **spec: Any) -> NodePool:
    """A pool in which machines can be bought."""
    template = {"requirements": REQUIREMENTS, **spec.pop("template", {})}
    pool = await stage.add_pool(name, template=template, **{"disruption": ALL, **spec})
    ready = {"type": "Ready", "status": "True", "reason": "Ready", "lastTransitionTime": "2030-01-07T08:00:00Z"}
    status = {"conditions": [{**ready, "message": ""}]}
    return await stage.admin.patch(NODE_POOL, pool.metadata.name, {"status": status}, subresource="status")


async def add_large(
    stage: Stage,
    name: str = "web-1",
    *,
    pool: NodePool,
    cpu: str = "1",
    pods: int = 1,
    selector: Mapping[str, str] | None = None,
) -> None:
    """A large machine with a few small pods on it: a small one would do."""
    await add_owned(stage, name, pool=pool)
    node = f"node-of-{name}"
    await stage.admin.patch(NODE, node, {"metadata": {"labels": {names.INSTANCE_TYPE_LABEL: LARGE}}})
    has = {"cpu": "15900m", "memory": "30Gi", "pods": "256"}
    await stage.admin.patch(NODE, node, {"status": {"allocatable": has, "capacity": has}}, subresource="status")
    for number in range(pods):
        await add_pod(
            stage,
            f"on-{name}-{number}",
            node=node,
            owner="StatefulSet",
            containers=[{"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu}}}],
            nodeSelector=dict(selector or {}),
        )


async def drift(stage: Stage, name: str) -> None:
    """The claim is marked as drifted, whatever is true of it."""
    await _add_condition(stage, name, names.DRIFTED, reason="NodePoolDrifted")


async def mark(stage: Stage, name: str) -> None:
    """What a process that died has left on a node and its claim."""
    taint = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
    await stage.set_taints(f"node-of-{name}", [taint])
    await _add_condition(stage, name, names.DISRUPTION_REASON, reason="Drifted")


async def _add_condition(stage: Stage, name: str, type_: str, *, reason: str) -> None:
    raw = await stage.admin.get(NODE_CLAIM.raw, name)
    when = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    condition = {"type": type_, "status": "True", "reason": reason, "message": "", "lastTransitionTime": when}
    conditions = [*raw["status"]["conditions"], condition]
    await stage.admin.patch(NODE_CLAIM, name, {"status": {"conditions": conditions}}, subresource="status")


async def add_replacement(
    stage: Stage, name: str, *, pool: NodePool, replaces: str = "web-1", group: Sequence[str] = ()
) -> None:
    """A claim that was bought for a move."""
    intent = Intent(reason="Drifted", at=stage.env.clock.now(), group=tuple(group) or (name,))
    annotations = {names.REPLACES_ANNOTATION: replaces, **annotation(intent)}
    await stage.add_claim(name, pool=pool, annotations=annotations)
    if group:
        await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"finalizers": None}})


async def claims(stage: Stage) -> dict[str, NodeClaim]:
    """The claims that nobody has deleted, by name."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return {each.metadata.name: each for each in listed if each.metadata.deletion_timestamp is None}


async def coming(stage: Stage) -> list[str]:
    """Names of the claims that replace others."""
    return sorted(
        name for name, each in (await claims(stage)).items() if names.REPLACES_ANNOTATION in each.metadata.annotations
    )


async def tainted(stage: Stage) -> list[str]:
    listed = (await stage.admin.list(NODE)).items
    return sorted(
        each.metadata.name for each in listed if any(taint.key == names.DISRUPTED_TAINT for taint in each.spec.taints)
    )


async def disrupted(stage: Stage) -> list[str]:
    """Claims that say why they are being disrupted."""
    return sorted(
        name for name, each in (await claims(stage)).items() if is_true(each.status.conditions, names.DISRUPTION_REASON)
    )


async def bring_up(stage: Stage, name: str) -> None:
    """The claim's machine comes, registers and is initialised."""
    claim = await stage.claim(name)
    (wanted,) = [each.values for each in claim.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL]
    kind = next(each for each in stage.cloud.sold.types if each.name == wanted[0])
    labels = {
        **claim.metadata.labels,
        CLASS_LABEL: "default",
        names.REGISTERED_LABEL: "true",
        names.INITIALIZED_LABEL: "true",
        names.INSTANCE_TYPE_LABEL: kind.name,
        names.ZONE_LABEL: "test-zone-a",
        names.CAPACITY_TYPE_LABEL: "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
    }
    machine = await stage.cloud.create(claim)
    has = {"cpu": f"{kind.allocatable['cpu']}m", "memory": str(kind.allocatable["memory"]), "pods": "64"}
    node = await stage.join(
        f"node-of-{name}", provider_id=machine.provider_id, labels=labels, taints=(), allocatable=has
    )
    when = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
    conditions = [
        {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": when}
        for each in (names.LAUNCHED, names.REGISTERED, names.INITIALIZED, names.READY)
    ]
    status = {"providerID": machine.provider_id, "nodeName": node.metadata.name, "conditions": conditions}
    await stage.admin.patch(NODE_CLAIM, name, {"metadata": {"labels": labels}})
    await stage.admin.patch(NODE_CLAIM, name, {"status": status}, subresource="status")


async def until_coming(stage: Stage, *, number: int = 1, seconds: int = 120) -> list[str]:
    """Waits until so many replacements have been created."""
    for _ in range(seconds):
        await asyncio.sleep(1)
        found = await coming(stage)
        if len(found) >= number:
            return found
    raise AssertionError(f"no replacement was created within {seconds} s")


class Recording:
    """An API that remembers the writes that matter to a move, in their order."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch(self, kind: Kind[Any], name: str, patch: Any, **more: Any) -> Any:
        answer = await self._api.patch(kind, name, patch, **more)
        if kind.kind == "Node" and "taints" in patch.get("spec", {}):
            self.done.append(f"{'taint' if patch['spec']['taints'] else 'untaint'} {name}")
        if kind.kind == "NodeClaim" and "conditions" in patch.get("status", {}):
            self.done.append(f"condition {name}")
        return answer

    async def create(self, kind: Kind[Any], body: Any, **more: Any) -> Any:
        answer = await self._api.create(kind, body, **more)
        if kind.kind == "NodeClaim":
            self.done.append("create")
        return answer

    async def delete(self, kind: Kind[Any], name: str, **more: Any) -> Any:
        await self._api.delete(kind, name, **more)
        if kind.kind == "NodeClaim":
            self.done.append(f"delete {name}")
