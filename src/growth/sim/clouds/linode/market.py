"""What is sold: types with prices and regions, whether there is any, and how many."""

import dataclasses
import fnmatch
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Final

from growth.api.kinds import Json

# Region: whether it gives machines user data, and by how much its prices differ from the others'.
REGIONS: Final[Mapping[str, tuple[bool, Decimal]]] = {
    "us-east": (True, Decimal(1)),
    "us-ord": (True, Decimal(1)),
    "eu-central": (True, Decimal(1)),
    "br-gru": (True, Decimal("1.4")),
    "id-cgk": (True, Decimal("1.2")),
    "ap-west": (False, Decimal(1)),
}
PLACES: Final = {
    "us-east": "Newark, US",
    "us-ord": "Chicago, US",
    "eu-central": "Frankfurt, DE",
    "br-gru": "Sao Paulo, BR",
    "id-cgk": "Jakarta, ID",
    "ap-west": "Mumbai, IN",
}
HOURS: Final = Decimal("666.67")
# Of types that are too small for a node of LKE.
NANODE: Final = "nanode"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A type. Memory and disk are MiB, as the vendor tells them; `premium` types are listed by availability."""

    id: str
    vcpus: int
    memory: int
    disk: int
    hourly: Decimal
    kind: str = "standard"
    gpus: int = 0
    premium: bool = False

    def price(self, region: str) -> tuple[Decimal, Decimal]:
        """An hour and a month there."""
        hourly = self.hourly * REGIONS[region][1]
        return hourly, (hourly * HOURS).quantize(Decimal(1))

    def body(self, factor: Decimal) -> Json:
        hourly = self.hourly * factor
        return {
            "id": self.id,
            "label": f"{'Nanode' if self.kind == NANODE else 'Linode'} {self.memory // 1024}GB",
            "class": self.kind,
            "vcpus": self.vcpus,
            "memory": self.memory,
            "disk": self.disk,
            "gpus": self.gpus,
            "accelerated_devices": 0,
            "transfer": 1000 * self.vcpus,
            "network_out": 1000 * self.vcpus,
            "price": _price(hourly),
            "region_prices": [
                {"id": region, **_price(hourly * times)} for region, (_, times) in REGIONS.items() if times != 1
            ],
            "addons": {"backups": {"price": _price(hourly / 4), "region_prices": []}},
            "successor": None,
        }


def _price(hourly: Decimal) -> Json:
    return {"hourly": float(hourly), "monthly": float((hourly * HOURS).quantize(Decimal(1)))}


def _standard(name: str, vcpus: int, gib: int, gb: int, hourly: str) -> Kind:
    return Kind(id=name, vcpus=vcpus, memory=gib * 1024, disk=gb * 1024, hourly=Decimal(hourly))


def _nano(name: str, vcpus: int, gib: int, gb: int, hourly: str) -> Kind:
    return dataclasses.replace(_standard(name, vcpus, gib, gb, hourly), kind=NANODE)


def _dedicated(number: int, gib: int, gb: int, hourly: str) -> Kind:
    return dataclasses.replace(_standard(f"g6-dedicated-{number}", number, gib, gb, hourly), kind="dedicated")


def _premium(number: int, gib: int, gb: int, hourly: str) -> Kind:
    plain = _standard(f"g7-premium-{number}", number, gib, gb, hourly)
    return dataclasses.replace(plain, kind="premium", premium=True)


KINDS: Final = {
    kind.id: kind
    for kind in (
        _nano("g6-nanode-1", 1, 1, 25, "0.0075"),
        _standard("g6-standard-1", 1, 2, 50, "0.018"),
        _standard("g6-standard-2", 2, 4, 80, "0.036"),
        _standard("g6-standard-4", 4, 8, 160, "0.072"),
        _standard("g6-standard-6", 6, 16, 320, "0.144"),
        _standard("g6-standard-8", 8, 32, 640, "0.288"),
        _standard("g6-standard-16", 16, 64, 1280, "0.576"),
        _standard("g6-standard-20", 20, 96, 1920, "0.864"),
        _standard("g6-standard-24", 24, 128, 2560, "1.152"),
        _standard("g6-standard-32", 32, 192, 3840, "1.728"),
        _dedicated(2, 4, 80, "0.054"),
        _dedicated(4, 8, 160, "0.108"),
        _dedicated(8, 16, 320, "0.216"),
        _dedicated(16, 32, 640, "0.432"),
        _dedicated(32, 64, 1280, "0.864"),
        _dedicated(48, 96, 1920, "1.296"),
        _premium(2, 4, 80, "0.0645"),
        _premium(4, 8, 160, "0.129"),
        _premium(8, 16, 320, "0.2583"),
    )
}


class Market:
    """Stock is by type and region; what is not named has no limit. `available` is what the vendor says, not what there is."""

    def __init__(self, stock: Mapping[tuple[str, str], int]) -> None:
        self._stock: dict[tuple[str, str], int] = {}
        self._factors: dict[str, Decimal] = {}
        self.flags: dict[tuple[str, str], bool] = {
            (kind.id, region): region != "ap-west" for kind in KINDS.values() if kind.premium for region in REGIONS
        }
        for (kind, region), number in stock.items():
            self.stock(kind, region, number)

    def stock(self, kind: str, region: str, number: int | None) -> None:
        """How many can be bought from now on; None: as many as anybody wants. A `*` for all. `ValueError` for neither."""
        places = [
            (name, place)
            for name in fnmatch.filter(KINDS, kind)
            for place in REGIONS
            if fnmatch.fnmatchcase(place, region)
        ]
        if not places:
            raise ValueError(f"Linode sells no {kind} in {region}")
        for place in places:
            if number is None:
                self._stock.pop(place, None)
            else:
                self._stock[place] = number

    def left(self, kind: str, region: str) -> int | None:
        return self._stock.get((kind, region))

    def is_sold(self, kind: str, region: str) -> bool:
        """As the vendor says; what its list does not name is sold everywhere."""
        return self.flags.get((kind, region), True)

    def take(self, kind: str, region: str, number: int) -> bool:
        left = self._stock.get((kind, region))
        if left is None:
            return True
        if left < number:
            return False
        self._stock[kind, region] = left - number
        return True

    def give_back(self, kind: str, region: str) -> None:
        if (kind, region) in self._stock:
            self._stock[kind, region] += 1

    def reprice(self, kind: str, factor: Decimal) -> None:
        """Its price is so many times what it was at the start."""
        self._factors[kind] = factor

    def price(self, kind: str, region: str) -> tuple[Decimal, Decimal]:
        hourly, monthly = KINDS[kind].price(region)
        factor = self._factors.get(kind, Decimal(1))
        return hourly * factor, monthly * factor

    def types(self) -> Sequence[Json]:
        return [kind.body(self._factors.get(kind.id, Decimal(1))) for kind in KINDS.values()]

    def availability(self, region: str | None = None) -> list[Json]:
        """Only of plans that are not sold everywhere."""
        return [
            {"region": place, "plan": plan, "available": available}
            for (plan, place), available in sorted(self.flags.items())
            if region in {None, place}
        ]
