"""Which offering a cloud buys for a claim: the cheapest that the claim allows, given what a catalogue lists.

A claim lists what planning found good; a cloud only picks among it, by values that are known, so each requirement
is a question about one value and not about a set.
"""

import dataclasses
from collections.abc import Mapping, Sequence

from growth.api import names
from growth.api.clouds import CreateError, InsufficientCapacity
from growth.api.instance_types import Catalogue, InstanceType, Labels, Offering
from growth.api.karpenter import NodeClaim, Requirement
from growth.api.zones import in_catalogue_names
from growth.providers.shortages import Shortages
from growth.units import UnitError
from growth.units.errors import MoneyError
from growth.units.money import Money
from growth.units.resources import amounts, fits


@dataclasses.dataclass(frozen=True, slots=True)
class Choice:
    """One offering of one type, and the labels that a machine of it has."""

    type: InstanceType
    offering: Offering
    labels: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """By which a stock-out is remembered."""
        return (self.type.name, self.offering.zone, self.offering.capacity_type)

    def __str__(self) -> str:
        return "/".join(self.key)


def meets(requirement: Requirement, value: str | None) -> bool:
    """Whether a label of this value (None: no such label) satisfies the requirement."""
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            bound, number = _integer(requirement.values[0]) if requirement.values else None, _integer(value)
            if bound is None or number is None:
                return False
            match requirement.operator:
                case "Gt":
                    return number > bound
                case "Lt":
                    return number < bound
                case "Gte":
                    return number >= bound
                case "Lte":
                    return number <= bound
                case _:
                    return False


def choices(claim: NodeClaim, catalogue: Catalogue) -> tuple[Choice, ...]:
    """Every offering that the claim allows and that has a price, cheapest first, ties by name and place.

    Keys that nothing in the catalogue knows are the pool's own labels: the Node gets them from the claim, whatever the
    machine is. Resources that nothing in the catalogue knows come from elsewhere (an overlay told planning, a device
    plugin will tell the Node), so no type is refused for them. Whether an offering can be had now is not asked here.
    `MoneyError` for a `growth.dev/max-price` that is no amount.
    """
    known = {key for kind in catalogue.types for key in kind.labels}
    known |= {key for kind in catalogue.types for offering in kind.offerings for key in offering.labels}
    known |= {names.INSTANCE_TYPE_LABEL, names.ZONE_LABEL, names.CAPACITY_TYPE_LABEL}
    asked = in_catalogue_names(each for each in claim.spec.requirements if _today(each.key) in known)
    listed = _listed(asked)
    most = most_to_pay(claim, catalogue.currency)
    counted = {name for kind in catalogue.types for name in kind.capacity}
    need = {name: amount for name, amount in amounts(claim.spec.resources.requests).items() if name in counted}
    found: list[Choice] = []
    for kind in catalogue.types:
        if (listed is not None and kind.name not in listed) or not fits(need, kind.allocatable):
            continue
        for offering in kind.offerings:
            if offering.price is None or (most is not None and offering.price > most):
                continue
            labels = _labels(kind, offering, asked)
            if labels is not None:
                found.append(Choice(kind, offering, labels))
    return tuple(sorted(found, key=lambda each: (each.offering.price or 0, each.key)))


def of_claim(claim: NodeClaim, catalogue: Catalogue) -> Sequence[Choice]:
    """The choices. `CreateError` for a claim that is no order."""
    try:
        return choices(claim, catalogue)
    except UnitError as error:
        raise CreateError(f"claim {claim.metadata.name}: {error}", reason="InvalidClaim", retryable=False) from error


def to_be_had(claim: NodeClaim, catalogue: Catalogue, shortages: Shortages) -> Sequence[Choice]:
    """Of the choices those that are in stock and were not refused lately. `CreateError` for a claim that is no order."""
    found = of_claim(claim, catalogue)
    return [each for each in found if each.offering.available and each.key not in shortages]


def none_left(claim: NodeClaim, tried: Sequence[Choice]) -> InsufficientCapacity:
    """What a caller hears when all that could be had was refused."""
    return InsufficientCapacity(
        f"none of the {len(tried)} offerings that claim {claim.metadata.name} allows can be had now"
        f"{': ' + ', '.join(map(str, tried[:3])) if tried else ''}{', …' if len(tried) > 3 else ''}"
    )


def most_to_pay(claim: NodeClaim, currency: str) -> int | None:
    """The claim's `growth.dev/max-price` an hour, in billionths; None where it sets none."""
    text = claim.metadata.annotations.get(names.MAX_PRICE_ANNOTATION, "")
    if not text:
        return None
    try:
        return Money.parse(text, currency).nano
    except MoneyError as error:
        raise MoneyError(f"annotation {names.MAX_PRICE_ANNOTATION}: {error}") from None


def _labels(kind: InstanceType, offering: Offering, asked: Sequence[Requirement]) -> Mapping[str, str] | None:
    """What the labels of such a machine would be; None where the claim does not allow it.

    Where a type leaves a label open (a machine that can run either system) the first value that is allowed is taken.
    """
    open_values: Labels = {**kind.labels, **offering.labels}
    fixed = {
        names.INSTANCE_TYPE_LABEL: kind.name,
        names.ZONE_LABEL: offering.zone,
        names.CAPACITY_TYPE_LABEL: offering.capacity_type,
    }
    result: dict[str, str] = {}
    for key, values in {**open_values, **{key: (value,) for key, value in fixed.items()}}.items():
        rules = [each for each in asked if _today(each.key) == key]
        good = [value for value in values if all(meets(each, value) for each in rules)]
        if not good:
            return None
        result[key] = good[0]
    missing = [each for each in asked if _today(each.key) not in result]
    return result if all(meets(each, None) for each in missing) else None


def _listed(asked: Sequence[Requirement]) -> set[str] | None:
    """The types that the claim names; None where it names none. Spares most of a long catalogue a closer look."""
    listed: set[str] | None = None
    for each in asked:
        if _today(each.key) == names.INSTANCE_TYPE_LABEL and each.operator == "In":
            listed = set(each.values) if listed is None else listed & set(each.values)
    return listed


def _today(key: str) -> str:
    return names.NORMALISED_LABELS.get(key, key)


def _integer(text: str | None) -> int | None:
    """As Kubernetes reads it: plain digits with an optional sign, a signed number of 64 bits."""
    if text is None or not text.isascii():
        return None
    digits = text[1:] if text[:1] in {"+", "-"} else text
    number = int(text) if digits.isdigit() and len(digits) <= 63 else None
    return number if number is not None and -(2**63) <= number < 2**63 else None
