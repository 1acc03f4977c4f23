"""What must be true before Growth acts in a cluster. Each refusal is one line: what, where, what to do."""

import hashlib
from collections.abc import Collection
from typing import Any, Final

from growth.api import names
from growth.api.coordination import LEASE, Lease
from growth.api.core import NAMESPACE
from growth.api.decisions import DECISION
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.pods import POD
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.ports import Clock

KUBE_SYSTEM: Final = "kube-system"
# Karpenter renews every two seconds; one that has been silent for this long is not there any more.
SILENT_SECONDS: Final = 60.0
RUNNING_KARPENTER: Final = f"{names.APP_NAME_LABEL}=karpenter"


class Refused(Exception):
    """Growth does not start here; the message says why and what to do."""


async def identity_of(api: Api) -> str:
    """The cluster's identity in a cloud: a hash of the UID of kube-system, which no two clusters share."""
    namespace = await api.get(NAMESPACE, KUBE_SYSTEM)
    return hashlib.sha256(namespace.metadata.uid.encode()).hexdigest()[:10]


async def check_home(api: Api, namespace: str, *, observe: bool) -> None:
    """Growth's own namespace is there, and so are the kinds that it cannot work without.

    Without Decisions it can act, but who only observes writes nothing else, and keeps nothing in the namespace.
    """
    if not observe:
        await _check_namespace(api, namespace)
    kinds: tuple[Kind[Any], ...] = (NODE_POOL, NODE_CLAIM, *((DECISION,) if observe else ()))
    for kind in kinds:
        try:
            await api.list(kind, limit=1)
        except NotFound:
            raise Refused(
                f"the cluster does not serve {kind}: install the definitions with `growth crds | kubectl apply -f -`"
            ) from None


async def _check_namespace(api: Api, namespace: str) -> None:
    try:
        await api.get(NAMESPACE, namespace)
    except NotFound:
        raise Refused(
            f"there is no namespace {namespace}, where Growth keeps its Lease and ConfigMaps: "
            f"make it with `kubectl create namespace {namespace}`, or name another with --namespace"
        ) from None


async def check_alone(api: Api, *, clock: Clock, provider: str, served: Collection[Kind[Any]]) -> None:
    """Nobody else manages the pools that we would: `Refused` while a Karpenter is at work and a pool is of our kind."""
    evidence = await _karpenter(api, clock)
    if not evidence:
        return
    ours = {(kind.group, kind.kind) for kind in served}
    page = ""
    while True:
        pools = await api.list(NODE_POOL, limit=500, page=page)
        for pool in pools.items:
            reference = pool.spec.template.spec.node_class_ref
            if (reference.group, reference.kind) in ours:
                raise Refused(
                    f"Karpenter is at work in this cluster ({evidence}) and NodePool {pool.metadata.name} is of "
                    f"{reference.kind}, which --provider {provider} serves: two autoscalers would own the same machines; "
                    "stop Karpenter first, or look on with --observe"
                )
        page = pools.next
        if not page:
            return


async def _karpenter(api: Api, clock: Clock) -> str:
    """How we know that a Karpenter is at work; empty when none is."""
    leases = await api.list(LEASE, fields=f"metadata.name={names.KARPENTER_LEADER_LEASE}")
    for lease in leases.items:
        age = _age(lease, clock)
        if age is not None and age < SILENT_SECONDS:
            return f"Lease {lease.metadata.namespace}/{lease.metadata.name} was renewed {max(0.0, age):.0f} s ago"
    pods = await api.list(POD, labels=RUNNING_KARPENTER, fields="status.phase=Running", limit=1)
    for pod in pods.items:
        return f"Pod {pod.metadata.namespace}/{pod.metadata.name} is Running"
    return ""


def _age(lease: Lease, clock: Clock) -> float | None:
    renewed = lease.spec.renew_time
    return None if renewed is None else (clock.now() - renewed).total_seconds()
