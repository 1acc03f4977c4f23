"""Types of Linode as a catalogue: their labels, and that the built-in list and the provider know the same types."""

import msgspec
import pytest

from growth.api.instance_types import InstanceType, Offering
from growth.providers.catalogues import builtin
from growth.providers.catalogues.linode import PREFIX
from growth.providers.linode.offerings import catalogue
from growth.providers.linode.wire import Price, Type
from growth.sim.clouds.linode.market import REGIONS, Market


def labels(**more: object) -> dict[str, str]:
    """The vendor's own labels of a type, without what they all begin with."""
    sold = Type(vcpus=2, memory=4096, disk=81920, price=Price(hourly=0.036, monthly=24.0), **more)  # type: ignore[arg-type]
    (kind,) = catalogue([sold], region="us-east", available={}).types
    return {key.removeprefix(PREFIX): each for key, (each,) in kind.labels.items() if key.startswith(PREFIX)}


def test_a_type_has_every_label_of_karpenters_provider() -> None:
    """Manifests that select by them work as they are; amounts are plain numbers, for Gt and Lt."""
    assert labels(id="g6-standard-2", kind="standard", transfer=4000, network_out=3000) == {
        "accelerated-devices-count": "0",
        "class": "standard",
        "cpu": "2",
        "disk": "81920",
        "generation": "6",
        "gpu-count": "0",
        "memory": "4096",
        "network-out": "3000",
        "transfer": "4000",
    }


@pytest.mark.parametrize(
    ("name", "count", "generation", "gpu"),
    [("g1-gpu-rtx6000-2", 2, "1", "rtx6000"), ("g2-gpu-rtx4000a1-s", 1, "2", "rtx4000")],
)
def test_a_gpu_has_its_name(name: str, count: int, generation: str, gpu: str) -> None:
    """As the type's name has it, without how many they are."""
    found = labels(id=name, kind="gpu", gpus=count)
    assert (found["gpu-name"], found["gpu-count"], found["generation"]) == (gpu, str(count), generation)


def test_other_devices_are_counted() -> None:
    """A name that says no generation gives none."""
    assert labels(id="g1-accelerated-netint-vpu-t1u1-m", accelerated_devices=1)["accelerated-devices-count"] == "1"
    assert "generation" not in labels(id="special-2")


def both(region: str) -> list[tuple[InstanceType, Offering, InstanceType, Offering]]:
    """Each type that the list has in the region, and the same as the provider reads it from the fake."""
    market = Market({})
    told = msgspec.convert(market.types(), list[Type], strict=False)
    available = {str(each["plan"]): bool(each["available"]) for each in market.availability(region)}
    live = {kind.name: kind for kind in catalogue(told, region=region, available=available).types}
    return [
        (kind, offering, live[kind.name], live[kind.name].offerings[0])
        for kind in builtin("linode").types
        for offering in kind.offerings
        if offering.zone == region and kind.name in live
    ]


@pytest.mark.parametrize("region", sorted(REGIONS))
def test_the_list_and_the_provider_know_the_same_types(region: str) -> None:
    """Labels that the list tells, sizes, what is left for pods, prices there: a plan is what would be bought."""
    pairs = both(region)
    assert len(pairs) == (15 if region == "ap-west" else 18)
    for listed, sold, live, bought in pairs:
        assert listed.labels.items() <= live.labels.items()
        assert live.labels.keys() - listed.labels.keys() == {f"{PREFIX}transfer", f"{PREFIX}network-out"}
        assert (listed.capacity, listed.allocatable) == (live.capacity, live.allocatable)
        assert (sold.zone, sold.price, sold.labels) == (bought.zone, bought.price, bought.labels)
        assert bought.available
        assert sold.billing is not None
        assert bought.billing is not None
        assert sold.billing.quantum_seconds == bought.billing.quantum_seconds


def test_the_list_has_what_the_provider_has() -> None:
    """And nothing else: no nanode, and no type that the fake sells is forgotten."""
    told = msgspec.convert(Market({}).types(), list[Type], strict=False)
    live = {kind.name for kind in catalogue(told, region="us-east", available={}).types}
    assert {kind.name for kind in builtin("linode").types} == live
