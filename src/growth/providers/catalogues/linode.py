"""Linode's types: USD an hour, net, as they are since the rise of April 2023. What the live provider buys is priced by the cloud.

Not listed are GPUs, the larger premium types, and types that LKE takes for no node (nanodes). Regions are fewer than there
are; whether one has any of a type left, the cloud alone says. How much traffic a type may send (`transfer`, `network-out`)
is not listed: no type here has those two labels, and a requirement by them has no effect on a plan.
"""

import dataclasses
import functools
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Final

from growth.api import names
from growth.api.instance_types import Billing, Catalogue, InstanceType, Offering
from growth.units.money import Money, monthly

CLOUD: Final = "linode"
CURRENCY: Final = "USD"

# Region: how many times the base price.
REGIONS: Final[Mapping[str, Decimal]] = {
    "us-east": Decimal(1),
    "us-ord": Decimal(1),
    "us-central": Decimal(1),
    "us-west": Decimal(1),
    "us-southeast": Decimal(1),
    "ca-central": Decimal(1),
    "eu-west": Decimal(1),
    "eu-central": Decimal(1),
    "ap-south": Decimal(1),
    "ap-northeast": Decimal(1),
    "ap-southeast": Decimal(1),
    "ap-west": Decimal(1),
    "id-cgk": Decimal("1.2"),
    "br-gru": Decimal("1.4"),
}
# Premium types are not sold everywhere.
PREMIUM: Final = "premium"
PREMIUM_REGIONS: Final = ("us-east", "us-ord", "eu-central", "id-cgk", "br-gru")
HOURS_BILLED: Final = Fraction(2000, 3)  # a month is never billed for more: 0.018 an hour is 12 a month
HOUR_SECONDS: Final = 3600  # every hour that has begun is billed
PODS: Final = 110
MIB: Final = 1 << 20
GPU: Final = "nvidia.com/gpu"
PREFIX: Final = f"{names.LINODE_CLASS_GROUP}/instance-"

# What is left for pods: 7.5 % of the memory and a tenth of a core go to the system.
_MEMORY_LEFT_PERMILLE: Final = 925
_CPU_KEPT: Final = 100

# Names are of generation and sort: g6-standard-2, g1-gpu-rtx6000-1, g2-gpu-rtx4000a1-s.
_GENERATION: Final = re.compile(r"g(\d+)-", re.ASCII)
_GPU: Final = re.compile(r"g\d+-gpu-([a-z]+\d+)", re.ASCII)

# Name: cores, GiB of memory, GiB of disk, USD an hour at the base price.
_TYPES: Final = {
    "g6-standard-1": (1, 2, 50, "0.018"),
    "g6-standard-2": (2, 4, 80, "0.036"),
    "g6-standard-4": (4, 8, 160, "0.072"),
    "g6-standard-6": (6, 16, 320, "0.144"),
    "g6-standard-8": (8, 32, 640, "0.288"),
    "g6-standard-16": (16, 64, 1280, "0.576"),
    "g6-standard-20": (20, 96, 1920, "0.864"),
    "g6-standard-24": (24, 128, 2560, "1.152"),
    "g6-standard-32": (32, 192, 3840, "1.728"),
    "g6-dedicated-2": (2, 4, 80, "0.054"),
    "g6-dedicated-4": (4, 8, 160, "0.108"),
    "g6-dedicated-8": (8, 16, 320, "0.216"),
    "g6-dedicated-16": (16, 32, 640, "0.432"),
    "g6-dedicated-32": (32, 64, 1280, "0.864"),
    "g6-dedicated-48": (48, 96, 1920, "1.296"),
    "g7-premium-2": (2, 4, 80, "0.0645"),
    "g7-premium-4": (4, 8, 160, "0.129"),
    "g7-premium-8": (8, 16, 320, "0.2583"),
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A type as the vendor tells it, without what it costs. Memory and disk are MiB; `sort` is the vendor's class of it.

    None is what nobody told: it gives no label.
    """

    name: str
    sort: str
    vcpus: int
    memory: int
    disk: int
    gpus: int = 0
    accelerated_devices: int = 0
    transfer: int | None = None
    network_out: int | None = None


@functools.cache
def catalogue() -> Catalogue:
    """All types, each in the regions that sell it; a region is also the zone."""
    return Catalogue(CLOUD, CURRENCY, tuple(_listed(name, *figures) for name, figures in _TYPES.items()))


def _listed(name: str, cores: int, memory_gib: int, disk_gib: int, hourly: str) -> InstanceType:
    sort = name.split("-")[1]
    figures = Figures(name=name, sort=sort, vcpus=cores, memory=memory_gib * 1024, disk=disk_gib * 1024)
    regions = PREMIUM_REGIONS if sort == PREMIUM else REGIONS
    prices = ((region, Money.parse(Decimal(hourly) * REGIONS[region], CURRENCY)) for region in regions)
    return made(
        figures, *(offering(region, each.nano, monthly(each, hours=HOURS_BILLED).nano) for region, each in prices)
    )


def made(figures: Figures, *offerings: Offering) -> InstanceType:
    """The type as machines of it are: what is listed and what the vendor tells are of one making."""
    memory = figures.memory * MIB
    return InstanceType(
        name=figures.name,
        labels={
            names.ARCH_LABEL: ("amd64",),
            names.OS_LABEL: ("linux",),
            **{f"{PREFIX}{key}": (value,) for key, value in _labels(figures).items() if value},
        },
        capacity={
            "cpu": 1000 * figures.vcpus,
            "memory": memory,
            "pods": PODS,
            "ephemeral-storage": figures.disk * MIB,
            **({GPU: figures.gpus} if figures.gpus else {}),
        },
        offerings=offerings,
        overhead={"cpu": _CPU_KEPT, "memory": memory - memory * _MEMORY_LEFT_PERMILLE // 1000},
    )


def offering(region: str, hourly: int | None, monthly: int | None, *, available: bool = True) -> Offering:
    """The type in a region, which is also the zone, at so many billionths an hour and at most so many a month."""
    return Offering(
        region,
        names.ON_DEMAND,
        hourly,
        available=available,
        labels={names.REGION_LABEL: (region,)},
        billing=Billing(HOUR_SECONDS, monthly),
    )


def _labels(figures: Figures) -> Mapping[str, str]:
    """As Karpenter's provider for Linode has them. What nobody can tell is empty."""
    generation, gpu = _GENERATION.match(figures.name), _GPU.match(figures.name)
    return {
        "cpu": str(figures.vcpus),
        "memory": str(figures.memory),
        "disk": str(figures.disk),
        "class": figures.sort,
        "generation": generation[1] if generation else "",
        "transfer": "" if figures.transfer is None else str(figures.transfer),
        "network-out": "" if figures.network_out is None else str(figures.network_out),
        "gpu-count": str(figures.gpus),
        "gpu-name": gpu[1] if gpu else "",
        "accelerated-devices-count": str(figures.accelerated_devices),
    }
