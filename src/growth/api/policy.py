"""Disruption budgets and priorities: who may be disturbed, and who goes first."""

import datetime as dt
from typing import Final

from growth.api.kinds import Kind
from growth.api.meta import LabelSelector, ObjectMeta, Struct


class PodDisruptionBudgetSpec(Struct, frozen=True):
    """`min_available` and `max_unavailable` are counts or percentages such as «25%»; at most one of them is set.

    A `selector` that is None selects no pod, an empty one every pod of the namespace.
    """

    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Struct, frozen=True):
    """`disrupted_pods` maps pods whose eviction was granted, and that still run, to the time of it."""

    observed_generation: int = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, dt.datetime] = {}


class PodDisruptionBudget(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""


POD_DISRUPTION_BUDGET: Final = Kind(
    "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", namespaced=True, type=PodDisruptionBudget
)
PRIORITY_CLASS: Final = Kind(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, type=PriorityClass
)
