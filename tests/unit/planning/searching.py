"""Builders for the search: nodes of a pool with pods on them, a situation of them, and `found`, what the search says."""

import dataclasses
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.karpenter import Requirement
from growth.api.pods import Pod
from growth.cluster.snapshot import Demand, NodeView, Snapshot, VolumesView
from growth.planning.disruption import search
from growth.planning.disruption.model import Move, OwnedNode, Room, Situation
from growth.planning.disruption.search import Found, SearchOptions
from tests.unit.planning import builders, disrupting
from tests.unit.planning.builders import EURO, MEDIUM, SHAPES, TERMS, TYPE

NOW = disrupting.NOW
LONG_AGO = NOW - dt.timedelta(days=9)
# Pods are free to move, so that a law about something else does not depend on what evictions cost.
FREELY = SearchOptions(eviction_cost=0, least_percent=0, at_rest_percent=0)


def owned(
    name: str,
    *pods: Pod,
    of: InstanceType = MEDIUM,
    terms: str = names.ON_DEMAND,
    zone: str = "a",
    pool: str = "default",
    price: float | None = -1.0,
    since: dt.datetime = LONG_AGO,
    labels: Mapping[str, str] | None = None,
    **more: Any,
) -> OwnedNode:
    """A node of a type, at the price of its offering unless another is named, with pods that came at `since`."""
    if price is not None and price < 0:
        sold = [each.price for each in of.offerings if each.zone == zone and each.capacity_type == terms]
        price = (sold[0] or 0) / EURO
    own = {names.NODE_POOL_LABEL: pool, TYPE: of.name, TERMS: terms, **(labels or {})}
    seen = builders.node(
        name,
        *pods,
        cpu=str(of.allocatable["cpu"] // 1000),
        memory=str(of.allocatable["memory"]),
        zone=zone,
        labels=own,
    )
    cost = None if price is None else round(price * EURO)
    return OwnedNode(
        name=name,
        pool=pool,
        claim=name,
        view=dataclasses.replace(seen, price=cost),
        pods=tuple(_running(each, name, since) for each in pods),
        quiet_seconds=more.pop("quiet_seconds", 86_400.0),
        price=cost,
        created=more.pop("created", LONG_AGO),
        **more,
    )


def _running(pod: Pod, node: str, since: dt.datetime) -> Any:
    kept = SHAPES.keep(pod)
    return msgspec.structs.replace(
        kept, node_name=node, phase="Running", ready=True, created=since, uid=f"uid-{pod.metadata.name}"
    )


def situation(
    *nodes: OwnedNode,
    sold: Sequence[InstanceType] = builders.KINDS,
    needs: Sequence[Requirement] = (),
    pending: Sequence[Pod] = (),
    others: Sequence[NodeView] = (),
    disruption: Mapping[str, Any] | None = None,
    limits: Mapping[str, str | float] | None = None,
    used: Mapping[str, str | float] | None = None,
    problem: str = "",
    volumes: VolumesView = VolumesView(),  # noqa: B008 - frozen
    **more: Any,
) -> Situation:
    """Nodes of one pool `default` that sells these types."""
    views = [node.view for node in nodes if node.view is not None]
    snapshot = Snapshot(
        currency="EUR",
        pools=(builders.pool("default", *sold, needs=needs, limits=limits, used=used, problem=problem),),
        nodes=(*views, *others),
        volumes=volumes,
        namespaces={"default": {}},
    )
    return Situation(
        snapshot=snapshot,
        nodes=nodes,
        pools={"default": disrupting.pool(disruption={"consolidateAfter": "0s", **(disruption or {})})},
        now=NOW,
        demands=tuple(Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in pending),
        **more,
    )


def found(
    *nodes: OwnedNode, options: SearchOptions = FREELY, room: Room | None = None, candidates: str = "", **more: Any
) -> Found:
    """What the search says of the nodes; of those alone that are named in `candidates`, if any are."""
    made = situation(*nodes, **more)
    chosen = [node for node in nodes if not candidates or node.name in candidates.split()]
    return search.consolidate(made, chosen, {"default": room or Room(None, None)}, options)


def gone(made: Found) -> list[str]:
    return sorted(name for move in made.moves for name in move.nodes)


def only(made: Found) -> Move:
    (move,) = made.moves
    return move


def why(made: Found) -> dict[str, str]:
    return {each.node: each.reason for each in made.kept}
