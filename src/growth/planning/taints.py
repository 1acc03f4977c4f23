"""Taints and tolerations, as kube-scheduler matches them."""

from collections.abc import Iterable

from growth.api import names
from growth.api.placement import PREFER_NO_SCHEDULE, Taint, Toleration


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    for each in tolerations:
        if each.effect and each.effect != taint.effect:
            continue
        if each.key and each.key != taint.key:
            continue
        if each.operator == "Exists":
            return True
        if each.key and each.operator in {"", "Equal"} and each.value == taint.value:
            return True
    return False


def leaving_soon(taint: Taint) -> bool:
    """Whether it only says that the node is one of the next to go: kube-scheduler avoids it if it can, and nobody buys a machine
    to avoid it.
    """
    return (taint.key, taint.effect) == (names.LEAVING_SOON_TAINT, PREFER_NO_SCHEDULE)


def discourages(taint: Taint) -> bool:
    """Whether pods that do not tolerate it had rather be elsewhere, on a new machine too."""
    return taint.effect == PREFER_NO_SCHEDULE and not leaving_soon(taint)


def untolerated(tolerations: tuple[Toleration, ...], taints: Iterable[Taint], *, soft: bool) -> Taint | None:
    """The first taint that keeps the pod away. `soft`: PreferNoSchedule keeps it away too, as a preference does."""
    for taint in taints:
        if taint.effect == PREFER_NO_SCHEDULE and not (soft and discourages(taint)):
            continue
        if not tolerates(tolerations, taint):
            return taint
    return None
