"""What is sold: server types with prices, stock and deprecation by location."""

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from growth.api import names
from growth.api.kinds import Json
from growth.providers.catalogues import hetzner as figures
from growth.sim.clouds.hetzner.wire import Refusal, text_time

CURRENCY: Final = figures.CURRENCY
VAT: Final = Decimal("1.19")
IPV4_MONTHLY: Final = Decimal("0.50")
IPV4_HOURLY: Final = Decimal("0.0008")
BACKUP_SHARE: Final = Decimal("0.2")
TRAFFIC_BYTES: Final = 20 * 10**12

# Name: number, city, country, latitude, longitude, network zone.
LOCATIONS: Final = {
    "fsn1": (1, "Falkenstein", "DE", 50.47612, 12.370071, "eu-central"),
    "nbg1": (2, "Nuremberg", "DE", 49.452102, 11.076665, "eu-central"),
    "hel1": (3, "Helsinki", "FI", 60.169855, 24.938379, "eu-central"),
    "ash": (4, "Ashburn, VA", "US", 39.045821, -77.487073, "us-east"),
    "hil": (5, "Hillsboro, OR", "US", 45.54222, -122.951924, "us-west"),
    "sin": (6, "Singapore", "SG", 1.283333, 103.833333, "ap-southeast"),
}
CATEGORIES: Final = {
    "cx": "cost_optimized",
    "cax": "cost_optimized",
    "cpx": "regular_purpose",
    "ccx": "general_purpose",
}
_FIRST_TYPE: Final = 101


@dataclasses.dataclass(frozen=True, slots=True)
class Deprecation:
    """From `unavailable_after` on it is neither listed nor sold."""

    announced: dt.datetime
    unavailable_after: dt.datetime

    def json(self) -> Json:
        return {"announced": text_time(self.announced), "unavailable_after": text_time(self.unavailable_after)}


@dataclasses.dataclass(slots=True)
class Offer:
    """One type in one location. `stock` None: as many as anybody wants. `available` is what the API says, true or not."""

    hourly: Decimal
    monthly: Decimal
    stock: int | None = None
    available: bool = True
    deprecation: Deprecation | None = None

    def sold(self, now: dt.datetime) -> bool:
        return self.deprecation is None or now < self.deprecation.unavailable_after


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerType:
    id: int
    name: str
    cores: int
    memory_gb: float
    disk_gb: int
    arm: bool
    offers: dict[str, Offer]

    @property
    def architecture(self) -> str:
        return "arm" if self.arm else "x86"

    def json(self, now: dt.datetime) -> Json:
        family = self.name.rstrip("0123456789")
        offers = {name: offer for name, offer in self.offers.items() if offer.sold(now)}
        return {
            "id": self.id,
            "name": self.name,
            "description": self.name.upper(),
            "category": CATEGORIES.get(family, "general_purpose"),
            "cores": self.cores,
            "memory": self.memory_gb,
            "disk": self.disk_gb,
            "deprecated": None,
            "deprecation": None,
            "prices": [{"location": name, **_prices(offer)} for name, offer in offers.items()],
            "storage_type": "local",
            "cpu_type": "dedicated" if family == "ccx" else "shared",
            "architecture": self.architecture,
            "included_traffic": None,
            "locations": [
                {
                    "id": LOCATIONS[name][0],
                    "name": name,
                    "available": offer.available,
                    "recommended": offer.available,
                    "deprecation": None if offer.deprecation is None else offer.deprecation.json(),
                }
                for name, offer in offers.items()
            ],
        }


class Market:
    """Prices are those of `growth.providers.catalogues.hetzner` until they are changed here."""

    def __init__(self, stock: Mapping[tuple[str, str], int]) -> None:
        self._types: dict[str, ServerType] = {}
        for number, kind in enumerate(figures.catalogue().types):
            self._types[kind.name] = ServerType(
                id=_FIRST_TYPE + number,
                name=kind.name,
                cores=kind.capacity["cpu"] // 1000,
                memory_gb=float(kind.capacity["memory"] >> 30),
                disk_gb=kind.capacity["ephemeral-storage"] // 10**9,
                arm=kind.labels[names.ARCH_LABEL] == ("arm64",),
                offers={each.zone: _offer(each.price or 0) for each in kind.offerings},
            )
        for (kind_name, location), number in stock.items():
            self.stock(kind_name, location, number)

    def types(self, now: dt.datetime) -> Iterator[ServerType]:
        """Those that are sold anywhere."""
        return (kind for kind in self._types.values() if any(offer.sold(now) for offer in kind.offers.values()))

    def find(self, key: object, now: dt.datetime) -> ServerType | None:
        """By number or by name."""
        for kind in self.types(now):
            if str(key) == str(kind.id) or str(key) == kind.name:
                return kind
        return None

    # What a person or a test does to the market.

    def stock(self, kind: str, location: str, number: int | None) -> None:
        """How many can be bought from now on; `*` stands for all types or locations. `ValueError` for unknown ones."""
        for offer in self._offers(kind, location):
            offer.stock = number

    def left(self, kind: str, location: str) -> int | None:
        return self._types[kind].offers[location].stock

    def flag(self, kind: str, location: str, *, available: bool) -> None:
        """What the API says of the stock, whether it is so or not."""
        for offer in self._offers(kind, location):
            offer.available = available

    def price(self, kind: str, location: str, monthly: str) -> None:
        """EUR a month from now on, for new servers."""
        for offer in self._offers(kind, location):
            offer.monthly = Decimal(monthly)
            offer.hourly = _hourly(offer.monthly)

    def deprecate(self, kind: str, location: str, *, announced: dt.datetime, unavailable_after: dt.datetime) -> None:
        for offer in self._offers(kind, location):
            offer.deprecation = Deprecation(announced, unavailable_after)

    def _offers(self, kind: str, location: str) -> list[Offer]:
        if kind != "*" and kind not in self._types:
            raise ValueError(f"{kind!r} is no server type: {', '.join(self._types)}")
        if location != "*" and location not in LOCATIONS:
            raise ValueError(f"{location!r} is no location: {', '.join(LOCATIONS)}")
        found = [
            offer
            for each in self._types.values()
            if kind in {"*", each.name}
            for place, offer in each.offers.items()
            if location in {"*", place}
        ]
        if not found:
            raise ValueError(f"{kind} is not sold in {location}")
        return found

    # What a purchase does.

    def buy(self, kind: ServerType, location: str, now: dt.datetime) -> Offer:
        """Takes one out of stock, or refuses."""
        offer = kind.offers.get(location)
        if offer is None:
            raise Refusal(422, "invalid_input", f"unsupported location for server type {kind.name}")
        if not offer.sold(now):
            raise Refusal(422, "invalid_server_type", f"server type {kind.name} is deprecated in {location}")
        if offer.stock is not None:
            if offer.stock <= 0:
                raise Refusal(412, "resource_unavailable", "error during placement: no capacity for this server type")
            offer.stock -= 1
        return offer

    def give_back(self, kind: ServerType, location: str) -> None:
        offer = kind.offers[location]
        if offer.stock is not None:
            offer.stock += 1


def location_json(name: str) -> Json:
    number, city, country, latitude, longitude, zone = LOCATIONS[name]
    return {
        "id": number,
        "name": name,
        "description": f"{city} Park 1",
        "country": country,
        "city": city,
        "latitude": latitude,
        "longitude": longitude,
        "network_zone": zone,
    }


def pricing(market: Market, now: dt.datetime) -> Json:
    """The price list with everything that is not a server type."""
    return {
        "currency": CURRENCY,
        "vat_rate": "19.00",
        "primary_ips": [
            {
                "type": version,
                "prices": [
                    {
                        "location": place,
                        "price_hourly": _price(IPV4_HOURLY if version == "ipv4" else Decimal(0)),
                        "price_monthly": _price(IPV4_MONTHLY if version == "ipv4" else Decimal(0)),
                    }
                    for place in LOCATIONS
                ],
            }
            for version in ("ipv4", "ipv6")
        ],
        "server_backup": {"percentage": f"{BACKUP_SHARE * 100:.2f}"},
        "server_types": [
            {"id": kind.id, "name": kind.name, "prices": kind.json(now)["prices"]} for kind in market.types(now)
        ],
    }


def _offer(hourly_nano: int) -> Offer:
    monthly = (Decimal(hourly_nano) * figures.HOURS_BILLED / 10**9).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return Offer(hourly=_hourly(monthly), monthly=monthly)


def _hourly(monthly: Decimal) -> Decimal:
    return (monthly / figures.HOURS_BILLED).quantize(Decimal("0.0001"), ROUND_HALF_UP)


def _prices(offer: Offer) -> Json:
    return {
        "price_hourly": _price(offer.hourly),
        "price_monthly": _price(offer.monthly),
        "included_traffic": TRAFFIC_BYTES,
        "price_per_tb_traffic": _price(Decimal(1)),
    }


def _price(net: Decimal) -> Json:
    return {"net": f"{net:.10f}", "gross": f"{net * VAT:.10f}"}
