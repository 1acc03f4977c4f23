"""How many machines a pool keeps: what is too many goes, nothing goes for it that is not, and in the end all is right."""

import math
from collections.abc import Iterator
from typing import Final

from growth.api.karpenter import NEVER
from growth.api.kinds import Json
from growth.sim.invariants.books import (
    CLAIMS,
    DISRUPTED,
    NODES,
    POOL_LABEL,
    POOLS,
    Books,
    annotations,
    deleting,
    has_condition,
    labels,
    provider_id_of,
    tainted,
)
from growth.sim.invariants.invariant import BLINK_SECONDS, Case
from growth.sim.ports import EPOCH
from growth.units import Duration, parse_time

# A wall clock may be wrong by so much: it jumps by up to ten minutes, and was a second off before (`SKEW_SECONDS`).
MOST_WRONG_SECONDS: Final = 601.0
REPLACES: Final = "growth.dev/replaces"
PAUSED: Final = "growth.dev/paused"


def bound(pool: Json) -> int | None:
    """How many machines the pool may keep; None for any number."""
    spec = pool["spec"]
    numbers = [each for each in (spec.get("replicas"), spec.get("limits", {}).get("nodes")) if each is not None]
    return min(map(int, numbers), default=None)


def in_place(pool: Json) -> bool:
    """Whether the pool is static and its Hard limit has no room beside its replicas: what drifted goes before others come."""
    spec = pool["spec"]
    replicas, limit = spec.get("replicas"), spec.get("limits", {}).get("nodes")
    soft = spec.get("disruption", {}).get("nodeLimitMode") == "Soft"
    return replicas is not None and limit is not None and int(limit) <= int(replicas) and not soft


def staying(pool: Json, books: Books) -> list[Json]:
    """The pool's claims that nobody takes away: not deleted, not being disrupted, and not being replaced.

    What comes for another is there for it in a static pool; elsewhere a move may be taken back when it is up, and then the
    mark comes off what was to go.
    """
    own = [each for each in books.claims_of(pool["metadata"]["name"]) if not deleting(each)]
    static = pool["spec"].get("replicas") is not None
    coming = [each for each in own if static or not has_condition(each, "Initialized")]
    replaced = {name for each in coming for name in annotations(each).get(REPLACES, "").split(",")}
    marked = {provider_id_of(node) for node in books.all(NODES) if tainted(node, DISRUPTED)}
    return [
        each
        for each in own
        if each["metadata"]["name"] not in replaced and each.get("status", {}).get("providerID", "") not in marked
    ]


def surplus(claim: Json, case: Case) -> bool:
    """Whether a claim that was just deleted was one too many: its pool still keeps as many as it may, or might a blink ago."""
    name = labels(claim).get(POOL_LABEL, "")
    pool = case.books.find(POOLS, name)
    changed, before = case.pools_before.get(name, (-math.inf, pool))
    known = (pool, before) if case.sent - changed < BLINK_SECONDS else (pool,)
    return any(each is not None and _is_full(each, case.books) for each in known)


def _is_full(pool: Json, books: Books) -> bool:
    most = bound(pool)
    return most is not None and len(staying(pool, books)) >= most


def of_age(claim: Json, at: float) -> bool:
    """Whether the claim has reached its `expireAfter`, by whatever clock: one may be wrong by minutes."""
    text = claim["spec"].get("expireAfter", NEVER)
    if text == NEVER:
        return False
    born = parse_time(claim["metadata"]["creationTimestamp"])
    age = at - (born - EPOCH).total_seconds()
    return age >= Duration.parse(text).seconds - MOST_WRONG_SECONDS


def wrong_sizes(books: Books) -> Iterator[tuple[str, str]]:
    """Pools that are not at their number, and how; those that may not be changed are left out."""
    for pool in books.all(POOLS):
        most, name = bound(pool), pool["metadata"]["name"]
        if most is None or deleting(pool) or annotations(pool).get(PAUSED, "false") != "false":
            continue
        there = len(staying(pool, books))
        if there > most:
            yield name, f"NodePool {name} keeps {there} machines, of {most} that it may have"
        elif pool["spec"].get("replicas") is not None and there < most and _settled(pool, books):
            yield name, f"NodePool {name} has {there} machines, of {most} that it is to have"


def _settled(pool: Json, books: Books) -> bool:
    """Whether nothing of the pool is on its way out: what leaves counts against its limit."""
    return not any(
        deleting(each) for each in books.all(CLAIMS) if labels(each).get(POOL_LABEL) == pool["metadata"]["name"]
    )
