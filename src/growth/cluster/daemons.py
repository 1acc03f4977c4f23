"""Sample pods of DaemonSets: what each of them will put on a new node."""

import datetime as dt
from collections.abc import Iterable
from typing import Final

import msgspec

from growth.api import names
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE, Toleration
from growth.api.pods import Pod
from growth.api.workloads import DaemonSet
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import of_daemon_set

# What the DaemonSet controller lets its pods tolerate besides what their template says.
_TOLERATIONS: Final = (
    Toleration(key=names.NOT_READY_TAINT, operator="Exists", effect=NO_EXECUTE),
    Toleration(key=names.UNREACHABLE_TAINT, operator="Exists", effect=NO_EXECUTE),
    Toleration(key="node.kubernetes.io/disk-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key="node.kubernetes.io/memory-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key="node.kubernetes.io/pid-pressure", operator="Exists", effect=NO_SCHEDULE),
    Toleration(key=names.UNSCHEDULABLE_TAINT, operator="Exists", effect=NO_SCHEDULE),
)
_HOST_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable", operator="Exists", effect=NO_SCHEDULE
)

_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


def owner_key(pod: CachedPod) -> tuple[str, str] | None:
    """Namespace and name of the DaemonSet that made the pod; None for other pods."""
    return (pod.namespace, pod.owner.name) if pod.owner is not None and of_daemon_set(pod) else None


def newer(one: CachedPod, other: CachedPod | None) -> bool:
    """Whether `one` was made after `other`; names decide between pods of one second."""
    return other is None or _age(one) > _age(other)


def newest_pods(pods: Iterable[CachedPod]) -> dict[tuple[str, str], CachedPod]:
    """By DaemonSet, the pod that tells best what its next one will ask for."""
    found: dict[tuple[str, str], CachedPod] = {}
    for pod in pods:
        key = owner_key(pod)
        if key is not None and newer(pod, found.get(key)):
            found[key] = pod
    return found


def sample(daemon_set: DaemonSet, newest: CachedPod | None) -> Pod:
    """A pod as the DaemonSet's controller would make it; what it requests is as in its newest pod, if it has one."""
    template = daemon_set.spec.template
    spec = template.spec
    if newest is not None:
        running = newest.shape.spec
        spec = msgspec.structs.replace(
            spec,
            containers=running.containers,
            init_containers=running.init_containers,
            resources=running.resources,
            overhead=running.overhead,
        )
    added = (*_TOLERATIONS, _HOST_NETWORK_TOLERATION) if spec.host_network else _TOLERATIONS
    spec = msgspec.structs.replace(spec, tolerations=(*spec.tolerations, *added))
    meta = daemon_set.metadata
    return Pod(metadata=msgspec.structs.replace(template.metadata, name=meta.name, namespace=meta.namespace), spec=spec)


def _age(pod: CachedPod) -> tuple[dt.datetime, str]:
    return (pod.created or _LONG_AGO, pod.name)
