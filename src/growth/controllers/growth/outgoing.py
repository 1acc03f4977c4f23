"""Which machines NodeRemovalRequests are of: people may name the claim, the Node or both. Pure."""

import dataclasses
from collections.abc import Iterable

from growth.api.growthpools import NodeRemovalRequest
from growth.api.karpenter import NodeClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Outgoing:
    """Names of the claims that removals are of, and of Nodes where no claim is named."""

    claims: frozenset[str]
    nodes: frozenset[str]

    def has(self, claim: NodeClaim) -> bool:
        return claim.metadata.name in self.claims or claim.status.node_name in self.nodes


def outgoing(removals: Iterable[NodeRemovalRequest]) -> Outgoing:
    claims: set[str] = set()
    nodes: set[str] = set()
    for spec in (each.spec for each in removals):
        if spec.node_claim_name is not None:
            claims.add(spec.node_claim_name)
        elif spec.node_name is not None:
            nodes.add(spec.node_name)
    return Outgoing(frozenset(claims), frozenset(nodes))
