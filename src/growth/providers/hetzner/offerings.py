"""What Hetzner sells, as a catalogue, and what a node class makes of it: its places, its extras, what its nodes reported.

Pure. Prices are net, an hour, as the vendor lists them per location. A price that is missing means «not sold», never 0.
Whether a type is flagged available is not asked: the flag is advice, and only an order tells.
"""

import dataclasses
import datetime as dt
import decimal
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Final

from growth.api import names
from growth.api.instance_types import Billing, Catalogue, InstanceType, Offering
from growth.api.nodeclasses import HetznerNodeClass
from growth.providers.catalogues import hetzner as listed
from growth.providers.hetzner.classes import at_most, learned_sizes
from growth.providers.hetzner.owned import owned_types
from growth.providers.hetzner.wire import Deprecation, Price, Pricing, ServerType
from growth.providers.learning import sized
from growth.units.errors import MoneyError
from growth.units.money import Money

HOUR_SECONDS: Final = 3600
ARCHITECTURES: Final = {"x86": "amd64", "arm": "arm64"}
IPV4: Final = "ipv4"


def vendors_word(architecture: str) -> str:
    """`arm` for arm64."""
    return next((word for word, ours in ARCHITECTURES.items() if ours == architecture), architecture)


def catalogue(types: Sequence[ServerType], pricing: Pricing, *, now: dt.datetime) -> Catalogue:
    """Every type that can be ordered somewhere, at its own price. Types that cannot be any more are among `successors`."""
    currency = pricing.currency or listed.CURRENCY
    sold: list[InstanceType] = []
    outlived: list[ServerType] = []
    for kind in sorted(types, key=lambda each: each.name):
        made = _type(kind, currency, now=now)
        if made.offerings:
            sold.append(made)
        elif _ended(kind, now):
            outlived.append(kind)
    known = {kind.name for kind in sold}
    fixed = {name: next_ for name, next_ in listed.SUCCESSORS.items() if name not in known}
    by_rule = {each.name: _successor(each, types, known) for each in outlived}
    successors = {name: found for name, found in by_rule.items() if found} | fixed
    return Catalogue(listed.CLOUD, currency, tuple(sold), successors)


def for_class(
    node_class: HetznerNodeClass, sold: Catalogue, pricing: Pricing, *, reached: Container[str] | None = None
) -> tuple[InstanceType, ...]:
    """The types as machines of the class are: where it allows them, with its extras, and as large as its nodes said.

    `reached` are the places that its networks reach; None: all are.
    """
    spec = node_class.spec
    found: list[InstanceType] = []
    for kind in sold.types:
        offerings = tuple(
            _with_extras(each, pricing, sold.currency, ipv4=spec.public_net.ipv4, backups=spec.backups)
            for each in kind.offerings
            if (not spec.locations or each.zone in spec.locations) and (reached is None or each.zone in reached)
        )
        changed = dataclasses.replace(kind, offerings=offerings)
        if spec.max_pods is not None:
            changed = dataclasses.replace(changed, capacity={**kind.capacity, "pods": spec.max_pods})
        found.append(changed)
    return sized(found, learned_sizes(node_class))


def owned_by_class(node_class: HetznerNodeClass, booked: Collection[int]) -> tuple[InstanceType, ...]:
    """The types of the machines that it lists, as large as their Nodes said. `maxPods` sets no kubelet there: it only bounds."""
    spec = node_class.spec
    found = [
        dataclasses.replace(kind, capacity=at_most(kind.capacity, spec.max_pods))
        for kind in owned_types(spec.inventory, booked)
    ]
    return sized(found, learned_sizes(node_class))


def _type(kind: ServerType, currency: str, *, now: dt.datetime) -> InstanceType:
    memory = int(decimal.Decimal(str(kind.memory)) * (1 << 30))
    return InstanceType(
        name=kind.name,
        labels={
            names.ARCH_LABEL: (ARCHITECTURES.get(kind.architecture, kind.architecture),),
            names.OS_LABEL: ("linux",),
        },
        capacity={
            "cpu": 1000 * kind.cores,
            "memory": memory,
            "pods": listed.PODS,
            "ephemeral-storage": kind.disk * 10**9,
        },
        offerings=tuple(_offerings(kind, currency, now=now)),
        overhead={"cpu": listed.CPU_KEPT, "memory": memory - memory * listed.MEMORY_LEFT_PERCENT // 100},
        volume_limits=listed.VOLUME_LIMITS,
    )


def _offerings(kind: ServerType, currency: str, *, now: dt.datetime) -> Iterable[Offering]:
    if _is_over(kind.deprecation, now):
        return
    prices = {each.location: each for each in kind.prices}
    if kind.locations is None:
        places: Mapping[str, Deprecation | None] = dict.fromkeys(prices)
    else:
        places = {each.name: each.deprecation for each in kind.locations}
    for place, deprecation in sorted(places.items()):
        price = prices.get(place)
        if price is None or _is_over(deprecation, now):
            continue
        hourly = _nano(price.price_hourly.net, currency)
        if hourly is None:
            continue
        yield Offering(
            place,
            names.ON_DEMAND,
            hourly,
            labels={names.REGION_LABEL: (place,), listed.CSI_LOCATION_LABEL: (place,)},
            billing=Billing(HOUR_SECONDS, _nano(price.price_monthly.net, currency)),
        )


def _with_extras(offering: Offering, pricing: Pricing, currency: str, *, ipv4: bool, backups: bool) -> Offering:
    """An extra whose price is not known makes the whole price unknown."""
    price = offering.price
    cap = offering.billing.monthly_cap if offering.billing is not None else None
    if backups:
        percent = _percent(pricing)
        price, cap = _raised(price, percent), _raised(cap, percent)
    if ipv4:
        address = _address(pricing, offering.zone)
        price = _sum(price, _nano(address.price_hourly.net, currency) if address is not None else None)
        cap = _sum(cap, _nano(address.price_monthly.net, currency) if address is not None else None)
    return dataclasses.replace(offering, price=price, billing=Billing(HOUR_SECONDS, cap))


def _ended(kind: ServerType, now: dt.datetime) -> bool:
    """Whether the type could be ordered once and cannot be any more, anywhere."""
    if _is_over(kind.deprecation, now):
        return True
    return bool(kind.locations) and all(_is_over(each.deprecation, now) for each in kind.locations or ())


def _is_over(deprecation: Deprecation | None, now: dt.datetime) -> bool:
    end = deprecation.unavailable_after if deprecation is not None else None
    return end is not None and end <= now


def _successor(kind: ServerType, types: Sequence[ServerType], sold: set[str]) -> str:
    """The type of the same sort and size that is sold; of several the last by name, which is the newest generation."""
    like = [
        each.name
        for each in types
        if each.name in sold
        and (each.architecture, each.cpu_type) == (kind.architecture, kind.cpu_type)
        and (each.cores, each.memory) == (kind.cores, kind.memory)
        and each.name.rstrip("0123456789") == kind.name.rstrip("0123456789")
    ]
    return max(like, default="")


def _address(pricing: Pricing, place: str) -> Price | None:
    for sort in pricing.primary_ips:
        if sort.type == IPV4:
            return next((each for each in sort.prices if each.location == place), None)
    return None


def _percent(pricing: Pricing) -> decimal.Decimal | None:
    try:
        return decimal.Decimal(pricing.server_backup.percentage) if pricing.server_backup is not None else None
    except decimal.InvalidOperation:
        return None


def _raised(amount: int | None, percent: decimal.Decimal | None) -> int | None:
    if amount is None or percent is None or not percent.is_finite():
        return None
    return amount + int((amount * percent / 100).to_integral_value(decimal.ROUND_HALF_EVEN))


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _nano(text: str, currency: str) -> int | None:
    try:
        nano = Money.parse(text, currency).nano
    except MoneyError:
        return None
    return nano if nano >= 0 else None
