"""One step of draining a node: who is asked to leave now, who is made to, and who is still waited for.

Pods leave in four tiers, each begun when the one before is gone: ordinary pods, DaemonSets' pods, critical pods,
critical DaemonSets' pods. Where the claim has a deadline, a pod is deleted by force when no more than its own grace is
left, whatever its tier; then neither budgets nor annotations protect it.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, key_of, of_daemon_set
from growth.planning import occupants

_CRITICAL: Final = frozenset({"system-cluster-critical", "system-node-critical"})

# What the API server gives a pod that does not say.
DEFAULT_GRACE_SECONDS: Final = 30
# With no grace at all the API would forget a pod that still runs.
LEAST_GRACE_SECONDS: Final = 1


@dataclasses.dataclass(frozen=True, slots=True)
class Forced:
    """A pod that is deleted past budgets and annotations, with what is left of its grace."""

    pod: CachedPod
    grace_seconds: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DrainStep:
    """`waiting` are all pods that must be gone before the node is drained; `protected` those whom nobody may evict yet."""

    evict: tuple[CachedPod, ...] = ()
    force: tuple[Forced, ...] = ()
    waiting: tuple[CachedPod, ...] = ()
    protected: tuple[CachedPod, ...] = ()

    @property
    def drained(self) -> bool:
        return not self.waiting


def drain_step(pods: Iterable[CachedPod], *, now: dt.datetime, deadline: dt.datetime | None) -> DrainStep:
    """What to do with the pods of a node that goes, as of now; `deadline` None: as long as it takes."""
    waiting = sorted((pod for pod in pods if not is_done(pod) and occupants.drainable(pod, now)), key=key_of)
    force = _forced(waiting, now=now, deadline=deadline) if deadline is not None else ()
    hurried = {each.pod.uid for each in force}
    tier = next((tier for tier in tiers(waiting) if tier), ())
    return DrainStep(
        evict=tuple(pod for pod in tier if pod.uid not in hurried and occupants.evictable(pod, now)),
        force=force,
        waiting=tuple(waiting),
        protected=tuple(pod for pod in tier if occupants.active(pod) and occupants.protection(pod, now).holds),
    )


def tiers(pods: Iterable[CachedPod]) -> tuple[tuple[CachedPod, ...], ...]:
    """The four, in the order in which they leave."""
    found: tuple[list[CachedPod], ...] = ([], [], [], [])
    for pod in pods:
        critical = pod.shape.spec.priority_class_name in _CRITICAL
        found[2 * critical + of_daemon_set(pod)].append(pod)
    return tuple(tuple(tier) for tier in found)


def _forced(waiting: Sequence[CachedPod], *, now: dt.datetime, deadline: dt.datetime) -> tuple[Forced, ...]:
    found = (forced(pod, now=now, deadline=deadline) for pod in waiting)
    return tuple(each for each in found if each is not None)


def forced(pod: CachedPod, *, now: dt.datetime, deadline: dt.datetime) -> Forced | None:
    """The pod, where it must begin to leave now to be gone at the deadline; None where it has time, or leaves already."""
    own = pod.shape.spec.termination_grace_period_seconds
    own = DEFAULT_GRACE_SECONDS if own is None else own
    if now < deadline - dt.timedelta(seconds=own):
        return None
    left = max(LEAST_GRACE_SECONDS, int((deadline - now).total_seconds()))
    if pod.deleting is not None and (pod.deleting <= deadline or (pod.deletion_grace_seconds or 0) <= left):
        return None  # it ends in time, or has been hurried as far as can be
    return Forced(pod, left)
