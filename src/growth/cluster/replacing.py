"""Which claims are on their way out because another takes their place: told by an annotation of the one that comes.

It is written with the replacement itself, so that whoever comes after a crash knows what the replacement is for. A claim
that is being replaced counts against limits as every other, but it is no surplus: it goes by itself.
"""

from collections.abc import Iterable, Sequence

from growth.api import names
from growth.api.karpenter import NodeClaim


def named(claims: Sequence[str]) -> dict[str, str]:
    """The annotation of a claim that replaces these; none where it replaces nothing."""
    return {names.REPLACES_ANNOTATION: ",".join(claims)} if claims else {}


def replaces(claim: NodeClaim) -> tuple[str, ...]:
    """The names of the claims that this one was made to replace."""
    text = claim.metadata.annotations.get(names.REPLACES_ANNOTATION, "")
    return tuple(name for name in text.split(",") if name)


def being_replaced(claims: Iterable[NodeClaim]) -> frozenset[str]:
    """The names of those that another of them replaces. Both must be there and not be leaving.

    A claim is older than its replacement: a younger one of the same name is another machine.
    """
    staying = {claim.metadata.name: claim for claim in claims if claim.metadata.deletion_timestamp is None}
    return frozenset(
        name
        for newer in staying.values()
        for name in replaces(newer)
        if name in staying and name != newer.metadata.name and _as_old(staying[name], newer)
    )


def excused(claims: Iterable[NodeClaim]) -> frozenset[str]:
    """The names of those that another of them was made to replace, leaving or not: a Soft limit does not count them."""
    there = tuple(claims)
    return frozenset(name for claim in there for name in replaces(claim)) & {claim.metadata.name for claim in there}


def _as_old(claim: NodeClaim, newer: NodeClaim) -> bool:
    born, later = claim.metadata.creation_timestamp, newer.metadata.creation_timestamp
    return born is None or later is None or born <= later
