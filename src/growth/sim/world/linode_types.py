"""What Linode's worlds choose among: which types to sell dearer, which places to sell out, which size stands for another.

They are drawn by their number: one more type or place would be another world for every seed. So these are the fake's types
without the premium ones, in three of its regions, whatever the built-in list has come to know.
"""

import functools
from decimal import Decimal
from typing import Final

from growth.api.instance_types import Catalogue, InstanceType
from growth.providers.catalogues import linode as listed
from growth.sim.clouds.linode.market import KINDS, Kind
from growth.units.money import Money

PLACES: Final = ("us-east", "us-ord", "eu-central")


@functools.cache
def catalogue() -> Catalogue:
    """At the fake's prices; the nanode is among them, though the provider never buys one."""
    return Catalogue(listed.CLOUD, listed.CURRENCY, tuple(_type(kind) for kind in KINDS.values() if not kind.premium))


def _type(kind: Kind) -> InstanceType:
    figures = listed.Figures(
        name=kind.id, sort=kind.kind, vcpus=kind.vcpus, memory=kind.memory, disk=kind.disk, gpus=kind.gpus
    )
    return listed.made(figures, *(listed.offering(place, *map(_nano, kind.price(place))) for place in PLACES))


def _nano(amount: Decimal) -> int:
    return Money.parse(amount, listed.CURRENCY).nano
