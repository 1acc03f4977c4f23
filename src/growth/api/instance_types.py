"""What a cloud sells: types of machines and, for each, the offerings (place, terms, price).

Values that providers make and planning reads. Prices are billionths of the catalogue's currency an hour.
"""

import dataclasses
import functools
from collections.abc import Mapping

from growth.api import names
from growth.units.resources import Amounts, subtract

Labels = Mapping[str, tuple[str, ...]]


@dataclasses.dataclass(frozen=True, slots=True)
class Billing:
    """How time becomes money: every `quantum` that has begun is paid whole, a month never for more than `monthly_cap`.

    The cap is in billionths of the catalogue's currency; None where there is none.
    """

    quantum_seconds: int
    monthly_cap: int | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Offering:
    """One way to buy a type. `price` None: the cloud names no price, so it is not for sale, whatever `available` says.

    A `spare` one is what another offering is too, under another name of its zone: for pods that select that name.
    """

    zone: str
    capacity_type: str
    price: int | None
    available: bool = True
    reservation: str = ""
    reservation_capacity: int = 0
    labels: Labels = dataclasses.field(default_factory=dict)
    billing: Billing | None = None
    spare: bool = False


@dataclasses.dataclass(frozen=True)
class InstanceType:
    """One type. `labels` are the values that a node's label may have: one, or several where the buyer may choose.

    Zone and capacity type belong to the offerings. `volume_limits` is how many volumes of a CSI driver fit. `owned` are
    machines that people own and no API sells: only a growth pool that names the type gets one.
    """

    name: str
    labels: Labels
    capacity: Amounts
    offerings: tuple[Offering, ...]
    overhead: Amounts = dataclasses.field(default_factory=dict)
    volume_limits: Mapping[str, int] = dataclasses.field(default_factory=dict)
    owned: bool = False

    @functools.cached_property
    def allocatable(self) -> Amounts:
        """What is left for pods, never below zero."""
        return {name: max(0, left) for name, left in subtract(self.capacity, self.overhead).items()}

    def sized(self, capacity: Amounts, allocatable: Amounts) -> "InstanceType":
        """The type as machines of it turned out to be. What they did not report is as it was assumed."""
        has = {name: capacity.get(name, amount) for name, amount in self.capacity.items()}
        assumed = self.allocatable
        kept = {name: amount - allocatable.get(name, assumed[name]) for name, amount in has.items()}
        overhead = {name: amount for name, amount in kept.items() if amount > 0}
        return dataclasses.replace(self, capacity=has, overhead=overhead)

    @functools.cached_property
    def labels_of_today(self) -> Labels:
        """`labels` by their names of today, and the type's own name: what every machine of the type can have."""
        return {**todays_names(self.labels), names.INSTANCE_TYPE_LABEL: (self.name,)}

    @functools.cached_property
    def labels_of_offerings(self) -> frozenset[str]:
        """The labels, by their names of today, that some offering sets itself."""
        return frozenset(key for offering in self.offerings if offering.labels for key in todays_names(offering.labels))


def todays_names(labels: Labels) -> Labels:
    """Labels by their names of today: beta names of zone, region, architecture, system and type are outlived."""
    if names.NORMALISED_LABELS.keys().isdisjoint(labels):
        return labels
    return {names.NORMALISED_LABELS.get(key, key): values for key, values in labels.items()}


@dataclasses.dataclass(frozen=True, slots=True)
class Catalogue:
    """Everything that one provider sells, in one currency. `cloud` is the prefix of an offering's name.

    `successors` are types that are no longer sold, in lower case, and what took their place. `of_classes` are the types as
    machines of a node class have them, by the class' name, where a class changes price, places or size.
    """

    cloud: str
    currency: str
    types: tuple[InstanceType, ...]
    successors: Mapping[str, str] = dataclasses.field(default_factory=dict)
    of_classes: Mapping[str, tuple[InstanceType, ...]] = dataclasses.field(default_factory=dict)
