"""Which machines go first where a pool has more than it may have: over its node limit, or over its `replicas`.

Karpenter's order for static capacity: what has no machine yet, then what is empty, then what is used, the least costly
to disturb first; what somebody protects comes last. Claims that go already, or whose replacement is under way, are
neither counted nor chosen: they make room by themselves.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from growth.cluster.shapes import CachedPod
from growth.planning import occupants
from growth.planning.disruption.candidates import empty


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A claim of the pool. `launched`: it has a machine. `protected`: its node or the claim says do-not-disrupt.

    `going`: it is deleted already, or a disruption that is under way will end it.
    """

    name: str
    launched: bool = True
    pods: Sequence[CachedPod] = ()
    protected: bool = False
    created: dt.datetime | None = None
    going: bool = False


_EPOCH: Final = dt.datetime.min.replace(tzinfo=dt.UTC)


def excess(claims: Sequence[Held], *, most: int, now: dt.datetime) -> tuple[str, ...]:
    """The claims to delete so that at most so many are left, in order."""
    staying = [claim for claim in claims if not claim.going]
    return order(staying, now=now)[: max(0, len(staying) - most)]


def order(claims: Iterable[Held], *, now: dt.datetime) -> tuple[str, ...]:
    """The names, those first that go first; of equals the older, then by name."""

    def key(claim: Held) -> tuple[int, int, dt.datetime, str]:
        return (_rank(claim, now), _cost(claim), claim.created or _EPOCH, claim.name)

    return tuple(claim.name for claim in sorted(claims, key=key))


def _rank(claim: Held, now: dt.datetime) -> int:
    if not claim.launched:
        return 0
    if claim.protected or any(occupants.active(pod) and occupants.protection(pod, now).holds for pod in claim.pods):
        return 3
    return 1 if empty(claim.pods) else 2


def _cost(claim: Held) -> int:
    costs = (occupants.eviction_cost(pod) for pod in claim.pods if occupants.reschedulable(pod))
    return sum(cost for cost in costs if cost > 0)
