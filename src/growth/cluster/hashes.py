"""The hash of a NodePool by which machines are recognised that were bought from an older template.

It covers what a machine cannot take on later: labels, annotations, taints, startup taints, node class, expiry and
termination grace. Requirements are compared with the machine itself, and budgets, weight and limits concern no machine.
Of a growth pool it covers the template. The node class and the server types are compared with the claim: a pool may leave its
class to the provider.

The version beside it says who made it, and how. A hash of another version (Karpenter's, or ours of another release) is
not comparable: it is replaced, on the pool and on its claims, and nothing counts as drifted for it.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

import msgspec

from growth.api import names
from growth.api.growthpools import GrowthPool, GrowthPoolTemplate
from growth.api.karpenter import NEVER, NodePool
from growth.api.placement import Taint
from growth.units import Duration, DurationError

VERSION: Final = "growth-v1"


def hash_of(pool: NodePool | GrowthPool) -> str:
    """Equal for pools whose machines would be equal: order of taints and spelling of durations do not count."""
    content = _of_growth(pool.spec.template) if isinstance(pool, GrowthPool) else _of_karpenter(pool)
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]


def _of_growth(template: GrowthPoolTemplate) -> dict[str, object]:
    return {
        "labels": template.labels,
        "taints": _taints(template.taints),
        "startupTaints": _taints(template.startup_taints),
    }


def _of_karpenter(pool: NodePool) -> dict[str, object]:
    template = pool.spec.template
    uses = template.spec.node_class_ref
    return {
        "labels": template.metadata.labels,
        "annotations": template.metadata.annotations,
        "taints": _taints(template.spec.taints),
        "startupTaints": _taints(template.spec.startup_taints),
        "nodeClassRef": [uses.group, uses.kind, uses.name],
        "expireAfter": _seconds(template.spec.expire_after),
        "terminationGracePeriod": _seconds(template.spec.termination_grace_period),
    }


def stamp(pool: NodePool | GrowthPool) -> dict[str, str]:
    """The annotations that a pool has of itself and a claim of the pool that it was planned from."""
    return {names.NODE_POOL_HASH_ANNOTATION: hash_of(pool), names.NODE_POOL_HASH_VERSION_ANNOTATION: VERSION}


def _taints(taints: Iterable[Taint]) -> list[tuple[str, str, str]]:
    return sorted((taint.key, taint.effect, taint.value) for taint in taints)


def _seconds(text: str | None) -> str:
    """A duration as a number of nanoseconds; what cannot be read stands for itself."""
    if text is None or text == NEVER:
        return str(text)
    try:
        return str(Duration.parse(text).nanoseconds)
    except DurationError:
        return text
