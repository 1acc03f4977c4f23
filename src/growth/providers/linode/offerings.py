"""What Linode sells in one region, as a catalogue. Pure.

The region's own price where there is one. A plan that the region's list says it lacks is shown as unavailable; one that
the list does not name can be had: the list names only plans that are not sold everywhere.
"""

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from growth.api import names
from growth.api.instance_types import Billing, Catalogue, InstanceType, Offering
from growth.providers.catalogues import linode as listed
from growth.providers.linode.wire import Type
from growth.units.errors import MoneyError
from growth.units.money import Money

HOUR_SECONDS: Final = 3600
MIB: Final = 1 << 20
GPU: Final = "nvidia.com/gpu"
# Too small for a node of Kubernetes; LKE refuses it.
NANODE: Final = "nanode"
PREFIX: Final = f"{names.LINODE_CLASS_GROUP}/instance-"
# Names are of generation and sort: g6-standard-2, g1-gpu-rtx6000-1, g2-gpu-rtx4000a1-s.
_GENERATION: Final = re.compile(r"g(\d+)-", re.ASCII)
_GPU: Final = re.compile(r"g\d+-gpu-([a-z]+\d+)", re.ASCII)
# 7.5 % of the memory and a tenth of a core go to the system.
MEMORY_LEFT_PERMILLE: Final = 925
CPU_KEPT: Final = 100


def catalogue(types: Sequence[Type], *, region: str, available: Mapping[str, bool]) -> Catalogue:
    """`available` is what the region says of plans."""
    sold = [
        _type(kind, region, available=available.get(kind.id, True))
        for kind in sorted(types, key=lambda each: each.id)
        if kind.kind != NANODE and "nanode" not in kind.id and kind.vcpus > 0 and kind.memory > 0
    ]
    return Catalogue(listed.CLOUD, listed.CURRENCY, tuple(sold))


def _type(kind: Type, region: str, *, available: bool) -> InstanceType:
    memory = kind.memory * MIB
    here = next((each for each in kind.region_prices if each.id == region), None)
    hourly, monthly = (here.hourly, here.monthly) if here is not None else (kind.price.hourly, kind.price.monthly)
    offering = Offering(
        region,
        names.ON_DEMAND,
        _nano(hourly),
        available=available,
        labels={names.REGION_LABEL: (region,)},
        billing=Billing(HOUR_SECONDS, _nano(monthly)),
    )
    return InstanceType(
        name=kind.id,
        labels={
            names.ARCH_LABEL: ("amd64",),
            names.OS_LABEL: ("linux",),
            **{f"{PREFIX}{key}": (value,) for key, value in _labels(kind).items() if value},
        },
        capacity={
            "cpu": 1000 * kind.vcpus,
            "memory": memory,
            "pods": listed.PODS,
            "ephemeral-storage": kind.disk * MIB,
            **({GPU: kind.gpus} if kind.gpus else {}),
        },
        offerings=(offering,),
        overhead={"cpu": CPU_KEPT, "memory": memory - memory * MEMORY_LEFT_PERMILLE // 1000},
    )


def _labels(kind: Type) -> Mapping[str, str]:
    """As Karpenter's provider for Linode has them. What nobody can tell is empty."""
    generation, gpu = _GENERATION.match(kind.id), _GPU.match(kind.id)
    return {
        "cpu": str(kind.vcpus),
        "memory": str(kind.memory),
        "disk": str(kind.disk),
        "class": kind.kind,
        "generation": generation[1] if generation else "",
        "transfer": str(kind.transfer),
        "network-out": str(kind.network_out),
        "gpu-count": str(kind.gpus),
        "gpu-name": gpu[1] if gpu else "",
        "accelerated-devices-count": str(kind.accelerated_devices),
    }


def _nano(amount: float | None) -> int | None:
    """None for what has no price: it is not sold, and never free."""
    if amount is None or amount <= 0:
        return None
    try:
        return Money.parse(Decimal(str(amount)), listed.CURRENCY).nano
    except MoneyError:
        return None
