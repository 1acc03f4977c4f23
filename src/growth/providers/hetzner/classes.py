"""What a HetznerNodeClass asks for, judged: what is wrong with it in words, and the hash by which drift is seen. Pure."""

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from growth.api.nodeclasses import HetznerInventoryMachine, HetznerNodeClass, HetznerNodeClassSpec
from growth.providers.catalogues import hetzner as listed
from growth.providers.hetzner import owned
from growth.providers.learning import Sizes, sizes
from growth.providers.nodeclasses import Problem
from growth.units.resources import Amounts

# Of the hash's content: another version is not comparable, and nothing counts as drifted for it.
HASH_VERSION: Final = "v1"
DEFAULT_IMAGE: Final = "ubuntu-24.04"
# The vendor's limits of a label.
LABEL_CHARACTERS: Final = 63
_PREFIX: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9._]*[A-Za-z0-9])?", re.ASCII)

# Names that no machine which people own may have.
CLOUD_TYPES: Final = frozenset({kind.name for kind in listed.catalogue().types} | set(listed.SUCCESSORS))

# Reasons of the condition ValidationSucceeded.
INVALID_LABELS: Final = "InvalidLabels"
NO_NETWORK: Final = "NoNetwork"
NO_IMAGE: Final = "ImageMissing"
INVALID_INVENTORY: Final = "InvalidInventory"


def hash_of(spec: HetznerNodeClassSpec) -> str:
    """Equal for classes whose machines would be equal. Where machines may be, and which are owned, concerns no machine."""
    content = {
        "image": spec.image,
        "sshKeys": sorted(map(str, spec.ssh_keys)),
        "networks": sorted(map(str, spec.networks)),
        "firewalls": sorted(map(str, spec.firewalls)),
        "placementGroup": spec.placement_group,
        "publicNet": [spec.public_net.ipv4, spec.public_net.ipv6],
        "backups": spec.backups,
        "maxPods": spec.max_pods,
        "labels": spec.labels,
        "userData": spec.user_data,
    }
    digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
    return f"{HASH_VERSION}-{digest}"


def hashes_of(spec: HetznerNodeClassSpec) -> frozenset[str]:
    """Of the class by which machines are bought, and of each type that it lists: those no class makes."""
    types = {machine.server_type.lower(): machine for machine in spec.inventory}
    told = (owned.figures(machine) for machine in types.values())
    return frozenset((hash_of(spec), *(one.hash for one in told if one is not None)))


def learned_sizes(node_class: HetznerNodeClass) -> Sizes:
    """What machines of the class, as it is now, turned out to hold; never more pods than the class allows."""
    learned, most = node_class.status.learned_types, node_class.spec.max_pods
    known = sizes(learned, made=hashes_of(node_class.spec)) if learned else {}
    return {name: (at_most(has, most), at_most(leaves, most)) for name, (has, leaves) in known.items()}


def at_most(size: Amounts, pods: int | None) -> Amounts:
    """The size with at most so many pods; None: as many as it has."""
    if pods is None:
        return size
    return {name: min(amount, pods) if name == "pods" else amount for name, amount in size.items()}


def comparable(hash_: str) -> bool:
    """Whether a hash on a machine was made as ours are."""
    return hash_.startswith(f"{HASH_VERSION}-")


def problems(spec: HetznerNodeClassSpec) -> Iterator[Problem]:
    """What is wrong with the class whatever the account holds. What the API server refuses is not asked again."""
    for key, value in sorted(spec.labels.items()):
        if not _label_key(key):
            yield Problem(
                INVALID_LABELS,
                f"spec.labels: {key!r} is no key that Hetzner takes: write [domain/]name, the name at most 63 letters,"
                " digits, -, _ and . between letters or digits",
            )
        elif value and (len(value) > LABEL_CHARACTERS or not _NAME.fullmatch(value)):
            yield Problem(
                INVALID_LABELS,
                f"spec.labels: the value of {key} is none that Hetzner takes: at most 63 letters, digits, -, _ and ."
                " between letters or digits",
            )
    if not spec.public_net.ipv4 and not spec.public_net.ipv6 and not spec.networks:
        yield Problem(
            NO_NETWORK,
            "spec.publicNet: without public addresses the machines need a private network: name one in spec.networks,"
            " or allow ipv4 or ipv6",
        )
    if spec.user_data is not None and spec.user_data.mode == "talos" and spec.image is None:
        yield Problem(
            NO_IMAGE,
            "spec.image: Talos needs a snapshot of its own, and snapshots have no names: give it a label, and write that into"
            " spec.image.selector",
        )
    for told in _of_inventory(spec.inventory):
        yield Problem(INVALID_INVENTORY, f"spec.inventory: {told}")


def _of_inventory(machines: Sequence[HetznerInventoryMachine]) -> Iterator[str]:
    numbers: set[int] = set()
    first: dict[str, tuple[str, owned.Figures]] = {}
    for machine in machines:
        kind = machine.server_type
        if machine.server_number in numbers:
            yield f"machine {machine.server_number} is listed twice: remove one of them"
        numbers.add(machine.server_number)
        if kind.lower() in CLOUD_TYPES:
            yield f"{kind} ({machine.name}) is a type of Hetzner Cloud: give the type of the machine that you own"
            continue
        found = owned.figures(machine)
        if found is None:
            missing = ", ".join(owned.lacking(machine))
            yield f"what a {kind} ({machine.name}) is and costs is not known: give its {missing}"
            continue
        other, alike = first.setdefault(found.name, (machine.name, found))
        if alike.of_type != found.of_type:
            yield (
                f"{other} and {machine.name} are both {kind}, and differ in capacity, architecture or price: give one of"
                " them a serverType of its own"
            )


def _label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _PREFIX.fullmatch(prefix)):
        return False
    return len(name) <= LABEL_CHARACTERS and bool(_NAME.fullmatch(name))
