"""Eviction as the real handler does it: a disruption budget is asked and its status decremented, then the pod is deleted.

The budget's status is somebody else's work (the disruption controller's); here it is only read and counted down. As on
the real server the count is taken before the deletion's preconditions are looked at, and is not given back.
"""

import dataclasses
from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.errors import ServerError, TooManyRequests
from growth.kube.memory import deletion, failures
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.deletion import DeleteOptions
from growth.kube.memory.resources import Resource
from growth.kube.memory.selectors import label_selector
from growth.kube.memory.store import Stored

BUSY_SECONDS: Final = 10  # what the server tells a client to wait while a budget is being processed
DISRUPTED_LIMIT: Final = 2000

_REFUSED: Final = "Cannot evict pod as it would violate the pod's disruption budget."


def evict(cluster: Cluster, pods: Resource, budgets: Resource, key: tuple[str, str], options: DeleteOptions) -> None:
    """Deletes the pod, or raises `TooManyRequests` when its budget forbids it."""
    stored = cluster.store.get(pods.id, key)
    if stored is None:
        raise failures.not_found(pods, key[1])
    pod = stored.object
    if not _ignores_budgets(pod):
        labels = pod["metadata"].get("labels") or {}
        concerned = [
            budget
            for budget in cluster.every(budgets.group, budgets.plural, namespace=key[0])
            if label_selector((budget.get("spec") or {}).get("selector"))(labels)
        ]
        if len(concerned) > 1:
            raise ServerError(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                reason="InternalError",
            )
        if concerned and not _unhealthy_may_go(pod, concerned[0]):
            _count_down(cluster, budgets, concerned[0], key[1])
    deletion.check_preconditions(pods, pod, options)
    _say_why(cluster, pods, key, pod)
    deletion.delete(cluster, pods, key, dataclasses.replace(options, revision=""))


def _say_why(cluster: Cluster, pods: Resource, key: tuple[str, str], pod: Json) -> None:
    """Leaves the condition by which a pod's owner knows that it was evicted."""
    status = pod.get("status") or {}
    conditions = status.get("conditions") or []
    if any(one.get("type") == "DisruptionTarget" and one.get("status") == "True" for one in conditions):
        return
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "lastProbeTime": None,
        "lastTransitionTime": cluster.now(),
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    others = [one for one in conditions if one.get("type") != "DisruptionTarget"]
    new = {**pod, "metadata": dict(pod["metadata"]), "status": {**status, "conditions": [*others, target]}}
    cluster.put(pods, key, new)


def _ignores_budgets(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in {"Succeeded", "Failed", "Pending"} or bool(pod["metadata"].get("deletionTimestamp"))


def _unhealthy_may_go(pod: Json, budget: Json) -> bool:
    """Whether a pod that is not ready may go without being counted."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired = status.get("desiredHealthy", 0)
    return bool(status.get("currentHealthy", 0) >= desired > 0)


def _refusal(message: str, retry_after_seconds: float | None = None) -> TooManyRequests:
    causes = [{"reason": "DisruptionBudget", "message": message}]
    return TooManyRequests(_REFUSED, details={"causes": causes}, retry_after_seconds=retry_after_seconds)


def _count_down(cluster: Cluster, budgets: Resource, budget: Json, pod: str) -> Stored:
    metadata, status = budget["metadata"], budget.get("status") or {}
    name = metadata["name"]
    if status.get("observedGeneration", 0) < metadata.get("generation", 0):
        raise _refusal(f"The disruption budget {name} is still being processed by the server.", BUSY_SECONDS)
    allowed = status.get("disruptionsAllowed", 0)
    disrupted = status.get("disruptedPods") or {}
    if allowed < 0:
        raise failures.forbidden(budgets, name, "pdb disruptions allowed is negative")
    if len(disrupted) > DISRUPTED_LIMIT:
        raise failures.forbidden(
            budgets, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if allowed == 0:
        desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        if current <= desired:
            raise _refusal(f"The disruption budget {name} needs {desired} healthy pods and has {current} currently")
        raise _refusal(f"The disruption budget {name} does not allow evicting pods currently")
    now = cluster.now()
    changed: dict[str, Any] = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: now}}
    if allowed == 1:
        changed["conditions"] = _not_allowed(status.get("conditions") or [], metadata.get("generation", 0), now)
    new = {**budget, "metadata": dict(metadata), "status": changed}
    return cluster.put(budgets, (metadata.get("namespace", ""), name), new)


def _not_allowed(conditions: list[Json], generation: int, now: str) -> list[Json]:
    """The conditions with DisruptionAllowed=False; the time stays when it was so before."""
    new = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    kept: list[Json] = []
    for one in conditions:
        if one.get("type") != "DisruptionAllowed":
            kept.append(one)
        elif one.get("status") == "False":
            new["lastTransitionTime"] = one.get("lastTransitionTime", now)
    return [*kept, new]
