"""The claim that fulfils a NodeRequest, and the requests and removals themselves as they are created. Pure.

Everything that must be true of a claim from its first moment is in the one body: owned by the pool (and never by the
request, whose end must not take a healthy machine along), with finalizer and pool label, of exactly one type.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from growth.api import names
from growth.api.growthpools import (
    GROWTH_POOL,
    NODE_REMOVAL_REQUEST,
    NODE_REQUEST,
    GrowthPool,
    NodeRemovalRequest,
    NodeRemovalRequestSpec,
    NodeRequest,
    NodeRequestSpec,
)
from growth.api.karpenter import NEVER, NodeClaim, NodeClaimSpec, NodeClassReference, Requirement
from growth.api.kinds import Json
from growth.api.meta import ObjectMeta, OwnerReference
from growth.cluster import hashes
from growth.cluster.node_requests import claim_name, server_type
from growth.cluster.pools import DEFAULT_CLASS
from growth.controllers.provisioning.claims import expressed
from growth.planning.plan import PlannedClaim
from growth.ports import Random
from growth.providers.contract import CloudProvider

# What an object may be called, less `-pool-` and a uuid.
_POOL_PART: Final = 253 - 42
# What the request, the pool and the claim say in other words already.
_SAID_ELSEWHERE: Final = frozenset({names.INSTANCE_TYPE_LABEL, names.HOSTNAME_LABEL, names.POOL_LABEL})


def request_name(pool: str, random: Random) -> str:
    """`<pool>-pool-<uuid>`."""
    return f"{pool[:_POOL_PART].rstrip('-.')}-pool-{random.uuid()}"


def node_class_of(pool: GrowthPool, provider: CloudProvider) -> NodeClassReference:
    """The class that the pool names, or the provider's class `default`."""
    if pool.spec.node_class_ref is not None:
        return pool.spec.node_class_ref
    kind = provider.node_classes[0]
    return NodeClassReference(group=kind.group, kind=kind.kind, name=DEFAULT_CLASS)


def owned_by(pool: GrowthPool) -> OwnerReference:
    return OwnerReference(
        api_version=GROWTH_POOL.api_version,
        kind=GROWTH_POOL.kind,
        name=pool.metadata.name,
        uid=pool.metadata.uid,
        block_owner_deletion=True,
    )


def needs_of(planned: PlannedClaim, pool: GrowthPool) -> tuple[Requirement, ...]:
    """What the planned pods need of the machine beyond its type and its pool's labels."""

    def found() -> Iterator[Requirement]:
        for key, need in sorted(planned.requirements.items()):
            if key not in _SAID_ELSEWHERE and key not in pool.spec.template.labels:
                yield from expressed(key, need)

    return tuple(found())


def request_body(
    name: str,
    *,
    offering: str,
    pool: GrowthPool,
    requirements: tuple[Requirement, ...] = (),
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    made = NodeRequest(
        metadata=ObjectMeta(
            name=name,
            labels={names.POOL_LABEL: pool.metadata.name},
            annotations=dict(annotations),
            owner_references=(owned_by(pool),),
        ),
        spec=NodeRequestSpec(target_offering=offering, pool=pool.metadata.name, requirements=requirements),
    )
    raw: Json = msgspec.to_builtins(made)
    return {"apiVersion": NODE_REQUEST.api_version, "kind": NODE_REQUEST.kind, **raw}


def claim_body(request: NodeRequest, pool: GrowthPool, uses: NodeClassReference, *, type_name: str) -> Json:
    """`type_name` is the type as the catalogue spells it."""
    template = pool.spec.template
    wanted = Requirement(key=names.INSTANCE_TYPE_LABEL, operator="In", values=(type_name or server_type(request),))
    made = NodeClaim(
        metadata=ObjectMeta(
            name=claim_name(request.metadata.name),
            labels={
                **template.labels,
                names.POOL_LABEL: pool.metadata.name,
                names.node_class_label(uses.group, uses.kind): uses.name,
            },
            annotations={
                **{
                    key: value
                    for key, value in request.metadata.annotations.items()
                    if key in {names.REPLACES_ANNOTATION, names.GIVEN_UP_ANNOTATION, names.BOUGHT_FOR_ANNOTATION}
                },
                names.NODE_REQUEST_ANNOTATION: request.metadata.uid,
                **hashes.stamp(pool),
            },
            finalizers=(names.TERMINATION_FINALIZER,),
            owner_references=(owned_by(pool),),
        ),
        spec=NodeClaimSpec(
            node_class_ref=uses,
            requirements=(*request.spec.requirements, wanted),
            taints=template.taints,
            startup_taints=template.startup_taints,
            expire_after=NEVER,
        ),
    )
    raw: Json = msgspec.to_builtins(made)
    raw["spec"].setdefault("expireAfter", NEVER)
    return raw


def fulfils(claim: NodeClaim, request: NodeRequest) -> bool:
    return claim.metadata.annotations.get(names.NODE_REQUEST_ANNOTATION) == request.metadata.uid


def removal_body(claim: NodeClaim, pool: GrowthPool | None, *, reason: str) -> Json:
    """One a claim: its name is the claim's."""
    made = NodeRemovalRequest(
        metadata=ObjectMeta(
            name=claim.metadata.name,
            labels={names.POOL_LABEL: claim.metadata.labels[names.POOL_LABEL]},
            owner_references=() if pool is None else (owned_by(pool),),
        ),
        spec=NodeRemovalRequestSpec(
            reason=reason, node_name=claim.status.node_name or None, node_claim_name=claim.metadata.name
        ),
    )
    raw: Json = msgspec.to_builtins(made)
    return {"apiVersion": NODE_REMOVAL_REQUEST.api_version, "kind": NODE_REMOVAL_REQUEST.kind, **raw}
