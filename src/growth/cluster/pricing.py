"""What a machine that is there costs, looked up by its labels. Unknown is None, which is not zero."""

from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.instance_types import InstanceType, Offering


def type_of(labels: Mapping[str, str], types: Mapping[str, InstanceType]) -> InstanceType | None:
    """The machine's type. `types` is keyed by name in lower case: clouds and people spell them differently."""
    name = labels.get(names.INSTANCE_TYPE_LABEL) or labels.get("beta.kubernetes.io/instance-type") or ""
    return types.get(name.lower())


def by_name(types: Iterable[InstanceType]) -> dict[str, InstanceType]:
    """The table that `type_of` reads."""
    return {kind.name.lower(): kind for kind in types}


def price_of(labels: Mapping[str, str], kind: InstanceType | None) -> int | None:
    """An hour of the machine. Where its labels leave several offerings open, it is known only if all cost the same."""
    if kind is None:
        return None
    prices = {offering.price for offering in kind.offerings if _may_be(offering, labels)}
    return prices.pop() if len(prices) == 1 else None


def offering_of(labels: Mapping[str, str], kind: InstanceType | None) -> Offering | None:
    """How the machine was bought; None where its labels leave several ways open."""
    found = [each for each in kind.offerings if _may_be(each, labels)] if kind is not None else []
    return found[0] if len(found) == 1 else None


def _may_be(offering: Offering, labels: Mapping[str, str]) -> bool:
    terms = labels.get(names.CAPACITY_TYPE_LABEL)
    if terms is not None and terms != offering.capacity_type:
        return False
    places = {labels.get(names.ZONE_LABEL), labels.get(names.REGION_LABEL)} - {None}
    return not places or offering.zone in places
