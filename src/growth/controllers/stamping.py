"""Hashes of pools of both APIs: a pool has its own, and a claim that of the pool that it was made from (`cluster.hashes`)."""

from collections.abc import Sequence
from typing import Any, Final

from growth.api import names
from growth.api.conditions import find
from growth.api.edits import set_annotations
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json, Kind
from growth.cluster import hashes
from growth.controllers.environment import Environment
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.telemetry.logs import logger

_log = logger("nodepool")

_PAGE: Final = 500


async def stamp(env: Environment, pool: NodePool | GrowthPool, claims: Sequence[NodeClaim]) -> None:
    """Writes what is missing. `claims` are the pool's, by the cache.

    Claims first: a crash between leaves the pool with the old version, and all of it is done again.
    """
    kind: Kind[Any] = GROWTH_POOL if isinstance(pool, GrowthPool) else NODE_POOL
    wanted = hashes.stamp(pool)
    name, annotations = pool.metadata.name, pool.metadata.annotations
    taken_over = annotations.get(names.NODE_POOL_HASH_VERSION_ANNOTATION) != hashes.VERSION
    if taken_over and annotations.get(names.NODE_POOL_HASH_ANNOTATION) is not None:
        label = names.POOL_LABEL if isinstance(pool, GrowthPool) else names.NODE_POOL_LABEL
        claims = await _claims_of(env, f"{label}={name}")
        _log.info("taking over the pool's hash", version=hashes.VERSION, claims=len(claims))
    for claim in claims:
        if claim.metadata.annotations.get(names.NODE_POOL_HASH_VERSION_ANNOTATION) != hashes.VERSION:
            await _stamp_claim(env, claim, wanted)
    if any(annotations.get(key) != value for key, value in wanted.items()):

        def edit(draft: Json) -> None:
            _must_be(draft, pool)
            set_annotations(draft, wanted)

        await change(env.api, kind, name, edit)


async def _stamp_claim(env: Environment, claim: NodeClaim, wanted: dict[str, str]) -> None:
    """A claim that drifted under its old hash keeps it: it drifted, and is not to be forgotten."""
    drifted = find(claim.status.conditions, names.DRIFTED) is not None
    version = {names.NODE_POOL_HASH_VERSION_ANNOTATION: hashes.VERSION}

    def edit(draft: Json) -> None:
        _must_be(draft, claim)
        set_annotations(draft, version if drifted else wanted)

    try:
        await change(env.api, NODE_CLAIM, claim.metadata.name, edit)
    except NotFound:
        return


async def _claims_of(env: Environment, labels: str) -> list[NodeClaim]:
    """As the server has them now."""
    found: list[NodeClaim] = []
    page = ""
    while True:
        answer = await env.api.list(NODE_CLAIM, labels=labels, limit=_PAGE, page=page)
        found += answer.items
        page = answer.next
        if not page:
            return found


def _must_be(draft: Json, item: NodePool | GrowthPool | NodeClaim) -> None:
    if draft["metadata"]["uid"] != item.metadata.uid:
        raise Conflict(f"another object is called {item.metadata.name} by now")
