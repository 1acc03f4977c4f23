"""What a watcher would know of nodes, as far as the objects tell it: how quiet they are, who is about to come, drift."""

import collections
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import find, since
from growth.api.karpenter import NodeClaim
from growth.cluster.assemble import Objects, Picture
from growth.cluster.machines import doubt
from growth.cluster.pools import DEFAULT_CLASS, Market
from growth.cluster.pricing import by_name
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import is_mirror, of_daemon_set
from growth.planning.disruption.drift import drifted, drifted_in_growth
from growth.planning.disruption.situating import Facts
from growth.planning.plan import Plan

# Where nobody says since when a node is as it is, it has been so for long.
_LONG: Final = 10.0**9


def pods_by_node(pods: Sequence[CachedPod]) -> dict[str, list[CachedPod]]:
    """The pods that have a node, by its name."""
    found: dict[str, list[CachedPod]] = {}
    for pod in pods:
        if pod.node_name:
            found.setdefault(pod.node_name, []).append(pod)
    return found


def facts_of(
    objects: Objects,
    picture: Picture,
    plan: Plan,
    *,
    buffered: Sequence[Demand],
    pods: Mapping[str, Sequence[CachedPod]],
) -> dict[str, Facts]:
    """By node. Nodes to which the plan sends pods are nominated, as they would be."""
    of_buffers = {each.key for each in buffered}
    nominated = {filled.name for filled in plan.filled if not of_buffers.issuperset(filled.pods)}
    holding = {filled.name for filled in plan.filled if not of_buffers.isdisjoint(filled.pods)}
    doubts = _doubts(objects)
    pools = {pool.metadata.name: pool for pool in objects.pools}
    growth_pools = {pool.metadata.name: pool for pool in objects.growth_pools}
    market = Market(picture.catalogue, picture.node_classes, picture.now)
    facts: dict[str, Facts] = {}
    for name, counted in picture.counted.items():
        claim, node = counted.machine.claim, counted.machine.node
        unclear = doubts.get(node.spec.provider_id, "") if node is not None else ""
        if claim is None:
            facts[name] = Facts(doubt=unclear)
            continue
        pool = pools.get(claim.metadata.labels.get(names.NODE_POOL_LABEL, ""))
        drift: str | None = None  # as the condition says, which may know what only the cloud does
        if pool is not None:
            types = by_name(market.types_for(pool.spec.template.spec.node_class_ref))
            drift = drifted(claim, pool, types, picture.now) or ("" if _outdated(claim) else None)
        servers = growth_pools.get(claim.metadata.labels.get(names.POOL_LABEL, ""))
        if servers is not None:
            uses = servers.spec.node_class_ref
            types = by_name(market.types_for(uses))
            # A pool that names no class has the provider's, of the kind that its claims have.
            own = uses or msgspec.structs.replace(claim.spec.node_class_ref, name=DEFAULT_CLASS)
            told = drifted_in_growth(claim, servers, types, picture.now, uses=own)
            drift = told or ("" if _outdated(claim) else None)
        facts[name] = Facts(
            quiet_seconds=quiet_seconds(claim, pods.get(name, ()), picture.now),
            nominated=name in nominated,
            holds_buffer=name in holding,
            doubt=unclear,
            drifted=drift,
        )
    return facts


def _outdated(claim: NodeClaim) -> bool:
    """Whether its condition says of the pool what the objects, which are newer, do not say."""
    told = find(claim.status.conditions, names.DRIFTED)
    return told is not None and told.reason in {names.NODE_POOL_DRIFTED, names.REQUIREMENTS_DRIFTED}


def last_event(claim: NodeClaim, pods: Sequence[CachedPod]) -> dt.datetime | None:
    """When a pod last came or went, as far as the objects tell; pods that left are seen by nobody afterwards."""
    times = [claim.status.last_pod_event_time, since(claim.status.conditions, names.INITIALIZED)]
    own = [pod for pod in pods if not of_daemon_set(pod) and not is_mirror(pod)]  # others come and go with their node
    times += [time for pod in own for time in (pod.scheduled_since, pod.deleting)]
    return max((time for time in times if time is not None), default=None)


def quiet_seconds(claim: NodeClaim, pods: Sequence[CachedPod], now: dt.datetime) -> float:
    """How long no pod has come or gone."""
    last = last_event(claim, pods)
    return max(0.0, (now - last).total_seconds()) if last is not None else _LONG


def _doubts(objects: Objects) -> Mapping[str, str]:
    """Why it is not clear which Node or claim is a machine's, by provider ID; for machines that have a claim."""
    claims = collections.Counter(claim.status.provider_id for claim in objects.claims)
    nodes = collections.Counter(node.spec.provider_id for node in objects.nodes)
    return {each: doubt(each, nodes=nodes[each], claims=number) for each, number in claims.items() if each}
