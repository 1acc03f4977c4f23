"""The pods that workloads would make and that are not there yet.

A Deployment, ReplicaSet, StatefulSet or Job is expanded to `name-<index>` pods, less those of its pods that stand in the
input themselves, so that a whole namespace can be handed over without counting anything twice. A ReplicaSet whose
Deployment is in the input too is left to it.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api.meta import ObjectMeta, OwnerReference
from growth.api.pods import PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume
from growth.api.volumes import PersistentVolumeClaim
from growth.api.workloads import Deployment, Job, ReplicaSet, StatefulSet
from growth.cluster.shapes import CachedPod

_TERMINAL: Final = frozenset({"Succeeded", "Failed"})
_HASH_LABEL: Final = "pod-template-hash"

Key = tuple[str, str, str]  # kind, namespace, name


@dataclasses.dataclass(frozen=True, kw_only=True)
class Workloads:
    """What makes pods, kind by kind."""

    deployments: Sequence[Deployment] = ()
    replica_sets: Sequence[ReplicaSet] = ()
    stateful_sets: Sequence[StatefulSet] = ()
    jobs: Sequence[Job] = ()


class Present:
    """The pods that are there, by who owns them and by name."""

    def __init__(self, pods: Sequence[CachedPod]) -> None:
        self.names = {(pod.namespace, pod.name) for pod in pods}
        self._owned: dict[Key, int] = {}
        for pod in pods:
            if pod.owner is None or pod.phase in _TERMINAL or pod.deleting is not None:
                continue
            self._count(pod.owner.kind, pod.namespace, pod.owner.name)
            if pod.owner.kind == "ReplicaSet":
                # A Deployment names its ReplicaSets after itself and the hash that their pods carry.
                suffix = f"-{pod.shape.labels.get(_HASH_LABEL, '')}"
                if len(suffix) > 1 and pod.owner.name.endswith(suffix):
                    self._count("Deployment", pod.namespace, pod.owner.name.removesuffix(suffix))

    def _count(self, *key: str) -> None:
        kind, namespace, name = key
        self._owned[kind, namespace, name] = self._owned.get((kind, namespace, name), 0) + 1

    def owned(self, kind: str, meta: ObjectMeta) -> int:
        """How many running or waiting pods the workload has."""
        return self._owned.get((kind, meta.namespace, meta.name), 0)


def missing_pods(workloads: Workloads, present: Present) -> Iterator[Pod]:
    """The pods that the workloads would still make, without their volume claims."""
    deployed = {(each.metadata.namespace, each.metadata.name) for each in workloads.deployments}
    for deployment in workloads.deployments:
        lacking = deployment.spec.replicas - present.owned("Deployment", deployment.metadata)
        yield from _made("Deployment", deployment.metadata, deployment.spec.template, lacking, present.names)
    for each in workloads.replica_sets:
        if not any(
            owner.kind == "Deployment" and (each.metadata.namespace, owner.name) in deployed
            for owner in each.metadata.owner_references
        ):
            lacking = each.spec.replicas - present.owned("ReplicaSet", each.metadata)
            yield from _made("ReplicaSet", each.metadata, each.spec.template, lacking, present.names)
    for each_set in workloads.stateful_sets:
        yield from _ordinals(each_set, present.names)
    for job in workloads.jobs:
        lacking = _active(job) - present.owned("Job", job.metadata)
        yield from _made("Job", job.metadata, job.spec.template, lacking, present.names)


def _active(job: Job) -> int:
    """How many pods the job runs at a time now."""
    done = any(each.type in {"Complete", "Failed"} and each.status == "True" for each in job.status.conditions)
    if job.spec.suspend or done:
        return 0
    if job.spec.completions is None:
        return job.spec.parallelism
    return min(job.spec.parallelism, max(0, job.spec.completions - job.status.succeeded))


def _made(
    kind: str, meta: ObjectMeta, template: PodTemplateSpec, number: int, taken: Collection[tuple[str, str]]
) -> Iterator[Pod]:
    index = 0
    while number > 0:
        name = f"{meta.name}-{index}"
        index += 1
        if (meta.namespace, name) not in taken:
            number -= 1
            yield _pod(kind, meta, template, name)


def _pod(kind: str, meta: ObjectMeta, template: PodTemplateSpec, name: str) -> Pod:
    owner = OwnerReference(
        api_version="", kind=kind, name=meta.name, uid=f"{kind}/{meta.namespace}/{meta.name}", controller=True
    )
    made = ObjectMeta(
        name=name,
        namespace=meta.namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=(owner,),
    )
    return Pod(metadata=made, spec=template.spec)


def _ordinals(each: StatefulSet, taken: Collection[tuple[str, str]]) -> Iterator[Pod]:
    meta = each.metadata
    templates = [template.metadata.name for template in each.spec.volume_claim_templates]
    for ordinal in range(each.spec.replicas):
        name = f"{meta.name}-{ordinal}"
        if (meta.namespace, name) in taken:
            continue
        pod = _pod("StatefulSet", meta, each.spec.template, name)
        if templates:
            own = [volume for volume in pod.spec.volumes if volume.name not in templates]
            own += [
                Volume(
                    name=template,
                    persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=f"{template}-{name}"),
                )
                for template in templates
            ]
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, volumes=tuple(own)))
        yield pod


def missing_claims(
    workloads: Workloads, known: Mapping[tuple[str, str], PersistentVolumeClaim]
) -> Iterator[PersistentVolumeClaim]:
    """The unbound claims that StatefulSets would make for their pods, besides those that are known."""
    for each in workloads.stateful_sets:
        for template in each.spec.volume_claim_templates:
            for ordinal in range(each.spec.replicas):
                name = f"{template.metadata.name}-{each.metadata.name}-{ordinal}"
                if (each.metadata.namespace, name) not in known:
                    meta = ObjectMeta(name=name, namespace=each.metadata.namespace, labels=template.metadata.labels)
                    yield PersistentVolumeClaim(metadata=meta, spec=template.spec)
