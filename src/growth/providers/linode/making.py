"""What a pool of LKE is made with, what of one that stands must change before it grows, and how its machines were made. Pure.

A pool outlives what its first claim asked for. So a count that grows brings what is asked for now: the version and the firewall
of the class (enterprise), which concern nodes to come, and without taints that the claim lacks. Taints are never added to a
pool that stands, and startup taints are not repeated: LKE puts a pool's taints on all of its nodes, also on those in use. A
Node gets its claim's own when it registers.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from growth.providers.linode import tags, wire
from growth.providers.linode.finding import Order

# Nodes keep their version until they are replaced: LKE replaces none by itself.
UPDATES: Final = "on_recycle"


def new_pool(order: Order, *, cluster: str, enterprise: bool) -> dict[str, Any]:
    """Of one node."""
    claim = order.claim
    asked = {(each.key, each.effect): each for each in (*claim.spec.taints, *claim.spec.startup_taints)}
    return {
        "count": 1,
        "type": order.key.type,
        "tags": tags.of_pool(order.key, cluster=cluster, node_class=claim.spec.node_class_ref.name),
        "taints": [{"key": each.key, "value": each.value, "effect": each.effect} for each in asked.values()],
        **({"update_strategy": UPDATES, **_of_class(order)} if enterprise else {}),
    }


def changes(pool: wire.Pool, order: Order, *, enterprise: bool) -> dict[str, Any]:
    """What is written with the count of a pool that grows for the order; empty where it is as asked for."""
    found: dict[str, Any] = {}
    held = {"k8s_version": pool.k8s_version, "firewall_id": pool.firewall_id}
    of_class = {name: value for name, value in _of_class(order).items() if value != held[name]} if enterprise else {}
    if of_class:
        found |= {"update_strategy": UPDATES, **of_class}
    spec = order.claim.spec
    lasting = {(each.key, each.value, each.effect) for each in spec.taints}
    starting = {(each.key, each.value, each.effect) for each in spec.startup_taints}
    has = [(each.key, each.value or "", each.effect) for each in pool.taints]
    if any(each not in lasting | starting for each in has):
        kept = [each for each in has if each in lasting]
        found["taints"] = [{"key": key, "value": value, "effect": effect} for key, value, effect in kept]
    return found


def is_taken(pool: wire.Pool, asked: Mapping[str, Any]) -> bool:
    """Whether the pool, as LKE answered, has what was asked for. A field that it does not tell it may have."""
    told = {"k8s_version": pool.k8s_version or None, "firewall_id": pool.firewall_id}
    return all(held is None or asked.get(name, held) == held for name, held in told.items())


def as_made(order: Order, pool: wire.Pool, *, enterprise: bool) -> Order:
    """The order as machines of the pool fulfil it: they have the pool's version and firewall, whatever the class says by now.

    A pool that does not tell them has what was asked for: what is not known is not another.
    """
    spec = order.node_class.spec
    if not enterprise:
        return order
    if spec.lke_k8s_version and pool.k8s_version:
        spec = msgspec.structs.replace(spec, lke_k8s_version=pool.k8s_version)
    if spec.firewall_id is not None and pool.firewall_id is not None:
        spec = msgspec.structs.replace(spec, firewall_id=pool.firewall_id)
    return dataclasses.replace(order, node_class=msgspec.structs.replace(order.node_class, spec=spec))


def _of_class(order: Order) -> dict[str, Any]:
    """What the class names. What it does not name is the cluster's in a new pool, and stays in one that stands."""
    spec = order.node_class.spec
    return {
        **({"k8s_version": spec.lke_k8s_version} if spec.lke_k8s_version else {}),
        **({"firewall_id": spec.firewall_id} if spec.firewall_id is not None else {}),
    }
