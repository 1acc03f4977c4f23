"""Whose an instance is: its label is its claim's name, its tags say the rest. Also where somebody took some of them off. Pure.

A UID is one claim's and nobody else's, so it tells alone, unless another tag contradicts it.
"""

import hashlib
import re
from collections.abc import Iterable
from typing import Final

from growth.api.karpenter import NodeClaim
from growth.providers.linode import tags, wire

# Of a Node's label for its host name, which is the claim's name.
LONGEST: Final = 63
# The vendor's rule for labels, without its 64 characters: letters and digits, parted by single signs.
_LABEL: Final = re.compile(r"(?=.{3})[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*", re.ASCII)
_SIGNS: Final = re.compile(r"[-_.]{2,}", re.ASCII)
_DIGEST: Final = 8
# What a label can be that was made of a claim's name, which has no capitals and no underscores.
_MADE: Final = re.compile(r"[a-z0-9]+(?:[-.][a-z0-9]+)*", re.ASCII)


def label_of(claim: str) -> str:
    """How the claim's machine is called: as the claim where the vendor takes it, else nearly so, with a digest of its name."""
    if _LABEL.fullmatch(claim):
        return claim
    digest = hashlib.sha256(claim.encode()).hexdigest()[:_DIGEST]
    return f"{_SIGNS.sub('-', claim)[: LONGEST - _DIGEST - 1].rstrip('-_.')}-{digest}"


def is_by_uid(instance: wire.Instance, claim: NodeClaim, *, cluster: str) -> bool:
    """Whether the machine has the claim's UID, and no tag of another claim or cluster."""
    return _has_uid(instance, claim) and not _contradicts(instance, claim, cluster=cluster)


def is_by_name(instance: wire.Instance, claim: NodeClaim, *, cluster: str) -> bool:
    """Whether the claim names the machine, and its UID or, without one, its label is the claim's. No tag may contradict it."""
    if claim.status.provider_id != tags.provider_id(instance.id) or _contradicts(instance, claim, cluster=cluster):
        return False
    called = not tags.values(instance.tags, tags.UID) and instance.label == label_of(claim.metadata.name)
    return called or _has_uid(instance, claim)


def _has_uid(instance: wire.Instance, claim: NodeClaim) -> bool:
    return tags.values(instance.tags, tags.UID) == [tags.fitted(tags.UID, tags.uid_value(claim.metadata.uid))]


def _contradicts(instance: wire.Instance, claim: NodeClaim, *, cluster: str) -> bool:
    said = ((tags.CLUSTER, cluster), (tags.CLAIM, claim.metadata.name))
    return any(tags.values(instance.tags, key) not in ([], [tags.fitted(key, value)]) for key, value in said)


def missing(instance: wire.Instance, claim: NodeClaim, *, cluster: str) -> list[str]:
    """The tags that the claim's machine would have, and this one has not."""
    said = (
        (tags.CLUSTER, cluster),
        (tags.CLAIM, claim.metadata.name),
        (tags.UID, tags.uid_value(claim.metadata.uid)),
    )
    return [tags.tag(key, value) for key, value in said if not tags.has(instance.tags, key, value)]


def name_of(instance: wire.Instance, claims: Iterable[NodeClaim]) -> str:
    """Of the claim for which a machine without its tag was bought: one of these, by the UID or the label, else what the label says.

    Empty where the label was made of no claim's name: then nobody can tell.
    """
    listed = list(claims)
    for each in listed:
        if _has_uid(instance, each):
            return each.metadata.name
    for each in listed:
        if label_of(each.metadata.name) == instance.label:
            return each.metadata.name
    return instance.label if len(instance.label) <= LONGEST and _MADE.fullmatch(instance.label) else ""
