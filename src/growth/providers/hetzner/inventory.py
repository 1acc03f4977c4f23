"""Dedicated machines that people own: listed in a class, booked for a claim, given back when the claim goes.

Nothing is ordered, installed, wiped or cancelled: a machine joins by itself, or by whoever installs it, with the provider ID
`hrobot://<number>`. A booking is a ConfigMap named by the machine's number, so two claims cannot have one machine, and one
that names its claim, so a repeated purchase finds the first.
"""

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.clouds import CloudMachine, InvariantViolation, MachineNotFound
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.karpenter import NodeClaim
from growth.api.nodeclasses import HetznerInventoryMachine, HetznerNodeClass
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.kube.whole import every
from growth.providers import numbered
from growth.providers.choice import Choice
from growth.providers.hetzner.owned import Figures, figures
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, amounts, quantities

# As Hetzner's cloud controller manager calls them.
SCHEME: Final = "hrobot://"
LABEL: Final = "growth.dev/hetzner-inventory"
PREFIX: Final = "hetzner-robot-"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One machine that a claim has."""

    number: int
    claim: str
    claim_uid: str
    type: str
    machine: CloudMachine
    uid: str
    hash: str
    """Of what its entry said of it when it was booked; empty where that was not written."""


class Inventory:
    """One per process. `api` keeps the bookings in Growth's own namespace."""

    def __init__(self, api: Api, *, cluster: str, namespace: str) -> None:
        self._api = api
        self._cluster = cluster
        self._namespace = namespace
        self._taking = asyncio.Lock()

    async def bookings(self) -> Sequence[Booking]:
        """All of this cluster."""
        found = await every(self._api, CONFIG_MAP, namespace=self._namespace, labels=f"{LABEL}={self._cluster}")
        return [booking for booking in map(_read, found) if booking is not None]

    async def of_claim(self, claim: NodeClaim) -> Booking | None:
        """The machine that the claim has already."""
        uid = claim.metadata.uid
        return next((each for each in await self.bookings() if each.claim_uid == uid), None)

    async def take(self, claim: NodeClaim, option: Choice, node_class: HetznerNodeClass) -> Booking | None:
        """Books a machine of the type for the claim; None where all are taken."""
        async with self._taking:
            known = await self.of_claim(claim)
            if known is not None:
                return known
            booked = {each.number for each in await self.bookings()}
            for machine in node_class.spec.inventory:
                known_of_it = figures(machine)
                if known_of_it is None or machine.server_number in booked:
                    continue
                if (known_of_it.name, known_of_it.location) != (option.type.name, option.offering.zone):
                    continue
                try:
                    made = await self._api.create(
                        CONFIG_MAP, self._body(claim, machine, option, known_of_it), namespace=self._namespace
                    )
                except AlreadyExists:
                    continue  # another process was first, or another cluster's booking has that name here
                return _read(made)
            return None

    async def give_back(self, claim: NodeClaim) -> None:
        """Ends the booking of the claim's machine. `MachineNotFound` where it has none."""
        number = number_of(claim.status.provider_id)
        if claim.status.provider_id and number is None:
            raise InvariantViolation(f"{claim.status.provider_id!r} is no dedicated machine")
        found = await self.of_claim(claim)
        if found is None or (number is not None and found.number != number):
            raise MachineNotFound(f"claim {claim.metadata.name} has no dedicated machine")
        try:
            await self._api.delete(CONFIG_MAP, f"{PREFIX}{found.number}", namespace=self._namespace, uid=found.uid)
        except NotFound:
            raise MachineNotFound(f"claim {claim.metadata.name} has no dedicated machine") from None

    async def get(self, provider_id: str) -> CloudMachine:
        number = number_of(provider_id)
        found = next((each for each in await self.bookings() if each.number == number), None)
        if found is None:
            raise MachineNotFound(f"no claim has the dedicated machine {provider_id}")
        return found.machine

    async def made_by(self, provider_id: str) -> str:
        """The hash of what the machine's entry said when it was booked; empty where no claim has it."""
        number = number_of(provider_id)
        return next((each.hash for each in await self.bookings() if each.number == number), "")

    def _body(
        self, claim: NodeClaim, machine: HetznerInventoryMachine, option: Choice, told: Figures
    ) -> Mapping[str, object]:
        return {
            "apiVersion": CONFIG_MAP.api_version,
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": f"{PREFIX}{machine.server_number}", "labels": {LABEL: self._cluster}},
            "data": {
                "claim": claim.metadata.name,
                "claimUID": claim.metadata.uid,
                "nodeClass": claim.spec.node_class_ref.name,
                "machine": machine.name,
                "hash": told.hash,
                "serverType": option.type.name,
                "zone": option.offering.zone,
                "architecture": option.labels.get(names.ARCH_LABEL, ""),
                "capacity": _written(option.type.capacity),
                "allocatable": _written(option.type.allocatable),
            },
        }


def number_of(provider_id: str) -> int | None:
    return numbered.number_of(provider_id, scheme=SCHEME)


def _read(item: ConfigMap) -> Booking | None:
    """None where somebody wrote something else into it: such a machine stays booked by its name."""
    data = item.data
    number, kind = item.metadata.name.removeprefix(PREFIX), data.get("serverType", "")
    if not number.isdigit() or not kind:
        return None
    zone, architecture = data.get("zone", ""), data.get("architecture", "")
    return Booking(
        number=int(number),
        claim=data.get("claim", ""),
        claim_uid=data.get("claimUID", ""),
        type=kind,
        uid=item.metadata.uid,
        hash=data.get("hash", ""),
        machine=CloudMachine(
            provider_id=f"{SCHEME}{number}",
            claim=data.get("claim", ""),
            claim_uid=data.get("claimUID", ""),
            instance_type=kind,
            zone=zone,
            capacity_type=names.ON_DEMAND,
            labels={
                **({names.ARCH_LABEL: architecture} if architecture else {}),
                names.OS_LABEL: "linux",
                names.INSTANCE_TYPE_LABEL: kind,
                names.ZONE_LABEL: zone,
                names.REGION_LABEL: zone,
                names.CAPACITY_TYPE_LABEL: names.ON_DEMAND,
            },
            capacity=_size(data.get("capacity", "")),
            allocatable=_size(data.get("allocatable", "")),
            created=item.metadata.creation_timestamp,
        ),
    )


def _written(size: Amounts) -> str:
    return msgspec.json.encode(quantities(size), order="sorted").decode()


def _size(text: str) -> Amounts:
    """As it was written; nothing where that cannot be read: it is not known then."""
    try:
        return amounts(msgspec.json.decode(text or "{}", type=dict[str, str]))
    except (msgspec.DecodeError, QuantityError):
        return {}
