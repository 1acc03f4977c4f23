"""How long pods take on their way to a node and to readiness, under Karpenter's names.

Durations from a pod's creation are taken from the server's times; those from our first plan for it are our own, and begin
anew with the process.
"""

import datetime as dt
from collections.abc import Iterable, Iterator
from typing import Final

from growth.api import names
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, wants_machine
from growth.controllers.environment import Environment
from growth.kube.store import Change, Deleted, Key
from growth.telemetry.metrics import Declaration, Gauge, Histogram, Reading, Summary

_POD: Final = ("name", "namespace")

STATE: Final = Gauge(
    "karpenter_pods_state",
    "The current state of pods. In clusters of many pods only of those that are not ready.",
    labels=(
        *("name", "namespace", "owner", "node", "scheduled", "nodepool", "zone", "arch", "capacity_type"),
        *("instance_type", "phase", "ready", "managed"),
    ),
)
STARTUP: Final = Summary(
    "karpenter_pods_startup_duration_seconds", "The time from pod creation until the pod is running."
)
BOUND: Final = Histogram("karpenter_pods_bound_duration_seconds", "The time from pod creation until the pod is bound.")
PROVISIONING_BOUND: Final = Histogram(
    "karpenter_pods_provisioning_bound_duration_seconds",
    "The time from the first plan that has a place for the pod until it is bound.",
)
PROVISIONING_STARTUP: Final = Histogram(
    "karpenter_pods_provisioning_startup_duration_seconds",
    "The time from the first plan that has a place for the pod until it is running.",
)
DECISION: Final = Histogram(
    "karpenter_pods_scheduling_decision_duration_seconds",
    "The time from when a pod is first seen waiting until it is first planned for.",
)
UNSTARTED: Final = Gauge(
    "karpenter_pods_unstarted_time_seconds", "The time since the creation of pods that do not run yet.", labels=_POD
)
UNBOUND: Final = Gauge(
    "karpenter_pods_unbound_time_seconds", "The time since the creation of pods that are not bound yet.", labels=_POD
)
PROVISIONING_UNBOUND: Final = Gauge(
    "karpenter_pods_provisioning_unbound_time_seconds",
    "The time since the first plan that has a place for pods that are not bound yet.",
    labels=_POD,
)
PROVISIONING_UNSTARTED: Final = Gauge(
    "karpenter_pods_provisioning_unstarted_time_seconds",
    "The time since the first plan that has a place for pods that do not run yet.",
    labels=_POD,
)
UNDECIDED: Final = Gauge(
    "karpenter_pods_provisioning_scheduling_undecided_time_seconds",
    "The time since pods were first seen waiting that have not been planned for.",
    labels=_POD,
)

METRICS: Final[tuple[Declaration, ...]] = (
    *(STATE, STARTUP, BOUND, PROVISIONING_BOUND, PROVISIONING_STARTUP, DECISION),
    *(UNSTARTED, UNBOUND, PROVISIONING_UNBOUND, PROVISIONING_UNSTARTED, UNDECIDED),
)

# Beyond so many pods a scrape of all of them would hold up everything else for a noticeable time.
MANY_PODS: Final = 5_000


class Journeys:
    """Follows pods from the moment when they are first seen waiting until they are ready or gone."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._waiting: dict[Key, float] = {}  # seen without a node, and when
        self._starting: dict[Key, CachedPod] = {}  # not ready since we know them
        self._decided: set[Key] = set()
        self._placed: dict[Key, float] = {}  # when a plan first had a place for it
        metrics = env.metrics
        metrics.read(STATE, self._states)
        metrics.read(UNSTARTED, lambda: self._ages(self._starting.values()))
        metrics.read(UNBOUND, lambda: self._ages(pod for pod in self._starting.values() if not pod.node_name))
        metrics.read(PROVISIONING_UNBOUND, lambda: self._since_placed(bound=False))
        metrics.read(PROVISIONING_UNSTARTED, lambda: self._since_placed(bound=True))
        metrics.read(UNDECIDED, self._undecided)
        env.state.pods.subscribe(self._hear)

    def planned(self, pods: Iterable[CachedPod], *, unplaced: frozenset[str]) -> None:
        """A pass has looked at these pods; those named (namespace/name) have no place."""
        now = self._env.clock.monotonic()
        for pod in pods:
            key = (pod.namespace, pod.name)
            if key in self._waiting and key not in self._decided:
                self._decided.add(key)
                self._env.metrics.observe(DECISION, now - self._waiting[key])
            if f"{pod.namespace}/{pod.name}" not in unplaced and key in self._starting:
                self._placed.setdefault(key, now)

    def _hear(self, change: Change[CachedPod]) -> None:
        key = change.key
        if isinstance(change, Deleted):
            self._forget(key)
            return
        pod = change.new
        if wants_machine(pod):
            self._waiting.setdefault(key, self._env.clock.monotonic())
        elif key in self._waiting:
            del self._waiting[key]
            self._decided.discard(key)
            if pod.node_name:
                self._bound(key, pod)
        if pod.ready:
            if self._starting.pop(key, None) is not None:
                self._started(key, pod)
            self._placed.pop(key, None)
        elif is_done(pod):
            self._forget(key)
        elif pod.phase == "Pending" or not pod.phase or key in self._starting:
            self._starting[key] = pod

    def _bound(self, key: Key, pod: CachedPod) -> None:
        metrics = self._env.metrics
        if pod.scheduled_since is not None and pod.created is not None:
            metrics.observe(BOUND, _seconds(pod.created, pod.scheduled_since))
        if key in self._placed:
            metrics.observe(PROVISIONING_BOUND, self._env.clock.monotonic() - self._placed[key])

    def _started(self, key: Key, pod: CachedPod) -> None:
        metrics = self._env.metrics
        if pod.ready_since is not None and pod.created is not None:
            metrics.observe(STARTUP, _seconds(pod.created, pod.ready_since))
        if key in self._placed:
            metrics.observe(PROVISIONING_STARTUP, self._env.clock.monotonic() - self._placed[key])

    def _forget(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._starting.pop(key, None)
        self._decided.discard(key)
        self._placed.pop(key, None)

    # What is read at a scrape.

    def _ages(self, pods: Iterable[CachedPod]) -> Reading:
        now = self._env.clock.now()
        return ((_labels(pod), _seconds(pod.created, now)) for pod in tuple(pods) if pod.created is not None)

    def _since_placed(self, *, bound: bool) -> Reading:
        now = self._env.clock.monotonic()
        placed = [(self._starting[key], at) for key, at in self._placed.items() if key in self._starting]
        return ((_labels(pod), now - at) for pod, at in placed if bound or not pod.node_name)

    def _undecided(self) -> Reading:
        now = self._env.clock.monotonic()
        waiting = [(key, at) for key, at in self._waiting.items() if key not in self._decided]
        return (({"name": name, "namespace": namespace}, now - at) for (namespace, name), at in waiting)

    def _states(self) -> Reading:
        pods = self._env.state.pods.store
        shown: Iterable[CachedPod] = pods if len(pods) <= MANY_PODS else self._starting.values()
        return self._described(tuple(shown))

    def _described(self, pods: Iterable[CachedPod]) -> Iterator[tuple[dict[str, str], float]]:
        nodes = self._env.state.nodes.store
        for pod in pods:
            node = nodes.get(pod.node_name) if pod.node_name else None
            labels = node.metadata.labels if node is not None else {}
            owner = pod.owner
            link = (
                f"/apis/{owner.api_version}/namespaces/{pod.namespace}/{owner.kind.lower()}s/{owner.name}"
                if owner
                else ""
            )
            told = {
                **_labels(pod),
                "owner": link,
                "node": pod.node_name,
                "scheduled": _word(pod.scheduled_since is not None or bool(pod.node_name)),
                "nodepool": labels.get(names.NODE_POOL_LABEL, ""),
                "zone": labels.get(names.ZONE_LABEL, ""),
                "arch": labels.get(names.ARCH_LABEL, ""),
                "capacity_type": labels.get(names.CAPACITY_TYPE_LABEL, ""),
                "instance_type": labels.get(names.INSTANCE_TYPE_LABEL, ""),
                "phase": pod.phase,
                "ready": _word(pod.ready),
                "managed": _word(names.NODE_POOL_LABEL in labels),
            }
            yield told, 1.0


def _labels(pod: CachedPod) -> dict[str, str]:
    return {"name": pod.name, "namespace": pod.namespace}


def _word(value: bool) -> str:  # noqa: FBT001 - a value, not a mode
    return "true" if value else "false"


def _seconds(since: dt.datetime, until: dt.datetime) -> float:
    return max(0.0, (until - since).total_seconds())
