"""Builders of situations: nodes of plain values, and nodes read from manifests."""

import datetime as dt
from typing import Any

import msgspec

from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import PoolRef
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import NODES, PoolView, Snapshot
from growth.planning.disruption.decide import decide
from growth.planning.disruption.model import Decided, OwnedNode, Situation
from tests import manifests
from tests.unit.planning.test_draining import NOW, SHAPES, pod

__all__ = ["NOW", "SHAPES", "decided", "node", "pdb", "pod", "pool", "reasons", "situation"]

DAY = 86_400.0


def pool(name: str = "default", *, annotations: dict[str, str] | None = None, **spec: Any) -> NodePool:
    """Budgets are open unless the test says otherwise."""
    raw = manifests.node_pool(name)
    raw["metadata"]["annotations"] = annotations or {}
    disruption = {"budgets": [{"nodes": "100%"}], **spec.pop("disruption", {})}
    raw["spec"] = {**raw["spec"], "disruption": disruption, **spec}
    return msgspec.convert(raw, NodePool)


def node(name: str, **more: Any) -> OwnedNode:
    """Quiet for a day, and its claim has its name."""
    return OwnedNode(**{"name": name, "pool": "default", "claim": name, "quiet_seconds": DAY, "price": 1000, **more})


def pdb(name: str, *, app: str = "p", allowed: int = 0, **spec: Any) -> PodDisruptionBudget:
    """Selects the pods whose label `app` it is."""
    raw: Json = {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, PodDisruptionBudget)


def situation(
    *nodes: OwnedNode,
    pools: tuple[NodePool, ...] = (),
    count: int | None = None,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    now: dt.datetime = NOW,
    **more: Any,
) -> Situation:
    """Of nodes without views: `count` is what counts against every pool's node limit, as many as there are nodes."""
    pools = pools or (pool(),)
    views = []
    for each in pools:
        held = sum(node.pool == each.metadata.name for node in nodes) if count is None else count
        limit = {NODES: int(each.spec.limits["nodes"])} if "nodes" in each.spec.limits else {}
        views.append(
            PoolView(ref=PoolRef.karpenter(each.metadata.name), instance_types=(), limits=limit, used={NODES: held})
        )
    return Situation(
        snapshot=Snapshot(currency="EUR", pools=tuple(views)),
        nodes=nodes,
        pools={each.metadata.name: each for each in pools},
        now=now,
        disruption_budgets=budgets,
        **more,
    )


def decided(*nodes: OwnedNode, **more: Any) -> Decided:
    return decide(situation(*nodes, **more))


def reasons(made: Decided) -> dict[str, tuple[str, str]]:
    return {each.node: (each.reason, each.message) for each in made.kept}


def pods_of(number: int, **more: Any) -> list[CachedPod]:
    return [pod(f"p-{at}", **more) for at in range(number)]
