"""How what a static pool buys is called, and what is told of one that replaces in place. Pure."""

import hashlib
from collections.abc import Container, Iterable
from typing import Final

from growth.api.karpenter import NodeClaim, NodePool
from growth.cluster.replacing import replaces
from growth.planning.disruption.static import in_place
from growth.planning.disruption.surplus import Standing, limit_of

# As the API server's own random names: no vowels, no digits that look like letters.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_ENDING: Final = 5
# A claim's name becomes a Node's name and a label's value.
_NAME: Final = 63


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


def predecessors(claim: NodeClaim, found: Standing) -> tuple[str, ...]:
    """What the replacement of the claim replaces: the claim, and what is there yet though the claim came for it. Else that would
    be one too many again when the claim goes, and another machine would have to go for it.
    """
    there = {each.metadata.name for each in found.replaced}
    return (claim.metadata.name, *(name for name in replaces(claim) if name in there))


def _name(pool: NodePool, *parts: str) -> str:
    text = "\n".join((pool.metadata.uid, *parts))
    number = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    ending = ""
    for _ in range(_ENDING):
        number, letter = divmod(number, len(_LETTERS))
        ending += _LETTERS[letter]
    return f"{pool.metadata.name[: _NAME - _ENDING - 1].rstrip('-.')}-{ending}"
