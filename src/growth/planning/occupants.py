"""What may and must happen to a pod when its node goes: Karpenter's rules, on what the cache keeps of the pod.

terminal      finished: holds nothing up
active        neither terminal nor terminating
reschedulable needs another node when this one goes
drainable     the drain waits until it is gone
evictable     the drain may ask the server to evict it
"""

import dataclasses
import datetime as dt
import re
from typing import Final

from growth.api import names
from growth.api.placement import NO_SCHEDULE, Taint
from growth.api.policy import PodDisruptionBudget
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, is_mirror, key_of, of_daemon_set
from growth.planning.pod_budgets import PodBudgets
from growth.planning.taints import tolerates
from growth.units import Duration, DurationError

DISRUPTED: Final = Taint(key=names.DISRUPTED_TAINT, effect=NO_SCHEDULE)

# One ordinary eviction: what costs of evictions are counted in.
ONE: Final = 1 << 27
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)

# A pod that is this long past its grace will not be ended by its kubelet any more: nobody waits for it.
STUCK: Final = dt.timedelta(minutes=1)


def active(pod: CachedPod) -> bool:
    return not is_done(pod) and pod.deleting is None


def reschedulable(pod: CachedPod) -> bool:
    """A StatefulSet's pod counts while it terminates: its successor comes only after it and will need the place."""
    if of_daemon_set(pod) or is_mirror(pod) or is_done(pod):
        return False
    return pod.deleting is None or (pod.owner is not None and pod.owner.kind == "StatefulSet")


def leaves_room(pod: CachedPod) -> bool:
    """Whether it is on its way out and nobody needs the place after it: neither a successor nor the node itself."""
    return pod.deleting is not None and not (of_daemon_set(pod) or is_mirror(pod) or is_done(pod) or reschedulable(pod))


def tolerates_disruption(pod: CachedPod) -> bool:
    """It would be bound to the node again at once."""
    return tolerates(pod.shape.spec.tolerations, DISRUPTED)


def stuck(pod: CachedPod, now: dt.datetime) -> bool:
    """Terminating for longer than its kubelet can need."""
    return pod.deleting is not None and now - pod.deleting > STUCK


def drainable(pod: CachedPod, now: dt.datetime) -> bool:
    return not tolerates_disruption(pod) and not stuck(pod, now) and not is_mirror(pod)


def evictable(pod: CachedPod, now: dt.datetime) -> bool:
    return active(pod) and not tolerates_disruption(pod) and not is_mirror(pod) and not protection(pod, now).holds


def eviction_cost(pod: CachedPod) -> int:
    """What losing the pod costs, in parts of `ONE`: an ordinary pod costs one, and none more than ten either way.

    Karpenter's 1 + cost ÷ 2²⁷ + priority ÷ 2²⁵. The cost is that of `karpenter.sh/disruption-cost`, else of Kubernetes'
    pod-deletion-cost; one that is no 32-bit integer counts as 0.
    """
    annotations = pod.annotations
    text = annotations.get(names.DISRUPTION_COST_ANNOTATION)
    if text is None:
        text = annotations.get(names.POD_DELETION_COST_ANNOTATION, "0")
    said = int(text) if _INTEGER.fullmatch(text) else 0
    cost = ONE + (said if -(1 << 31) <= said < 1 << 31 else 0) + 4 * (pod.shape.spec.priority or 0)
    return max(-10 * ONE, min(10 * ONE, cost))


def free_to_lose(pod: CachedPod) -> bool:
    """Whether its cost and priority say that losing it costs nothing: such a pod keeps no node alive."""
    return eviction_cost(pod) <= 0


@dataclasses.dataclass(frozen=True, slots=True)
class Protection:
    """What a pod's do-not-disrupt annotation means now: `until` where it ends by itself, `fault` where it is unreadable."""

    holds: bool
    until: dt.datetime | None = None
    fault: str = ""


UNPROTECTED: Final = Protection(holds=False)


def protection(pod: CachedPod, now: dt.datetime) -> Protection:
    """`true`, or a positive duration since the pod's start; `false` is as good as nothing, and anything else, which counts as
    absent too, is told.
    """
    value = pod.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION)
    if value is None or value == "false":
        return UNPROTECTED
    if value == "true":
        return Protection(holds=True)
    try:
        period = Duration.parse(value)
    except DurationError as error:
        return Protection(holds=False, fault=str(error))
    if period.nanoseconds <= 0:
        return Protection(holds=False, fault=f"the duration {value!r} must be positive")
    if pod.started is None:
        return Protection(holds=True)
    try:
        until = pod.started + period.timedelta
    except OverflowError:
        return Protection(holds=True)  # for longer than there are years to tell it in
    return Protection(holds=now < until, until=until)


def cannot_leave(pod: CachedPod, budgets: PodBudgets, now: dt.datetime) -> bool:
    """Whether no eviction will be granted before somebody changes something: do-not-disrupt, or a budget that never allows
    one. Nobody knows when such a pod will want another place. Who ends already, or is never evicted, wants it with the end of
    the node at the latest: budgets do not matter there.
    """
    if not active(pod):
        return False
    if protection(pod, now).holds:
        return True
    if tolerates_disruption(pod) or is_mirror(pod):
        return False
    matching = budgets.of(pod)
    if len(matching) > 1:
        return True
    return any(
        _never_allows(budget)
        for budget in matching
        if pod.ready or budget.spec.unhealthy_pod_eviction_policy != "AlwaysAllow"
    )


def _never_allows(budget: PodDisruptionBudget) -> bool:
    return budget.spec.max_unavailable in {0, "0", "0%"} or budget.spec.min_available == "100%"


def refusal(pod: CachedPod, budgets: PodBudgets) -> str:
    """Why the server would refuse to evict the pod now; empty when it would not. A budget that never allows an eviction counts
    as refused at moments too when more pods run than it asks for: its owner wants none.
    """
    matching = budgets.of(pod)
    if len(matching) > 1:
        named = ", ".join(each.metadata.name for each in matching)
        return f"pod {key_of(pod)} has several PodDisruptionBudgets ({named}), with which no eviction is possible"
    for budget in matching:
        if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow" and not pod.ready:
            continue
        if budget.status.disruptions_allowed == 0 or _never_allows(budget):
            return f"PodDisruptionBudget {pod.namespace}/{budget.metadata.name} allows no eviction of pod {key_of(pod)}"
    return ""
