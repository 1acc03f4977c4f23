"""Workloads."""

from growth.kube.memory.resources import Generation, Resource, ScalePaths, Strategy


class WorkloadStrategy(Strategy):
    status = True
    generation = Generation.SPEC


RESOURCES = (
    Resource(
        "apps",
        "v1",
        "Deployment",
        "deployments",
        True,
        WorkloadStrategy(),
        "deployment",
        ("deploy",),
        ("all",),
        ScalePaths(),
    ),
    Resource(
        "apps",
        "v1",
        "ReplicaSet",
        "replicasets",
        True,
        WorkloadStrategy(),
        "replicaset",
        ("rs",),
        ("all",),
        ScalePaths(),
    ),
    Resource(
        "apps",
        "v1",
        "StatefulSet",
        "statefulsets",
        True,
        WorkloadStrategy(),
        "statefulset",
        ("sts",),
        ("all",),
        ScalePaths(),
    ),
    Resource("apps", "v1", "DaemonSet", "daemonsets", True, WorkloadStrategy(), "daemonset", ("ds",), ("all",)),
    Resource("batch", "v1", "Job", "jobs", True, WorkloadStrategy(), "job", (), ("all",)),
    Resource("batch", "v1", "CronJob", "cronjobs", True, WorkloadStrategy(), "cronjob", ("cj",), ("all",)),
)
