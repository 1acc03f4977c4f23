"""Which machines are no longer what their pool asks for. What the cloud itself says of a machine is asked elsewhere.

In Karpenter's order: the template's hash, the pool's requirements against the labels that the machine has, and whether
its type is still known. `minValues` concern purchases and no machine that is there; limits, weight and budgets none at
all. The requirements of a growth pool are its list of server types; `min`, `max` and `priority` concern purchases.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.growthpools import GrowthPool
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import NodeClaim, NodeClassReference, NodePool
from growth.api.zones import in_catalogue_names, zone_of
from growth.cluster import hashes
from growth.cluster.machines import types_of
from growth.planning.requirements import RequirementError, from_expressions, key_of

# A list of types may be incomplete for a while after a type came up.
SETTLED: Final = dt.timedelta(hours=1)


def drifted(claim: NodeClaim, pool: NodePool, types: Mapping[str, InstanceType], now: dt.datetime) -> str:
    """How the machine differs, as the reason of the condition `Drifted`; empty when it does not.

    `types` by name in lower case are all that the cloud knows, sold out or not; while there are none, nothing is said of
    types. A claim that is not launched yet has no machine that could differ.
    """
    if not is_true(claim.status.conditions, names.LAUNCHED):
        return ""
    if _of_another_template(claim, pool):
        return names.NODE_POOL_DRIFTED
    if _against_requirements(claim, pool):
        return names.REQUIREMENTS_DRIFTED
    if types and _old_enough(claim, now) and not _known(claim, types):
        return names.INSTANCE_TYPE_NOT_FOUND
    return ""


def drifted_in_growth(
    claim: NodeClaim,
    pool: GrowthPool,
    types: Mapping[str, InstanceType],
    now: dt.datetime,
    *,
    uses: NodeClassReference,
) -> str:
    """The same of a machine of a growth pool, whose node class is `uses`."""
    if not is_true(claim.status.conditions, names.LAUNCHED):
        return ""
    if claim.spec.node_class_ref != uses or _of_another_template(claim, pool):
        return names.NODE_POOL_DRIFTED
    if not set(types_of(claim)) <= {each.name.lower() for each in pool.spec.server_types}:
        return names.REQUIREMENTS_DRIFTED
    if types and _old_enough(claim, now) and not _known(claim, types):
        return names.INSTANCE_TYPE_NOT_FOUND
    return ""


def _of_another_template(claim: NodeClaim, pool: NodePool | GrowthPool) -> bool:
    """A hash that somebody else made, or we in another release, says nothing: it is replaced."""
    annotations = claim.metadata.annotations
    if annotations.get(names.NODE_POOL_HASH_VERSION_ANNOTATION) != hashes.VERSION:
        return False
    stamped = annotations.get(names.NODE_POOL_HASH_ANNOTATION)
    return stamped is not None and stamped != hashes.hash_of(pool)


def _against_requirements(claim: NodeClaim, pool: NodePool) -> bool:
    labels = {key_of(key): value for key, value in claim.metadata.labels.items()}
    if names.ZONE_LABEL in labels:
        labels[names.ZONE_LABEL] = zone_of(labels[names.ZONE_LABEL])
    try:
        asked = from_expressions(in_catalogue_names(pool.spec.template.spec.requirements))
    except RequirementError:
        return False  # the pool says nothing that a machine could be held to
    return any(not requirement.meets(labels.get(key)) for key, requirement in asked.items())


def _old_enough(claim: NodeClaim, now: dt.datetime) -> bool:
    created = claim.metadata.creation_timestamp
    return created is not None and now - created >= SETTLED


def _known(claim: NodeClaim, types: Mapping[str, InstanceType]) -> bool:
    """Whether the type is in the list, with an offering where and as the machine was bought."""
    labels = {key_of(key): value for key, value in claim.metadata.labels.items()}
    kind = types.get(labels.get(names.INSTANCE_TYPE_LABEL, "").lower())
    return kind is not None and any(_may_be(offering, labels) for offering in kind.offerings)


def _may_be(offering: Offering, labels: Mapping[str, str]) -> bool:
    terms = labels.get(names.CAPACITY_TYPE_LABEL)
    # Clouds sell by zone or by region, whichever of the two is the finer that they have.
    places = {zone_of(labels[key]) for key in (names.ZONE_LABEL, names.REGION_LABEL) if key in labels}
    if places and offering.zone not in places:
        return False
    # A reservation may end while the machine goes on as on-demand, before its label says so.
    allowed = {terms, names.ON_DEMAND} if terms == names.RESERVED else {terms}
    return terms is None or offering.capacity_type in allowed
