"""Hetzner's server types: EUR a month, net, without an IPv4 address, for new orders since 2026-06-15.

The prices of CCX53, CCX63, CAX21 and of the dedicated GEX44 are not published figures: they are derived from their
neighbours in the list. An hour costs the month divided by 624, as Hetzner bills.
"""

import dataclasses
import functools
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from growth.api import names
from growth.api.instance_types import Billing, Catalogue, InstanceType, Offering
from growth.units.money import Money
from growth.units.resources import Amounts

CLOUD: Final = "hetzner"
CURRENCY: Final = "EUR"

LOCATIONS: Final = ("fsn1", "nbg1", "hel1")
HOURS_BILLED: Final = 624  # a month is never billed for more
HOUR_SECONDS: Final = 3600  # every hour that has begun is billed
PODS: Final = 110
VOLUME_LIMITS: Final = {"csi.hetzner.cloud": 16}
CSI_LOCATION_LABEL: Final = "csi.hetzner.cloud/location"  # volumes are tied to a location by this label

# What is left for pods: firmware, kernel and kubelet take 7 % of the memory and a tenth of a core.
MEMORY_LEFT_PERCENT: Final = 93
CPU_KEPT: Final = 100

# Name: cores, GiB of memory, GB of disk, EUR a month.
_SHARED_AND_DEDICATED_CORES: Final = {
    "cx23": (2, 4, 40, "5.49"),
    "cx33": (4, 8, 80, "8.49"),
    "cx43": (8, 16, 160, "15.99"),
    "cx53": (16, 32, 320, "29.49"),
    "cpx22": (2, 4, 80, "19.49"),
    "cpx32": (4, 8, 160, "35.49"),
    "cpx42": (8, 16, 320, "69.49"),
    "cpx52": (12, 24, 480, "100.49"),
    "cpx62": (16, 32, 640, "129.99"),
    "ccx13": (2, 8, 80, "42.99"),
    "ccx23": (4, 16, 160, "85.99"),
    "ccx33": (8, 32, 240, "138.49"),
    "ccx43": (16, 64, 360, "275.99"),
    "ccx53": (32, 128, 600, "551.99"),
    "ccx63": (48, 192, 960, "827.99"),
}
_ARM: Final = {
    "cax11": (2, 4, 40, "5.99"),
    "cax21": (4, 8, 80, "10.49"),
    "cax31": (8, 16, 160, "20.99"),
    "cax41": (16, 32, 320, "40.99"),
}
DERIVED_PRICES: Final = frozenset({"ccx53", "ccx63", "cax21", "gex44"})

# Whole machines: an operator may own them, no API sells them. GEX44 has twenty threads and one graphics processor.
DEDICATED: Final = frozenset({"gex44"})
_GEX44: Final = (20, 64, 1024, "184")
_GEX44_LOCATION: Final = "fsn1"

# No longer sold, and what to take instead.
SUCCESSORS: Final = {"cx22": "cx23", "cx31": "cx33", "cx32": "cx33", "cx42": "cx43", "cx52": "cx53"}


@functools.cache
def catalogue(*, dedicated: bool = False) -> Catalogue:
    """The types that can be ordered; with `dedicated` also the machines that can only be owned."""
    types = [_type(name, figures, "amd64") for name, figures in _SHARED_AND_DEDICATED_CORES.items()]
    types += [_type(name, figures, "arm64") for name, figures in _ARM.items()]
    if dedicated:
        types.append(_type("gex44", _GEX44, "amd64", devices={"nvidia.com/gpu": 1}, locations=(_GEX44_LOCATION,)))
    return Catalogue(CLOUD, CURRENCY, tuple(types), SUCCESSORS)


def _type(
    name: str,
    figures: tuple[int, int, int, str],
    architecture: str,
    *,
    devices: dict[str, int] | None = None,
    locations: tuple[str, ...] = LOCATIONS,
) -> InstanceType:
    cores, memory_gib, disk_gb, monthly = figures
    capacity = {
        "cpu": 1000 * cores,
        "memory": memory_gib << 30,
        "pods": PODS,
        "ephemeral-storage": disk_gb * 10**9,
        **(devices or {}),
    }
    cap = Money.parse(Decimal(monthly), CURRENCY)
    made = owned_type(name, capacity, architecture=architecture, locations=locations, monthly=cap)
    return dataclasses.replace(made, owned=name in DEDICATED)


def owned_type(
    name: str, capacity: Amounts, *, architecture: str, locations: Sequence[str], monthly: Money
) -> InstanceType:
    """A type of machines that people own and that cost so much a month."""
    memory, price = capacity["memory"], monthly.divided(HOURS_BILLED).nano
    return InstanceType(
        name=name,
        labels={names.ARCH_LABEL: (architecture,), names.OS_LABEL: ("linux",)},
        capacity=capacity,
        offerings=tuple(
            Offering(
                location,
                names.ON_DEMAND,
                price,
                labels={names.REGION_LABEL: (location,), CSI_LOCATION_LABEL: (location,)},
                billing=Billing(HOUR_SECONDS, monthly.nano),
            )
            for location in locations
        ),
        overhead={"cpu": CPU_KEPT, "memory": memory - memory * MEMORY_LEFT_PERCENT // 100},
        volume_limits=VOLUME_LIMITS,
        owned=True,
    )
