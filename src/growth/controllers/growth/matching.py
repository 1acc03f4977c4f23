"""Which pool of ours a pod is for, and what is said where there is none. Pure.

A pod that selects `growth.dev/pool` is for the pool of that name. Any other is offered to Karpenter's pools, then to the
growth pool `default` where there is one.
"""

from collections.abc import Set

from growth.api import names
from growth.api.pods import PodSpec


def asked_pools(spec: PodSpec) -> frozenset[str]:
    """The pools that the pod selects by name; empty where it selects none."""
    named = spec.node_selector.get(names.POOL_LABEL)
    if named is not None:
        return frozenset({named})
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return frozenset(
        value
        for term in (required.node_selector_terms if required is not None else ())
        for each in term.match_expressions
        if each.key == names.POOL_LABEL and each.operator == "In"
        for value in each.values
    )


def resting_with(spec: PodSpec, pools: Set[str], *, karpenter: bool) -> str:
    """The growth pool by whose changes a pod without a place is looked at again; empty for a pod of Karpenter's pools.

    It need not exist: then its creation is such a change.
    """
    asked = asked_pools(spec)
    if asked:
        return min(asked & pools or asked)
    return names.DEFAULT_POOL if names.DEFAULT_POOL in pools or not karpenter else ""


def missing_pool(spec: PodSpec, pools: Set[str], *, karpenter: bool) -> tuple[str, str] | None:
    """Reason and message of the event on a pod for which there is no pool; None where there is one.

    `karpenter`: there are pools of Karpenter's API.
    """
    asked = asked_pools(spec)
    if asked and not asked & pools:
        named = " or ".join(sorted(asked))
        known = f"there are {', '.join(sorted(pools))}" if pools else "there are none"
        message = (
            f"the pod asks for the growth NodePool {named}, which does not exist ({known}): create it or correct the label"
            f" {names.POOL_LABEL}"
        )
        return names.NODE_POOL_NOT_FOUND, message
    if not asked and not karpenter and names.DEFAULT_POOL not in pools:
        message = (
            f"the pod asks for no NodePool and there is no growth NodePool {names.DEFAULT_POOL}: create one, or select a"
            f" pool by {names.POOL_LABEL}"
        )
        return names.NO_NODE_POOL, message
    return None
