"""What dedicated machines are that people own: their figures by the class that lists them, and types made of them. Pure.

The figures of GEX44 are built in, and what its entry says counts more; of every other type the entry says them all. A figure
that nobody gave is not guessed: the machine is no part of any type then.
"""

import dataclasses
import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.nodeclasses import HetznerInventoryMachine
from growth.providers.catalogues import hetzner as listed
from growth.units.errors import MoneyError, QuantityError
from growth.units.money import Money
from growth.units.resources import Amounts, amounts

# What a machine's entry must say of its size.
SIZE: Final = ("cpu", "memory", "ephemeral-storage")
# Of the hash's content.
HASH_VERSION: Final = "owned-v1"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of one machine. `monthly` is in billionths."""

    name: str
    capacity: Amounts
    architecture: str
    location: str
    monthly: int

    @property
    def of_type(self) -> tuple[Amounts, str, int]:
        """What all machines of a type have in common."""
        return (self.capacity, self.architecture, self.monthly)

    @property
    def hash(self) -> str:
        """Equal for machines that are told to be equal: what Nodes of such a one reported counts until it is told otherwise."""
        content = {"type": self.name, "capacity": self.capacity, "architecture": self.architecture}
        digest = hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]
        return f"{HASH_VERSION}-{digest}"


def known_types() -> Mapping[str, InstanceType]:
    """Dedicated types whose figures are built in."""
    return {kind.name: kind for kind in listed.catalogue(dedicated=True).types if kind.owned}


def figures(machine: HetznerInventoryMachine) -> Figures | None:
    """None where one of them is not known."""
    capacity, architecture, location, monthly = _figures(machine)
    if any(name not in capacity for name in SIZE) or not architecture or not location or monthly is None:
        return None
    return Figures(
        name=machine.server_type.lower(),
        capacity=capacity,
        architecture=architecture,
        location=location,
        monthly=monthly,
    )


def lacking(machine: HetznerInventoryMachine) -> Iterator[str]:
    """The fields that its entry must give besides, or give anew."""
    capacity, architecture, location, monthly = _figures(machine)
    if missing := [name for name in SIZE if name not in capacity]:
        yield f"capacity ({', '.join(missing)})"
    if not architecture:
        yield "architecture"
    if not location:
        yield "location"
    if monthly is None:
        yield "monthlyPrice"


def owned_types(machines: Iterable[HetznerInventoryMachine], booked: Collection[int]) -> tuple[InstanceType, ...]:
    """The types of the machines, each to be had in a place as long as one of them is free there."""
    found: dict[str, list[tuple[Figures, bool]]] = {}
    for machine in machines:
        one = figures(machine)
        if one is not None:
            found.setdefault(one.name, []).append((one, machine.server_number not in booked))
    return tuple(_type(name, of_type) for name, of_type in sorted(found.items()))


def _type(name: str, machines: Sequence[tuple[Figures, bool]]) -> InstanceType:
    """Where classes tell one type differently the least that each has counts, and the highest price."""
    (first, _), *_rest = machines
    sizes = [one.capacity for one, _ in machines]
    least = {
        resource: min(size[resource] for size in sizes)
        for resource in first.capacity
        if all(resource in size for size in sizes)
    }
    alike = [(one, free) for one, free in machines if one.architecture == first.architecture]
    made = listed.owned_type(
        name,
        least,
        architecture=first.architecture,
        monthly=Money(max(one.monthly for one, _ in alike), listed.CURRENCY),
        locations=sorted({one.location for one, _ in alike}),
    )
    free_in = {one.location for one, free in alike if free}
    offerings = tuple(dataclasses.replace(each, available=each.zone in free_in) for each in made.offerings)
    return dataclasses.replace(made, offerings=offerings)


def _figures(machine: HetznerInventoryMachine) -> tuple[Amounts, str, str, int | None]:
    """As they are given, and else as they are built in; what is neither is left out."""
    known = known_types().get(machine.server_type.lower())
    capacity: Amounts = {"pods": listed.PODS}
    architecture, location, monthly = machine.architecture or "", machine.location or "", _price(machine.monthly_price)
    if known is not None:
        (offering,) = known.offerings
        capacity = known.capacity
        architecture = architecture or known.labels[names.ARCH_LABEL][0]
        location = location or offering.zone
        if monthly is None and machine.monthly_price is None and offering.billing is not None:
            monthly = offering.billing.monthly_cap
    try:
        capacity = {**capacity, **amounts(machine.capacity)}
    except QuantityError:
        capacity = {}
    return {name: amount for name, amount in capacity.items() if amount > 0}, architecture, location, monthly


def _price(text: str | None) -> int | None:
    try:
        nano = -1 if text is None else Money.parse(text, listed.CURRENCY).nano
    except MoneyError:
        return None
    return nano if nano >= 0 else None
