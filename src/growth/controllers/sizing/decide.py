"""What a pool lacks, and which of its drifted machines are replaced now. Pure.

A static pool keeps `replicas` machines, as far as `limits.nodes` allows. Drifted ones are replaced within the budget: the
new machine first, where the limit leaves room or is Soft. Where a Hard limit leaves none, one is deleted, and only when
its machine is gone another is bought: one at a time, and never while the pool lacks a machine for another reason.
"""

import dataclasses
import hashlib
from collections.abc import Container, Iterable, Sequence
from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.pools import SOFT, node_limit_mode
from growth.cluster.replacing import excused
from growth.planning.disruption.surplus import Standing, limit_of, most

# As the API server's own random names: no vowels, no digits that look like letters.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_ENDING: Final = 5
# A claim's name becomes a Node's name and a label's value.
_NAME: Final = 63


def missing(pool: NodePool, found: Standing) -> int:
    """How many a static pool is to buy now: what leaves counts against the limit until it is gone."""
    if pool.spec.replicas is None:
        return 0
    lacks = pool.spec.replicas - len(found.staying)
    limit = limit_of(pool)
    return max(0, lacks if limit is None else min(lacks, limit - found.count))


def in_place(pool: NodePool) -> bool:
    """Whether drifted machines of a static pool are deleted before others are bought: its limit leaves no room beside."""
    limit = limit_of(pool)
    return (
        pool.spec.replicas is not None
        and limit is not None
        and limit <= pool.spec.replicas
        and node_limit_mode(pool) != SOFT
    )


def why_in_place(pool: NodePool) -> str:
    """What people are told of that; empty where replacements come first."""
    if not in_place(pool):
        return ""
    limit, replicas = limit_of(pool), pool.spec.replicas
    kept = "" if limit == replicas else f"{limit} machines are kept of {replicas}, and "
    return (
        f"limits.nodes is {limit} and replicas {replicas}, which leaves no room for a replacement: {kept}a drifted machine"
        " is deleted, and another bought when it is gone, one at a time; raise limits.nodes or set nodeLimitMode: Soft to"
        " replace first"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Renewal:
    """Drifted machines to replace now: `first` are bought for before they go, `gone` goes before another is bought."""

    first: tuple[NodeClaim, ...] = ()
    gone: NodeClaim | None = None


def renewal(pool: NodePool, found: Standing, drifted: Sequence[NodeClaim], *, budget: int | None) -> Renewal:
    """`drifted` are staying ones that may go, in order; `budget` is what the pool's budgets leave, None for any number."""
    if pool.spec.replicas is None or len(found.staying) != most(pool) or budget == 0 or not drifted:
        return Renewal()  # a pool that grows or shrinks does that first
    number = len(drifted) if budget is None else min(budget, len(drifted))
    limit = limit_of(pool)
    if limit is None:
        return Renewal(first=tuple(drifted[:number]))
    if node_limit_mode(pool) == SOFT:
        return Renewal(first=_beside(found, drifted, limit)[:number])
    room = limit - found.count
    if room > 0:
        return Renewal(first=tuple(drifted[: min(number, room)]))
    settled = all(is_true(claim.status.conditions, names.INITIALIZED) for claim in found.staying)
    if found.leaving or found.replaced or not settled or not in_place(pool):
        return Renewal()
    return Renewal(gone=drifted[0])


def _beside(found: Standing, drifted: Sequence[NodeClaim], limit: int) -> tuple[NodeClaim, ...]:
    """Those for which others may come beside a Soft limit: what goes does not count, but for one machine only.

    Where a replacement failed and is still there, the next one counts.
    """
    claims = (*found.staying, *found.replaced, *found.leaving)
    going = excused(claims)
    room = limit - (len(claims) - len(going))
    chosen: list[NodeClaim] = []
    for claim in drifted:
        free = claim.metadata.name not in going
        if free or room > 0:
            chosen.append(claim)
            room -= not free
    return tuple(chosen)


def refill_names(
    pool: NodePool, claims: Iterable[NodeClaim], number: int, *, taken: Container[str], ends: int = 0
) -> tuple[str, ...]:
    """Names for machines that the pool lacks, made from the names of those that it has; none of those that are taken.

    Whoever looks at the same claims finds the same names, and after the first of them is created the same others: a
    process that comes after a crash asks for the very claims that the one before was about to create. `ends` is how many
    claims of the pool were seen to go: what takes their place has another name.
    """
    held = {claim.metadata.name for claim in claims}
    found: list[str] = []
    while len(found) < number:
        parts = [str(ends), *sorted(held)]
        name = _name(pool, *parts)
        while name in held or name in taken:
            parts.append(name)
            name = _name(pool, *parts)
        held.add(name)
        found.append(name)
    return tuple(found)


def replacement_name(pool: NodePool, claim: NodeClaim, *, ends: int = 0) -> str:
    """The name of what replaces the claim; `ends` as for refills: one that failed has another name than the next."""
    return _name(pool, str(ends), claim.metadata.uid)


def _name(pool: NodePool, *parts: str) -> str:
    text = "\n".join((pool.metadata.uid, *parts))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    ending = ""
    for _ in range(_ENDING):
        number, letter = divmod(number, len(_LETTERS))
        ending += _LETTERS[letter]
    return f"{pool.metadata.name[: _NAME - _ENDING - 1].rstrip('-.')}-{ending}"
