"""What a claim may be launched as: by the function that clouds choose with, and once more without any code of ours."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

import msgspec

from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.controllers.provisioning.claims import Order, body, claim
from growth.controllers.provisioning.passes import Answer
from growth.providers.choice import choices

UNITS: Mapping[str, int | Decimal] = {"": 1, "m": Decimal("0.001"), "k": 10**3, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def orders(answer: Answer) -> list[Order]:
    """The orders of a pass, as the provisioner makes them."""
    assert answer.plan is not None
    return [
        Order(
            name=f"default-{number:05}",
            pool=answer.pools[planned.pool.name],
            view=answer.views[planned.pool],
            planned=planned,
            pods=planned.pods,
            types=types,
            max_price=planned.max_price,
        )
        for number, (planned, types) in enumerate(zip(answer.plan.claims, answer.types, strict=True))
    ]


def written(order: Order, currency: str = "USD") -> tuple[NodeClaim, Json]:
    """The claim as Growth has it, and as the server is given it."""
    made = claim(order, currency=currency)
    return made, msgspec.json.decode(msgspec.json.encode(body(made)))


def values_by_choice(made: NodeClaim, catalogue: Catalogue, key: str) -> set[str]:
    """The values of a label among what `create` chooses from."""
    return {each.labels[key] for each in choices(made, catalogue) if each.offering.available and key in each.labels}


def launchable(raw: Json, types: Sequence[InstanceType]) -> list[tuple[str, Mapping[str, tuple[str, ...]], Decimal]]:
    """(type, labels, price) of each offering that the claim's own words allow, read here and nowhere else."""
    cap = Decimal(raw["metadata"]["annotations"].get(names.MAX_PRICE_ANNOTATION, "Infinity"))
    asked = raw["spec"]["resources"]["requests"]
    found: list[tuple[str, Mapping[str, tuple[str, ...]], Decimal]] = []
    for kind in types:
        if any(_amount(asked[name]) * (1000 if name == "cpu" else 1) > kind.allocatable[name] for name in asked):
            continue
        for offering in kind.offerings:
            own = {
                names.INSTANCE_TYPE_LABEL: (kind.name,),
                names.ZONE_LABEL: (offering.zone,),
                names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
            }
            labels = {**kind.labels, **own, **offering.labels}
            price = Decimal(offering.price or 0) / 10**9
            if not offering.available or offering.price is None or price > cap:
                continue
            if all(_allowed(need, labels.get(need["key"], ())) for need in raw["spec"]["requirements"]):
                found.append((kind.name, labels, price))
    return found


def enough(raw: Json, types: Sequence[InstanceType], pool: NodePool) -> dict[str, tuple[int, int]]:
    """By key of the pool's `minValues`: (values among what can be launched, values asked for)."""
    sold = launchable(raw, types)
    return {
        each.key: (len({value for _, labels, _ in sold for value in labels.get(each.key, ())}), each.min_values)
        for each in pool.spec.template.spec.requirements
        if each.min_values
    }


def _allowed(need: Json, values: Iterable[str]) -> bool:
    match need["operator"]:
        case "In":
            return any(value in need["values"] for value in values) or need["key"] == names.NODE_POOL_LABEL
        case "NotIn":
            return not all(value in need["values"] for value in values) if values else True
        case "Exists":
            return bool(values)
        case other:
            raise AssertionError(f"no claim of these tests says {other}")


def _amount(text: str) -> Decimal:
    digits = text.rstrip("KMGTikm")
    return Decimal(digits) * UNITS[text[len(digits) :]]
