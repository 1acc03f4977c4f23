"""Growth pools above their limit: which of their machines go first."""

import datetime as dt
from typing import Any

import msgspec

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.cluster.shapes import CachedPod, Shapes
from growth.planning.disruption.surplus import Held
from growth.planning.trimming import beyond, in_order, member
from tests import manifests

NOW = dt.datetime(2030, 1, 1, tzinfo=dt.UTC)
KEEP: Json = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
SHAPES = Shapes()


def pool(nodes: int | None) -> GrowthPool:
    limits = {} if nodes is None else {"limits": {"nodes": nodes}}
    return msgspec.convert(manifests.growth_pool("g", **limits), GrowthPool, strict=False)


def pods(number: int, *, metadata: Json | None = None) -> tuple[CachedPod, ...]:
    made = (manifests.pod(f"p{at}", metadata=metadata) for at in range(number))
    return tuple(SHAPES.keep(msgspec.convert(each, Pod, strict=False)) for each in made)


def held(name: str, *there: CachedPod, annotations: Json | None = None, launched: bool = True) -> Held:
    status = {"providerID": f"cloud://{name}"} if launched else {}
    claim = msgspec.convert(manifests.claim(name, status=status), NodeClaim, strict=False)
    node: Any = manifests.node(name, metadata={"annotations": annotations or {}})
    return member(claim, msgspec.convert(node, Node, strict=False), there)


def test_empty_ones_go_first_then_the_unprotected_then_those_with_few_pods() -> None:
    """Of equals the first by name."""
    members = [
        held("a", *pods(2)),
        held("b", *pods(1, metadata={"annotations": KEEP})),
        held("c", *pods(1)),
        held("d", *pods(1), annotations=KEEP),
        held("e", annotations=KEEP),
        held("g"),
        held("f"),
    ]
    assert in_order(pool(1), members, now=NOW) == ("f", "g", "e", "c", "a", "b", "d")


def test_what_has_no_machine_counts_and_is_not_chosen() -> None:
    """Its request sees to it."""
    members = [held("a", launched=False), held("b")]
    assert in_order(pool(1), members, now=NOW) == ("b",)


def test_nothing_goes_within_the_limit_or_without_one() -> None:
    """As many as are beyond it go, and no more."""
    members = [held("a"), held("b")]
    assert in_order(pool(2), members, now=NOW) == in_order(pool(None), members, now=NOW) == ()
    assert [beyond(pool(limit), 3) for limit in (None, 4, 3, 1, 0)] == [0, 0, 0, 2, 3]
