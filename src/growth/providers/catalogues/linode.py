"""Linode's types: USD an hour. An old list, probably from before the rise of 2023: good for trying things, not for a budget.

The live provider reads prices from the cloud. Three regions stand for all that have the base price.
"""

import functools
from decimal import Decimal
from typing import Final

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.units.money import Money

CLOUD: Final = "linode"
CURRENCY: Final = "USD"

REGIONS: Final = ("us-east", "us-ord", "eu-central")
PODS: Final = 110

# What is left for pods: 7.5 % of the memory and a tenth of a core go to the system.
_MEMORY_LEFT_PERMILLE: Final = 925
_CPU_KEPT: Final = 100

# Name: cores, GiB of memory, GB of disk, USD an hour.
_TYPES: Final = {
    "g6-nanode-1": (1, 1, 25, "0.0075"),
    "g6-standard-1": (1, 2, 50, "0.015"),
    "g6-standard-2": (2, 4, 80, "0.03"),
    "g6-standard-4": (4, 8, 160, "0.06"),
    "g6-standard-6": (6, 16, 320, "0.12"),
    "g6-standard-8": (8, 32, 640, "0.24"),
    "g6-standard-16": (16, 64, 1280, "0.48"),
    "g6-standard-20": (20, 96, 1920, "0.72"),
    "g6-standard-24": (24, 128, 2560, "0.96"),
    "g6-standard-32": (32, 192, 3840, "1.44"),
    "g6-dedicated-2": (2, 4, 80, "0.045"),
    "g6-dedicated-4": (4, 8, 160, "0.09"),
    "g6-dedicated-8": (8, 16, 320, "0.18"),
    "g6-dedicated-16": (16, 32, 640, "0.36"),
    "g6-dedicated-32": (32, 64, 1280, "0.72"),
    "g6-dedicated-48": (48, 96, 1920, "1.08"),
}


@functools.cache
def catalogue() -> Catalogue:
    """All types, each in every region; a region is also the zone."""
    return Catalogue(CLOUD, CURRENCY, tuple(_type(name, *figures) for name, figures in _TYPES.items()))


def _type(name: str, cores: int, memory_gib: int, disk_gb: int, hourly: str) -> InstanceType:
    memory = memory_gib << 30
    price = Money.parse(Decimal(hourly), CURRENCY).nano
    return InstanceType(
        name=name,
        labels={names.ARCH_LABEL: ("amd64",), names.OS_LABEL: ("linux",)},
        capacity={"cpu": 1000 * cores, "memory": memory, "pods": PODS, "ephemeral-storage": disk_gb * 10**9},
        offerings=tuple(
            Offering(region, names.ON_DEMAND, price, labels={names.REGION_LABEL: (region,)}) for region in REGIONS
        ),
        overhead={"cpu": _CPU_KEPT, "memory": memory - memory * _MEMORY_LEFT_PERMILLE // 1000},
    )
