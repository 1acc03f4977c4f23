"""What a machine that is there costs, looked up by its labels. Unknown is None, which is not zero."""

from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.karpenter import NodeClaim
from growth.api.zones import zone_of


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
    found = [each for each in kind.offerings if not each.spare and _may_be(each, labels)] if kind is not None else []
    return found[0] if len(found) == 1 else None


class PriceList:
    """What machines cost an hour, each by its node class: what the class gives a machine beside (an address, backups) is in
    its price.
    """

    def __init__(self, catalogue: Catalogue | None) -> None:
        self._catalogue = catalogue
        self._tables: dict[str, dict[str, InstanceType]] = {}

    def of(self, claim: NodeClaim) -> int | None:
        return self.of_class(claim.metadata.labels, claim.spec.node_class_ref.name)

    def of_class(self, labels: Mapping[str, str], node_class: str) -> int | None:
        """The price of a machine by its labels; a class that the cloud knows nothing special of adds nothing."""
        if self._catalogue is None:
            return None
        table = self._tables.get(node_class)
        if table is None:
            sold = self._catalogue.of_classes.get(node_class, self._catalogue.types)
            table = self._tables[node_class] = by_name(sold)
        return price_of(labels, type_of(labels, table))


def _may_be(offering: Offering, labels: Mapping[str, str]) -> bool:
    terms = labels.get(names.CAPACITY_TYPE_LABEL)
    if terms is not None and terms != offering.capacity_type:
        return False
    places = {labels[key] for key in (names.ZONE_LABEL, names.REGION_LABEL) if key in labels}
    return not places or zone_of(offering.zone) in map(zone_of, places)
