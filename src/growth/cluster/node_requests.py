"""NodeRequests as everybody counts them: machines in flight all the same, and offerings that the cloud refused."""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from growth.api import names
from growth.api.growthpools import (
    DEPROVISIONING,
    PENDING,
    PROVISIONING,
    UNMET,
    GrowthPool,
    NodeRequest,
    UnmetOffering,
)
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClassReference, Requirement
from growth.api.meta import ObjectMeta

# Phases in which a request stands for a machine whether or not its claim is there.
COUNTED: Final = frozenset({"", PENDING, PROVISIONING, DEPROVISIONING})
_IN_FLIGHT: Final = frozenset({"", PENDING, PROVISIONING})
_NO_CLASS: Final = NodeClassReference(group=names.GROWTH, kind="", name="")
# A claim's name becomes a Node's name and a label's value.
_CLAIM_NAME: Final = 63
_UUID: Final = 36
_DIGEST: Final = 10


def offering_name(cloud: str, server_type: str) -> str:
    """As requests name what they ask for: `hetzner-cax11`. The cloud is the catalogue's, not who plays it."""
    return f"{cloud}-{server_type.lower()}"


def server_type(request: NodeRequest) -> str:
    """The type that is asked for: `cax11` of `hetzner-cax11`."""
    return request.spec.target_offering.partition("-")[2]


def cloud_of(request: NodeRequest) -> str:
    return request.spec.target_offering.partition("-")[0]


def claim_name(request: str) -> str:
    """The name of the claim that fulfils the request of this name: the same, shortened at the front where it is too long.

    Derived, so that a repeated attempt finds the first claim. A long name keeps its uuid, or gets a digest.
    """
    if len(request) <= _CLAIM_NAME:
        return request
    ending = request[-(_UUID + 1) :]
    if not ending.startswith("-"):
        ending = f"-{hashlib.sha256(request.encode()).hexdigest()[:_DIGEST]}"
    return f"{request[: _CLAIM_NAME - len(ending)].rstrip('-.')}{ending}"


def claims_to_come(
    requests: Iterable[NodeRequest], claims: Iterable[NodeClaim], pools: Mapping[str, GrowthPool]
) -> Iterator[NodeClaim]:
    """The claims that will fulfil the requests, as far as they are not there."""
    known = {claim.metadata.name for claim in claims}
    for request in requests:
        if request.status.phase not in _IN_FLIGHT or request.status.node_claim_name in known:
            continue
        if claim_name(request.metadata.name) not in known:
            yield claim_to_come(request, pools.get(request.spec.pool))


def claim_to_come(request: NodeRequest, pool: GrowthPool | None) -> NodeClaim:
    """What the request's claim will ask for: exactly the type, in any place that its pods can use."""
    template = pool.spec.template if pool is not None else None
    wanted = Requirement(key=names.INSTANCE_TYPE_LABEL, operator="In", values=(server_type(request),))
    labels = {**(template.labels if template else {}), names.POOL_LABEL: request.spec.pool}
    return NodeClaim(
        metadata=ObjectMeta(
            name=claim_name(request.metadata.name),
            labels=labels,
            annotations=_carried(request),
            deletion_timestamp=request.metadata.deletion_timestamp,
        ),
        spec=NodeClaimSpec(
            node_class_ref=_NO_CLASS,
            requirements=(*request.spec.requirements, wanted),
            taints=template.taints if template else (),
            startup_taints=template.startup_taints if template else (),
        ),
    )


def _carried(request: NodeRequest) -> dict[str, str]:
    """What the claim will say of the pods that it is bought for."""
    text = request.metadata.annotations.get(names.BOUGHT_FOR_ANNOTATION)
    return {} if text is None else {names.BOUGHT_FOR_ANNOTATION: text}


def unmet_types(requests: Iterable[NodeRequest], now: dt.datetime) -> dict[str, set[str]]:
    """By pool: the types, in lower case, that nobody asks for before their time is over."""
    found: dict[str, set[str]] = {}
    for request in requests:
        until = request.status.unmet_until
        if request.status.phase == UNMET and until is not None and until > now:
            found.setdefault(request.spec.pool, set()).add(server_type(request).lower())
    return found


def for_sale(kind: InstanceType) -> tuple[Offering, ...]:
    """The offerings that have a price."""
    return tuple(each for each in kind.offerings if each.price is not None)


def unmet_until(kind: InstanceType, offering: Offering, unmet: Iterable[UnmetOffering]) -> dt.datetime | None:
    """Until when the pool does not ask for the offering of the type; None where the cloud has not refused it."""
    found = (
        each.until
        for each in unmet
        if (each.type, each.location) == (kind.name.lower(), offering.zone)
        and each.capacity_type in {"", offering.capacity_type}
    )
    return max(found, default=None)


def unmet_everywhere_until(kind: InstanceType, unmet: Collection[UnmetOffering]) -> dt.datetime | None:
    """Until when the pool asks for the type nowhere; None where the cloud has not refused every offering."""
    found = [unmet_until(kind, offering, unmet) for offering in for_sale(kind)]
    known = [each for each in found if each is not None]
    return min(known) if known and len(known) == len(found) else None


def without_unmet(kind: InstanceType, unmet: Iterable[UnmetOffering]) -> InstanceType:
    """The type with every offering that the cloud refused marked as unavailable."""
    own = [each for each in unmet if each.type == kind.name.lower()]
    if not own:
        return kind
    offerings = (
        each if unmet_until(kind, each, own) is None else dataclasses.replace(each, available=False)
        for each in kind.offerings
    )
    return dataclasses.replace(kind, offerings=tuple(offerings))


def refused_offerings(kind: InstanceType, refused: Collection[Offering], until: dt.datetime) -> Iterator[UnmetOffering]:
    """One entry a location, or one a capacity type where the location sells more of them than were refused."""
    for zone in sorted({each.zone for each in refused}):
        sold = {each.capacity_type for each in for_sale(kind) if each.zone == zone}
        terms = {each.capacity_type for each in refused if each.zone == zone}
        for term in [""] if terms >= sold else sorted(terms):
            yield UnmetOffering(type=kind.name.lower(), location=zone, until=until, capacity_type=term)
