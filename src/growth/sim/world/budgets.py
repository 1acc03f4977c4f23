"""The disruption controller: keeps the status of PodDisruptionBudgets, by which the server grants evictions.

As kube-controller-manager: a percentage of minAvailable or maxUnavailable is of the pods that their controllers want, and
rounds up; a count of minAvailable needs no controller. A pod whose eviction was granted is not counted as healthy until
it is gone or two minutes have passed. Scale of controllers other than ReplicaSets, StatefulSets and Deployments is not
known here: a budget that would need it allows nothing, and neither does one that says no number, for which no pods are expected.
"""

import math
from collections.abc import Iterable
from typing import Final

from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.api.policy import POD_DISRUPTION_BUDGET, PodDisruptionBudget
from growth.kube.api import Api
from growth.kube.queue import WorkQueue
from growth.kube.store import Change, Deleted, Key
from growth.ports import Clock, Random
from growth.sim.predicates.among_pods import selects as matches
from growth.sim.world.keeping import keep_all
from growth.sim.world.templates import is_ready
from growth.sim.world.view import View

# A granted eviction whose pod is still there after this long is taken as not done.
GRANTED_SECONDS: Final = 120.0


class Budgets:
    """`run` keeps the budgets' status until cancelled."""

    def __init__(self, api: Api, view: View, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._budgets = view.budgets
        self._pods = view.pods
        self._scales = view.scales
        self._queue: WorkQueue[Key] = WorkQueue(random)
        self._budgets.subscribe(lambda change: self._queue.add(change.key))
        self._pods.subscribe(self._on_pod)

    def _on_pod(self, change: Change[Pod]) -> None:
        for key, budget in self._budgets.store.items():
            if key[0] == change.key[0]:
                states = (change.old,) if isinstance(change, Deleted) else (change.new,)
                if any(selects(budget, pod) for pod in states):
                    self._queue.add(key)

    async def run(self) -> None:
        await keep_all(self._view, self._queue, self._keep)

    async def _keep(self, key: Key) -> None:
        raw = self._budgets.store.get(key[1], key[0])
        if raw is None:
            return
        pods = [pod for pod in self._pods.store.find("namespace", key[0]) if selects(raw, pod) and _counts(pod)]
        now = self._clock.now()
        granted = {
            name: at
            for name, at in raw.status.disrupted_pods.items()
            if (now - at).total_seconds() < GRANTED_SECONDS and any(pod.metadata.name == name for pod in pods)
        }
        healthy = sum(is_ready(pod) and pod.metadata.name not in granted and not _going(pod) for pod in pods)
        expected, desired = self._desired(raw, pods)
        allowed = max(0, healthy - desired) if expected > 0 else 0
        status = {
            "observedGeneration": raw.metadata.generation,
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
        }
        old = raw.status
        if granted:
            self._queue.add_after(key, GRANTED_SECONDS)
        told = (old.observed_generation, old.disruptions_allowed, old.current_healthy, old.desired_healthy)
        if (*told, old.expected_pods) == tuple(status.values()) and granted == old.disrupted_pods:
            return
        gone: dict[str, str | None] = {name: None for name in old.disrupted_pods if name not in granted}
        body: Json = {"status": {**status, "disruptedPods": gone} if gone else status}
        await self._api.patch(
            POD_DISRUPTION_BUDGET,
            key[1],
            body,
            namespace=key[0],
            subresource="status",
            revision=raw.metadata.resource_version,
        )

    def _desired(self, budget: PodDisruptionBudget, pods: list[Pod]) -> tuple[int, int]:
        """How many pods there should be, and how many of them must stay healthy."""
        spec = budget.spec
        if spec.max_unavailable is not None:
            expected = self._wanted(pods)
            return expected, max(0, expected - _of(spec.max_unavailable, expected))
        if isinstance(spec.min_available, str):
            expected = self._wanted(pods)
            return expected, _of(spec.min_available, expected)
        if spec.min_available is not None:
            return len(pods), spec.min_available
        return 0, 0

    def _wanted(self, pods: Iterable[Pod]) -> int:
        """What the pods' controllers ask for in sum; 0, and so no eviction, where one is not known."""
        total = 0
        seen: set[str] = set()
        for pod in pods:
            owner = next((each for each in pod.metadata.owner_references if each.controller), None)
            if owner is None or owner.kind not in self._scales:
                return 0
            if owner.uid in seen:
                continue
            seen.add(owner.uid)
            found = self._scales[owner.kind].store.get(owner.name, pod.metadata.namespace)
            if found is None:
                return 0
            total += int(found.spec.replicas)
        return total


def selects(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget speaks of the pod."""
    selector = budget.spec.selector
    if selector is None or budget.metadata.namespace != pod.metadata.namespace:
        return False
    return matches(selector, pod.metadata.labels)


def _counts(pod: Pod) -> bool:
    return pod.status.phase not in {"Succeeded", "Failed"}


def _going(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None


def _of(asked: int | str, total: int) -> int:
    """A count, or a percentage of the total, rounded up."""
    if isinstance(asked, int):
        return asked
    return math.ceil(int(asked.rstrip("%")) * total / 100)
