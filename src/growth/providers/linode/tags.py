"""How a machine and a pool say whose they are: tags, at most 50 characters each. Pure.

Written with `:`, read with `:` and `=`. What is too long for a tag is shortened and gets a digest, so that two names that
begin alike stay two.
"""

import dataclasses
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.providers import numbered

LONGEST: Final = 50
SHORTEST: Final = 3
SEPARATOR: Final = ":"
SEPARATORS: Final = (":", "=")
_DIGEST: Final = 8

CLAIM: Final = "karpenter.sh/nodeclaim"
NODE_POOL: Final = "karpenter.sh/nodepool"
GROWTH_POOL: Final = "growth.dev/pool"
NO_POOL: Final = "growth.dev/no-pool"
GROUPS: Final = (NODE_POOL, GROWTH_POOL, NO_POOL)
CLUSTER: Final = "growth.dev/cluster"
UID: Final = "growth.dev/uid"
NODE_CLASS: Final = "growth.dev/nodeclass"
CLASS_HASH: Final = "growth.dev/class-hash"
MANAGED: Final = "karpenter.k8s.linode/lke-managed"
# LKE's own, on machines of the enterprise tier.
LKE_POOL: Final = "nodepool"

OURS: Final = (CLAIM, *GROUPS, CLUSTER, UID, NODE_CLASS, CLASS_HASH, MANAGED)
SCHEME: Final = "linode://"
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_LKE: Final = re.compile(r"lke\d+", re.ASCII)
_PLAIN: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)


def tag(key: str, value: str) -> str:
    return f"{key}{SEPARATOR}{fitted(key, value)}"


def fitted(key: str, value: str) -> str:
    """The value where the tag can hold it, else its beginning and a digest."""
    room = LONGEST - len(key) - len(SEPARATOR)
    if len(value) <= room:
        return value
    digest = hashlib.sha256(value.encode()).hexdigest()[:_DIGEST]
    return f"{value[: room - _DIGEST - 1]}-{digest}"


def values(tags: Iterable[str], key: str) -> list[str]:
    """Of all tags of that key."""
    return [
        each[len(key) + 1 :] for each in tags if each.startswith(key) and each[len(key) : len(key) + 1] in SEPARATORS
    ]


def value(tags: Iterable[str], key: str) -> str:
    return next(iter(values(tags, key)), "")


def has(tags: Iterable[str], key: str, wanted: str) -> bool:
    """Exactly: not a part of a longer one."""
    return fitted(key, wanted) in values(tags, key)


def is_ours(text: str) -> bool:
    """Whether a tag is one that Growth itself writes or reads."""
    return any(text == key or values((text,), key) for key in OURS)


def is_lkes(text: str) -> bool:
    """Whether LKE writes it on machines of the enterprise tier, and Growth reads there in which pool they are."""
    return bool(values((text,), LKE_POOL) or _LKE.fullmatch(text))


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Key:
    """Of one pool at LKE: a pool of the cluster's (by API group and name) and a type. The name is as tags hold it.

    So a claim and the tags of its machine give the same key, however long the name is.
    """

    group: str
    pool: str
    type: str

    @property
    def tag(self) -> str:
        return tag(self.group, self.pool)

    def __str__(self) -> str:
        return f"{self.pool}/{self.type}"

    def fits(self, tags: Iterable[str], type_: str) -> bool:
        return type_ == self.type and has(tags, self.group, self.pool)


def key_of(claim: NodeClaim, type_: str) -> Key:
    held = claim.metadata.labels
    for label, group in ((names.NODE_POOL_LABEL, NODE_POOL), (names.POOL_LABEL, GROWTH_POOL)):
        if held.get(label):
            return Key(group, fitted(group, held[label]), type_)
    return Key(NO_POOL, "true", type_)


def key_of_tags(tags: Sequence[str], type_: str) -> Key | None:
    """As the tags of a pool say, with whichever separator; None where they say nothing, or two things."""
    found = {(group, each) for group in GROUPS for each in values(tags, group)}
    return Key(*found.pop(), type_) if len(found) == 1 else None


def of_pool(key: Key, *, cluster: str, node_class: str) -> list[str]:
    """Whose the pool is. Never a claim's: a pool has many."""
    return [tag(CLUSTER, cluster), key.tag, tag(MANAGED, "true"), tag(NODE_CLASS, node_class)]


def of_machine(
    claim: NodeClaim, key: Key, *, cluster: str, class_hash: str, more: Sequence[str], already: Sequence[str]
) -> list[str]:
    """All tags of a claimed machine: those that it has, the class' own, and whose it is. Ours cannot be overruled."""
    ours = [
        *of_pool(key, cluster=cluster, node_class=claim.spec.node_class_ref.name),
        tag(CLAIM, claim.metadata.name),
        tag(UID, uid_value(claim.metadata.uid)),
        tag(CLASS_HASH, class_hash),
    ]
    kept = [each for each in already if not is_ours(each)]
    return list(dict.fromkeys([*kept, *(each for each in more if not is_ours(each)), *ours]))


def without_claim(tags: Sequence[str]) -> list[str]:
    """The machine is nobody's again."""
    return [each for each in tags if not any(values((each,), key) for key in (CLAIM, UID, CLASS_HASH))]


def handed(tags: Sequence[str], claim: NodeClaim, *, key: Key, cluster: str) -> list[str]:
    """The machine is that claim's, whosever it was. What says whose its pool is is added where it is missing; all else stays."""
    kept = [each for each in tags if not any(values((each,), own) for own in (CLAIM, UID))]
    whole = of_pool(key, cluster=cluster, node_class=claim.spec.node_class_ref.name)
    lacking = [each for each in whole if not _tell_of(kept, each)]
    return [*kept, *lacking, tag(CLAIM, claim.metadata.name), tag(UID, uid_value(claim.metadata.uid))]


def _tell_of(tags: Sequence[str], wanted: str) -> bool:
    """Whether one of the tags says what `wanted` says, or something else of it. A pool is of one of three groups."""
    about = next(key for key in OURS if values((wanted,), key))
    return any(values(tags, key) for key in (GROUPS if about in GROUPS else (about,)))


def uid_value(uid: str) -> str:
    """A UUID without its dashes: with them a tag could not hold it."""
    return uid.replace("-", "") if _UUID.fullmatch(uid) else uid


def uid_of(tags: Iterable[str]) -> str:
    held = value(tags, UID)
    if not _PLAIN.fullmatch(held):
        return held
    return f"{held[:8]}-{held[8:12]}-{held[12:16]}-{held[16:20]}-{held[20:]}"


def holds(tags: Sequence[str], claim: NodeClaim) -> bool:
    """Whether the machine is this claim's, by name and UID."""
    return has(tags, CLAIM, claim.metadata.name) and has(tags, UID, uid_value(claim.metadata.uid))


def is_for(tags: Sequence[str], claim: NodeClaim) -> bool:
    """As `holds`; by the name alone where somebody took the UID off."""
    return holds(tags, claim) or (has(tags, CLAIM, claim.metadata.name) and not values(tags, UID))


def identity_of(tags: Sequence[str]) -> str:
    """The UID of the claim that has the machine; without one its name, as tags hold it. Empty where it has none."""
    return uid_of(tags) or value(tags, CLAIM)


def provider_id(number: int) -> str:
    """As Linode's cloud controller manager writes it."""
    return f"{SCHEME}{number}"


def number_of(provider_id_: str) -> int | None:
    """The machine's number; None where the ID is another cloud's."""
    return numbered.number_of(provider_id_, scheme=SCHEME)
