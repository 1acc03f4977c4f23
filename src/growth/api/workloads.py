"""Workloads: who makes pods, how many, and from which template."""

import datetime as dt
from typing import Final

from growth.api.kinds import Kind
from growth.api.meta import Condition, LabelSelector, ObjectMeta, Struct
from growth.api.pods import PodTemplateSpec
from growth.api.volumes import PersistentVolumeClaim


class DeploymentSpec(Struct, frozen=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()
    paused: bool = False


class DeploymentStatus(Struct, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    updated_replicas: int = 0


class Deployment(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class ReplicaSetSpec(Struct, frozen=True):
    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()


class ReplicaSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class ReplicaSet(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()


class StatefulSetSpec(Struct, frozen=True):
    """Each pod gets its own claim of every template, named `<template>-<set>-<ordinal>`."""

    replicas: int = 1
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()
    pod_management_policy: str = ""


class StatefulSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0


class StatefulSet(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class DaemonSetSpec(Struct, frozen=True):
    selector: LabelSelector = LabelSelector()
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSetStatus(Struct, frozen=True):
    observed_generation: int = 0
    desired_number_scheduled: int = 0
    current_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class JobSpec(Struct, frozen=True):
    """`completions` None: the work is done when one pod succeeds, and `parallelism` pods run at a time."""

    parallelism: int = 1
    completions: int | None = None
    completion_mode: str = ""
    backoff_limit: int | None = None
    suspend: bool = False
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Struct, frozen=True):
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    start_time: dt.datetime | None = None
    completion_time: dt.datetime | None = None
    conditions: tuple[Condition, ...] = ()


class Job(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    schedule: str = ""
    time_zone: str = ""
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: CronJobSpec = CronJobSpec()


DEPLOYMENT: Final = Kind("apps", "v1", "Deployment", "deployments", namespaced=True, type=Deployment)
REPLICA_SET: Final = Kind("apps", "v1", "ReplicaSet", "replicasets", namespaced=True, type=ReplicaSet)
STATEFUL_SET: Final = Kind("apps", "v1", "StatefulSet", "statefulsets", namespaced=True, type=StatefulSet)
DAEMON_SET: Final = Kind("apps", "v1", "DaemonSet", "daemonsets", namespaced=True, type=DaemonSet)
JOB: Final = Kind("batch", "v1", "Job", "jobs", namespaced=True, type=Job)
CRON_JOB: Final = Kind("batch", "v1", "CronJob", "cronjobs", namespaced=True, type=CronJob)
