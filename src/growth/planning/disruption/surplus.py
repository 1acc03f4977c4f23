"""How many machines a pool has more than it may have, over its node limit or its `replicas`, and which go first; or how many
fewer than its `replicas`.

Karpenter's order for static capacity: what has no machine yet, then what is empty, then what is used, the least costly
to disturb first; of each what somebody protects comes last. Claims that go already, or whose replacement is under way, are
neither counted nor chosen: they make room by themselves.
"""

import dataclasses
import datetime as dt
from collections.abc import Iterable, Sequence, Set
from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NodeClaim, NodePool
from growth.cluster.replacing import being_replaced, replaces
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import NODES
from growth.planning import occupants
from growth.planning.disruption.candidates import empty
from growth.units.errors import QuantityError
from growth.units.resources import amounts


@dataclasses.dataclass(frozen=True, slots=True)
class Standing:
    """The claims of a pool. `staying` are those that nobody takes away; `replaced` go when what comes for them is there."""

    staying: tuple[NodeClaim, ...]
    replaced: tuple[NodeClaim, ...]
    leaving: tuple[NodeClaim, ...]

    @property
    def count(self) -> int:
        """What limits count: everything until its machine is gone."""
        return len(self.staying) + len(self.replaced) + len(self.leaving)


def standing(pool: NodePool, claims: Sequence[NodeClaim], marked: Set[str]) -> Standing:
    """`marked` are the names of claims whose Nodes are tainted because somebody disrupts them.

    In a static pool a replacement that is there takes its predecessor's place for good. Elsewhere a move may be taken
    back: then the taint goes, and what both have is a surplus.
    """
    own = [claim for claim in claims if claim.metadata.labels.get(names.NODE_POOL_LABEL) == pool.metadata.name]
    leaving = tuple(claim for claim in own if claim.metadata.deletion_timestamp is not None)
    if pool.spec.replicas is not None:
        going: Set[str] = being_replaced(own)
    else:
        coming = [claim for claim in claims if not is_true(claim.status.conditions, names.INITIALIZED)]
        going = marked | {name for claim in coming if not _deleting(claim) for name in replaces(claim)}
    staying = tuple(claim for claim in own if not _deleting(claim) and claim.metadata.name not in going)
    replaced = tuple(claim for claim in own if not _deleting(claim) and claim.metadata.name in going)
    return Standing(staying, replaced, leaving)


def limit_of(pool: NodePool) -> int | None:
    """`limits.nodes`; None where there is none, or where it cannot be meant, below zero or no number: the pool's condition tells
    of that, and nothing goes for it.
    """
    try:
        limit = amounts(pool.spec.limits).get(NODES)
    except QuantityError:
        return None
    return None if limit is None or limit < 0 else limit


def most(pool: NodePool) -> int | None:
    """How many machines the pool may keep; None for any number."""
    bounds = [bound for bound in (pool.spec.replicas, limit_of(pool)) if bound is not None]
    return min(bounds, default=None)


def too_many(pool: NodePool, found: Standing) -> int:
    """How many have to go at once."""
    bound = most(pool)
    return 0 if bound is None else max(0, len(found.staying) - bound)


def missing(pool: NodePool, found: Standing) -> int:
    """How many a static pool is to buy now: what leaves counts against the limit until it is gone."""
    if pool.spec.replicas is None:
        return 0
    lacks = pool.spec.replicas - len(found.staying)
    limit = limit_of(pool)
    return max(0, lacks if limit is None else min(lacks, limit - found.count))


def _deleting(claim: NodeClaim) -> bool:
    return claim.metadata.deletion_timestamp is not None


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
    held = any(occupants.active(pod) and occupants.protection(pod, now).holds for pod in claim.pods)
    if empty(claim.pods) and not held:
        return 2 if claim.protected else 1  # nobody's pods move for the sake of an empty one
    return 4 if claim.protected or held else 3


def _cost(claim: Held) -> int:
    costs = (occupants.eviction_cost(pod) for pod in claim.pods if occupants.reschedulable(pod))
    return sum(cost for cost in costs if cost > 0)
