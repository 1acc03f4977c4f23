"""Nodes and claims in files that leave to each other what a server would have on both."""

from collections.abc import Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node

_MARKS: Final = {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true"}
# What belongs to the Node alone.
_OWN: Final = frozenset({*_MARKS, names.HOSTNAME_LABEL})


def completed(nodes: Sequence[Node], claims: Sequence[NodeClaim]) -> tuple[tuple[Node, ...], tuple[NodeClaim, ...]]:
    """Nodes whose claim is initialised have the labels that say so, and such claims the labels of their machine.

    On a server a Node without them has come up anew and is not itself yet, and a claim without the label that its pool
    asks for has drifted. A file is written by a person, who need not write everything twice.
    """
    ready = {
        claim.status.provider_id
        for claim in claims
        if claim.status.provider_id and is_true(claim.status.conditions, names.INITIALIZED)
    }
    found = {node.spec.provider_id: node for node in nodes if node.spec.provider_id in ready}
    return (
        tuple(_marked(node) if node.spec.provider_id in found else node for node in nodes),
        tuple(_labelled(claim, found.get(claim.status.provider_id)) for claim in claims),
    )


def _marked(node: Node) -> Node:
    meta = msgspec.structs.replace(node.metadata, labels={**_MARKS, **node.metadata.labels})
    return msgspec.structs.replace(node, metadata=meta)


def _labelled(claim: NodeClaim, node: Node | None) -> NodeClaim:
    if node is None:
        return claim
    machine = {key: value for key, value in node.metadata.labels.items() if key not in _OWN}
    meta = msgspec.structs.replace(claim.metadata, labels={**machine, **claim.metadata.labels})
    return msgspec.structs.replace(claim, metadata=meta)
