"""How a machine says whose it is: the labels that it is bought with, its name and its ID. Pure."""

import hashlib
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.providers import numbered
from growth.providers.hetzner.classes import LABEL_CHARACTERS

SCHEME: Final = "hcloud://"

CLUSTER: Final = "growth.dev/cluster"
CLAIM: Final = "growth.dev/claim"
CLAIM_UID: Final = "growth.dev/claim-uid"
POOL: Final = "growth.dev/pool"
NODE_CLASS: Final = "growth.dev/nodeclass"
CLASS_HASH: Final = "growth.dev/nodeclass-hash"
IMAGE: Final = "growth.dev/image"

DELETING: Final = "deleting"
OFF: Final = "off"
_DIGEST: Final = 10


def of_machine(
    claim: NodeClaim, *, cluster: str, class_hash: str, image: int, more: Mapping[str, str]
) -> dict[str, str]:
    """`more` are the class' own; ours cannot be overruled."""
    held = claim.metadata.labels
    pool = held.get(names.NODE_POOL_LABEL) or held.get(names.POOL_LABEL) or ""
    return {
        **more,
        CLUSTER: cluster,
        CLAIM: claim.metadata.name,
        CLAIM_UID: claim.metadata.uid,
        NODE_CLASS: label_value(claim.spec.node_class_ref.name),
        CLASS_HASH: class_hash,
        IMAGE: str(image),
        **({POOL: label_value(pool)} if pool else {}),
    }


def selector(cluster: str) -> str:
    return f"{CLUSTER}={cluster}"


def label_value(text: str) -> str:
    """The text where a label can hold it, else its beginning and a digest."""
    if len(text) <= LABEL_CHARACTERS:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:_DIGEST]
    return f"{text[: LABEL_CHARACTERS - _DIGEST - 1].rstrip('-._')}-{digest}"


def provider_id(number: int) -> str:
    """As Hetzner's cloud controller manager writes it."""
    return f"{SCHEME}{number}"


def number_of(provider_id_: str) -> int | None:
    """The machine's number; None where the ID is another cloud's."""
    return numbered.number_of(provider_id_, scheme=SCHEME)
