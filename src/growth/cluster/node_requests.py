"""NodeRequests that no NodeClaim fulfils yet: machines in flight all the same, and types that the cloud had none of."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

from growth.api import names
from growth.api.growthpools import GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClassReference, Requirement
from growth.api.meta import ObjectMeta

_IN_FLIGHT = frozenset({"", "Pending", "Provisioning"})
_UNMET = "Unmet"
_NO_CLASS = NodeClassReference(group=names.GROWTH, kind="", name="")


def server_type(request: NodeRequest) -> str:
    """The type that is asked for: `cax11` of `hetzner-cax11`."""
    return request.spec.target_offering.partition("-")[2]


def claims_to_come(
    requests: Iterable[NodeRequest], claims: Iterable[NodeClaim], pools: Mapping[str, GrowthPool]
) -> Iterator[NodeClaim]:
    """The claims that will fulfil the requests, as far as they are not there: exactly the type, in any place."""
    known = {claim.metadata.name for claim in claims}
    for request in requests:
        if request.status.phase not in _IN_FLIGHT or request.status.node_claim_name in known:
            continue
        template = pools[request.spec.pool].spec.template if request.spec.pool in pools else None
        wanted = Requirement(key=names.INSTANCE_TYPE_LABEL, operator="In", values=(server_type(request),))
        labels = {**(template.labels if template else {}), names.POOL_LABEL: request.spec.pool}
        yield NodeClaim(
            metadata=ObjectMeta(
                name=request.metadata.name,
                labels=labels,
                deletion_timestamp=request.metadata.deletion_timestamp,
            ),
            spec=NodeClaimSpec(
                node_class_ref=_NO_CLASS,
                requirements=(wanted,),
                taints=template.taints if template else (),
                startup_taints=template.startup_taints if template else (),
            ),
        )


def unmet_types(requests: Iterable[NodeRequest], now: dt.datetime) -> dict[str, set[str]]:
    """By pool: the types, in lower case, that nobody asks for before their time is over."""
    found: dict[str, set[str]] = {}
    for request in requests:
        until = request.status.unmet_until
        if request.status.phase == _UNMET and until is not None and until > now:
            found.setdefault(request.spec.pool, set()).add(server_type(request).lower())
    return found
