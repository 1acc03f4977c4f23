"""What Linode sells in one region, as a catalogue. Pure.

The region's own price where there is one. A plan that the region's list says it lacks is shown as unavailable; one that
the list does not name can be had: the list names only plans that are not sold everywhere. What a type of these figures is
the built-in list says: `growth plan` and the autoscaler know the same types.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from growth.api.instance_types import Catalogue, InstanceType
from growth.providers.catalogues import linode as listed
from growth.providers.linode.wire import Type
from growth.units.errors import MoneyError
from growth.units.money import Money

# Too small for a node of Kubernetes; LKE refuses it.
NANODE: Final = "nanode"


def catalogue(types: Sequence[Type], *, region: str, available: Mapping[str, bool]) -> Catalogue:
    """`available` is what the region says of plans."""
    sold = [
        _type(kind, region, available=available.get(kind.id, True))
        for kind in sorted(types, key=lambda each: each.id)
        if kind.kind != NANODE and "nanode" not in kind.id and kind.vcpus > 0 and kind.memory > 0
    ]
    return Catalogue(listed.CLOUD, listed.CURRENCY, tuple(sold))


def _type(kind: Type, region: str, *, available: bool) -> InstanceType:
    here = next((each for each in kind.region_prices if each.id == region), None)
    hourly, monthly = (here.hourly, here.monthly) if here is not None else (kind.price.hourly, kind.price.monthly)
    figures = listed.Figures(
        name=kind.id,
        sort=kind.kind,
        vcpus=kind.vcpus,
        memory=kind.memory,
        disk=kind.disk,
        gpus=kind.gpus,
        accelerated_devices=kind.accelerated_devices,
        transfer=kind.transfer,
        network_out=kind.network_out,
    )
    there = listed.offering(region, _nano(hourly), _nano(monthly), available=available)
    return listed.made(figures, there)


def _nano(amount: float | None) -> int | None:
    """None for what has no price: it is not sold, and never free."""
    if amount is None or amount <= 0:
        return None
    try:
        return Money.parse(Decimal(str(amount)), listed.CURRENCY).nano
    except MoneyError:
        return None
