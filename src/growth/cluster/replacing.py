"""Which claims are on their way out because another takes their place: told by an annotation of the one that comes.

It is written with the replacement itself, so that whoever comes after a crash knows what the replacement is for. A claim
that is being replaced counts against limits as every other, but it is no surplus: it goes by itself.

Another annotation stays: what was given up for the claim. In the place of a machine nothing is bought for a while that has been
there before, or pods would be sent in a circle.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim

# So long what was given up for a machine is not bought in its place.
GIVEN_UP_FOR: Final = dt.timedelta(hours=1)
# So much of it is remembered.
MOST_GIVEN_UP: Final = 100
# What a machine is. Where it is, a claim that allows several zones leaves to the cloud.
KIND: Final = (names.INSTANCE_TYPE_LABEL, names.CAPACITY_TYPE_LABEL)


def named(claims: Sequence[str]) -> dict[str, str]:
    """The annotation of a claim that replaces these; none where it replaces nothing."""
    return {names.REPLACES_ANNOTATION: ",".join(claims)} if claims else {}


def given_up(claim: NodeClaim, now: dt.datetime) -> tuple[str, ...]:
    """What was there before the claim's machine, as `kind_of` says it; nothing where that is long ago."""
    born = claim.metadata.creation_timestamp
    if born is None or now - born >= GIVEN_UP_FOR:
        return ()
    return tuple(filter(None, claim.metadata.annotations.get(names.GIVEN_UP_ANNOTATION, "").split(",")))


def giving_up(claims: Iterable[NodeClaim], now: dt.datetime) -> dict[str, str]:
    """The annotation of what is bought in the place of these."""
    going = tuple(claims)
    own = [kind_of(claim.metadata.labels) for claim in going]
    before = [kind for claim in going for kind in given_up(claim, now)]
    kinds = [kind for kind in dict.fromkeys((*own, *before)) if kind]
    return {names.GIVEN_UP_ANNOTATION: ",".join(kinds[:MOST_GIVEN_UP])} if kinds else {}


def kind_of(labels: Mapping[str, str]) -> str:
    """What a machine is: its type and terms; empty where that is not known."""
    found = [labels.get(key, "") for key in KIND]
    return "/".join(found) if all(found) else ""


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
