"""PodDisruptionBudgets that nobody has reckoned yet: what their controller would say of the pods at hand."""

from collections.abc import Iterable
from typing import Final

import msgspec

from growth.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done
from growth.planning.selectors import SelectorError, compiled

# Of a percentage. The server takes none above 100; files may say anything.
_MOST_DIGITS: Final = 18


def reckoned(budget: PodDisruptionBudget, pods: Iterable[CachedPod]) -> PodDisruptionBudget:
    """The budget with a status. One that a server has written stands as it is.

    Every pod counts that it selects and that has not ended; healthy are those that run. What cannot be read allows
    nothing, and neither does a budget that says no number: its controller expects no pods then.
    """
    if budget.status != PodDisruptionBudgetStatus():
        return budget
    try:
        selects = compiled(budget.spec.selector)
    except SelectorError:
        return budget
    own = [
        pod
        for pod in pods
        if pod.namespace == budget.metadata.namespace and not is_done(pod) and selects(pod.shape.labels)
    ]
    healthy = sum(bool(pod.node_name) and pod.deleting is None and _runs(pod) for pod in own)
    desired = _desired(budget, len(own))
    return msgspec.structs.replace(
        budget,
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=0 if desired is None else max(0, healthy - desired),
            current_healthy=healthy,
            desired_healthy=len(own) if desired is None else desired,
            expected_pods=len(own),
        ),
    )


def _runs(pod: CachedPod) -> bool:
    """Files often leave conditions out: a pod on a node that says nothing of readiness is taken to run."""
    return pod.ready or pod.ready_since is None


def _desired(budget: PodDisruptionBudget, expected: int) -> int | None:
    """How many must stay healthy; None where that cannot be read. Percentages round up, as the controller does it."""
    least, most = budget.spec.min_available, budget.spec.max_unavailable
    if most is not None:
        share = _share(most, expected)
        return None if share is None else max(0, expected - share)
    return None if least is None else _share(least, expected)


def _share(text: int | str, expected: int) -> int | None:
    if isinstance(text, int):
        return text
    number = text.removesuffix("%")
    if not number.isascii() or not number.isdigit() or number == text or len(number) > _MOST_DIGITS:
        return None
    return -(-expected * int(number) // 100)
