"""The 144 simulated types of Karpenter's KWOK provider, calculated and not listed.

Twelve sizes, three ratios of memory to cpu, two systems, two architectures; each in four zones, on demand and as spot.
Prices are made up (as Karpenter makes them up): 0.025 a core and 0.001 a GB an hour, spot at 70 %.
"""

import functools
import re
from fractions import Fraction
from typing import Final

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType, Labels, Offering
from growth.units.resources import print_amount

CLOUD: Final = "kwok"
CURRENCY: Final = "USD"

ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d")
CORES: Final = (1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256)
FAMILIES: Final = {"c": 2, "s": 4, "m": 8}  # GiB a core
SYSTEMS: Final = ("linux", "windows")
ARCHITECTURES: Final = ("amd64", "arm64")

# What a simulated kubelet keeps for itself.
OVERHEAD: Final = {"cpu": 100, "memory": 10 << 20}
DEFAULT_PODS: Final = 110

_PODS_PER_CORE: Final = 16
_MOST_PODS: Final = 1024
_DISK_BYTES: Final = 20 << 30
_NANO_PER_CORE: Final = 25_000_000
_NANO_PER_BYTE: Final = Fraction(1, 1000)
_SPOT: Final = Fraction(7, 10)

# Amazon's names end in a size; others do not, and then the size is the number of cores.
_SIZED: Final = re.compile(r"\w+\.(nano|micro|small|medium|large|\d*xlarge|metal)")
_DELIMITER: Final = re.compile(r"[.-]")


@functools.cache
def catalogue() -> Catalogue:
    """All 144 types."""
    types = tuple(
        _type(family, cores, system, architecture)
        for cores in CORES
        for family in FAMILIES
        for system in SYSTEMS
        for architecture in ARCHITECTURES
    )
    return Catalogue(CLOUD, CURRENCY, types)


def labels_of(name: str, *, cores: int, memory: int) -> Labels:
    """The labels of family, size, cpu and memory, derived from the name as Karpenter derives them.

    `cores` is in thousandths, `memory` in bytes. The family is the name up to its first dot or dash, or else its first
    letter.
    """
    sized = _SIZED.fullmatch(name)
    cpu = print_amount("cpu", cores)
    parts = _DELIMITER.split(name, maxsplit=1)
    return {
        names.KWOK_INSTANCE_SIZE_LABEL: (sized[1] if sized else cpu,),
        names.KWOK_INSTANCE_FAMILY_LABEL: (parts[0] if len(parts) > 1 else name[:1],),
        names.KWOK_INSTANCE_CPU_LABEL: (cpu,),
        names.KWOK_INSTANCE_MEMORY_LABEL: (print_amount("memory", memory),),
    }


def _type(family: str, cores: int, system: str, architecture: str) -> InstanceType:
    name = f"{family}-{cores}x-{architecture}-{system}"
    memory = cores * FAMILIES[family] << 30
    price = _NANO_PER_CORE * cores + memory * _NANO_PER_BYTE
    prices = {names.SPOT: round(price * _SPOT), names.ON_DEMAND: round(price)}
    return InstanceType(
        name=name,
        labels={
            names.ARCH_LABEL: (architecture,),
            names.OS_LABEL: (system,),
            **labels_of(name, cores=1000 * cores, memory=memory),
        },
        capacity={
            "cpu": 1000 * cores,
            "memory": memory,
            "pods": min(_PODS_PER_CORE * cores, _MOST_PODS),
            "ephemeral-storage": _DISK_BYTES,
        },
        offerings=tuple(Offering(zone, terms, cost) for zone in ZONES for terms, cost in prices.items()),
        overhead=OVERHEAD,
    )
