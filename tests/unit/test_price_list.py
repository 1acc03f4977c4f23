"""What a machine that is there costs, with what its node class gives it beside."""

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClassReference
from growth.api.meta import ObjectMeta
from growth.cluster.pricing import PriceList

LABELS = {names.INSTANCE_TYPE_LABEL: "CX22", names.ZONE_LABEL: "fsn1", names.CAPACITY_TYPE_LABEL: "on-demand"}


def sold(price: int) -> tuple[InstanceType, ...]:
    return (InstanceType(name="cx22", labels={}, capacity={}, offerings=(Offering("fsn1", "on-demand", price),)),)


def of(node_class: str) -> NodeClaim:
    uses = NodeClassReference(group="growth.dev", kind="HetznerNodeClass", name=node_class)
    return NodeClaim(metadata=ObjectMeta(labels=LABELS), spec=NodeClaimSpec(node_class_ref=uses, requirements=()))


def test_a_class_adds_what_its_machines_have_beside() -> None:
    """A machine costs what its own class says; one of a class that adds nothing, what the type costs."""
    prices = PriceList(Catalogue("hetzner", "EUR", sold(100), of_classes={"with-backups": sold(120)}))
    assert prices.of(of("with-backups")) == 120
    assert prices.of(of("plain")) == 100


def test_what_is_not_known_is_not_zero() -> None:
    """Without a catalogue, or for a type that it does not have, there is no price."""
    assert PriceList(None).of(of("plain")) is None
    assert PriceList(Catalogue("hetzner", "EUR", ())).of(of("plain")) is None
