"""The NodeClaim of a planned machine. Pure.

As Karpenter composes it: what the pool's template says, narrowed to what the planned pods need, with the types that
would do. Everything that must be true of the claim from its first moment is in the one body: owner, finalizer, hash,
and the price that nobody may exceed for it.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import Catalogue, Labels
from growth.api.karpenter import NODE_POOL, NodeClaim, NodeClaimSpec, NodePool, Requirement, ResourceRequests
from growth.api.kinds import Json
from growth.api.meta import ObjectMeta, OwnerReference
from growth.cluster import replacing
from growth.cluster.hashes import stamp
from growth.cluster.snapshot import PoolView
from growth.planning.listing import prices
from growth.planning.offerings import option_labels
from growth.planning.plan import PlannedClaim
from growth.planning.requirements import Requirement as Need
from growth.planning.requirements import Requirements
from growth.ports import Random
from growth.providers.choice import choices
from growth.units.money import Money
from growth.units.resources import quantities

# As the API server's own random names: no vowels, no digits that look like letters.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM: Final = 5
# A claim's name becomes a Node's name and a label's value.
_NAME: Final = 63
# What is left of the 4096 bytes of a claim when its status, its launch labels and what the server adds are counted.
BODY_BYTES: Final = 2400

# Labels that no claim may require: each node has its own name.
_NEVER_REQUIRED: Final = frozenset({names.HOSTNAME_LABEL})


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A planned machine with everything that its claim will say. `pods` are those that it is still wanted for.

    Where the plan has prices of people's own making (NodeOverlays) the cloud, which knows its own only, is told no bound, and
    the claim lists no type that is too dear. `replaces` names the claims that go once this machine can take
    their pods. `annotations` are written with the claim.
    """

    name: str
    pool: NodePool
    view: PoolView
    planned: PlannedClaim
    pods: tuple[str, ...]
    types: tuple[str, ...]
    max_price: int
    replaces: tuple[str, ...] = ()
    annotations: Mapping[str, str] = dataclasses.field(default_factory=dict)


def claim_name(pool: str, random: Random) -> str:
    """`<pool>-<5 random characters>`, never longer than a Node's name may be."""
    ending = "".join(random.choice(_LETTERS) for _ in range(_RANDOM))
    return f"{pool[: _NAME - _RANDOM - 1].rstrip('-.')}-{ending}"


def claim(order: Order, *, currency: str) -> NodeClaim:
    """The claim as it is created. `minValues` that cannot be launched within its price are lowered, and it says so."""
    made = _claim(order, currency=currency)
    lowered = dict(_lowered(order, made, currency=currency))
    if not lowered:
        return made
    relaxed = {names.MIN_VALUES_RELAXED_ANNOTATION: "true"}
    return msgspec.structs.replace(
        made,
        metadata=msgspec.structs.replace(made.metadata, annotations={**made.metadata.annotations, **relaxed}),
        spec=msgspec.structs.replace(
            made.spec,
            requirements=tuple(
                msgspec.structs.replace(each, min_values=lowered[each.key] or None)
                if each.min_values and each.key in lowered
                else each
                for each in made.spec.requirements
            ),
        ),
    )


def is_relaxed(made: NodeClaim) -> bool:
    """Whether it has less to choose from than its pool's `minValues` ask for."""
    return made.metadata.annotations.get(names.MIN_VALUES_RELAXED_ANNOTATION) == "true"


def _claim(order: Order, *, currency: str) -> NodeClaim:
    template = order.pool.spec.template
    uses = template.spec.node_class_ref
    planned = order.planned
    bound = {} if planned.repriced else {names.MAX_PRICE_ANNOTATION: Money(order.max_price, currency).exact}
    return NodeClaim(
        metadata=ObjectMeta(
            name=order.name,
            labels={
                **_single_valued(order),
                **template.metadata.labels,
                names.NODE_POOL_LABEL: order.pool.metadata.name,
                names.node_class_label(uses.group, uses.kind): uses.name,
            },
            annotations={
                **template.metadata.annotations,
                **stamp(order.pool),
                **bound,
                **replacing.named(order.replaces),
                **order.annotations,
            },
            finalizers=(names.TERMINATION_FINALIZER,),
            owner_references=(
                OwnerReference(
                    api_version=NODE_POOL.api_version,
                    kind=NODE_POOL.kind,
                    name=order.pool.metadata.name,
                    uid=order.pool.metadata.uid,
                    block_owner_deletion=True,
                ),
            ),
        ),
        spec=NodeClaimSpec(
            node_class_ref=uses,
            requirements=tuple(_expressions(order)),
            resources=ResourceRequests(requests={**quantities(planned.least_requests)}),
            taints=template.spec.taints,
            startup_taints=template.spec.startup_taints,
            expire_after=template.spec.expire_after,
            termination_grace_period=template.spec.termination_grace_period,
        ),
    )


def body(made: NodeClaim) -> Json:
    """The claim as the server is given it. `expireAfter` is written even where it is the default: drift compares it."""
    raw: Json = msgspec.to_builtins(made)
    raw.setdefault("spec", {}).setdefault("expireAfter", made.spec.expire_after)
    raw["spec"].setdefault("requirements", [])
    return raw


def short_list(planned: PlannedClaim, *, pool: NodePool, view: PoolView, currency: str) -> tuple[str, ...]:
    """The types that a claim of the planned machine lists, whatever its name."""
    probe = Order(
        name="x" * _NAME,
        pool=pool,
        view=view,
        planned=planned,
        pods=(),
        types=planned.instance_types,
        max_price=planned.max_price,
    )
    return shortened(probe, currency=currency).types


def shortened(order: Order, *, currency: str) -> Order:
    """With as many of its types, cheapest first, as keep the claim small; more where `minValues` needs them."""
    made = claim(order, currency=currency)
    size = len(msgspec.json.encode(body(made)))
    if size <= BODY_BYTES:
        return order
    asked = {each.key: each.min_values for each in made.spec.requirements if each.min_values}
    left = _launchable(order, made, currency=currency) if asked else []
    types = list(order.types)
    for name in reversed(order.types[1:]):
        if size <= BODY_BYTES:
            break
        fewer = [labels for labels in left if name not in labels[names.INSTANCE_TYPE_LABEL]]
        if all(len(_values(order, key, fewer)) >= number for key, number in asked.items()):
            types.remove(name)
            left = fewer
            size -= len(name) + 3  # its quotes and comma
    return dataclasses.replace(order, types=tuple(types))


def _single_valued(order: Order) -> dict[str, str]:
    """Labels of people's own that the plan left one value for; what the cloud says of a machine comes with its launch."""
    return {
        key: next(iter(need.values))
        for key, need in sorted(order.planned.requirements.items())
        if not need.complement
        and len(need.values) == 1
        and key not in names.WELL_KNOWN_LABELS
        and key not in _NEVER_REQUIRED
        and not _of_cloud(key, order.view)
    }


def _of_cloud(key: str, view: PoolView) -> bool:
    """Whether some type or offering defines the label."""
    return any(key in kind.labels_of_today or key in kind.labels_of_offerings for kind in view.instance_types)


def _expressions(order: Order) -> Iterator[Requirement]:
    needs: Requirements = order.planned.requirements
    listed = needs.get(names.INSTANCE_TYPE_LABEL)
    for key, need in sorted(needs.items()):
        if key in _NEVER_REQUIRED or key == names.INSTANCE_TYPE_LABEL:
            continue
        yield from _with_min_values(expressed(key, need), need.min_values)
    most = listed.min_values if listed is not None else 0
    yield Requirement(key=names.INSTANCE_TYPE_LABEL, operator="In", values=order.types, min_values=most or None)


def capped(order: Order, price: int) -> Order:
    """The order if it may cost so much; what costs more is not listed, so that limits need not count it."""
    if price >= order.max_price:
        return order
    offered = prices(order.types, order.planned.requirements, order.view)
    types = tuple(name for name in order.types if min(offered.get(name, ()), default=price + 1) <= price)
    return dataclasses.replace(order, types=types or order.types[:1], max_price=price)


def expressed(key: str, need: Need) -> list[Requirement]:
    """A requirement in the API's words; several of one key where one cannot say it."""
    if not need.complement:
        if need.values:
            return [Requirement(key=key, operator="In", values=tuple(sorted(need.values)))]
        return [Requirement(key=key, operator="DoesNotExist")]
    found = []
    if need.values:
        found.append(Requirement(key=key, operator="NotIn", values=tuple(sorted(need.values))))
    if need.at_least is not None:
        found.append(Requirement(key=key, operator="Gte", values=(str(need.at_least),)))
    if need.at_most is not None:
        found.append(Requirement(key=key, operator="Lte", values=(str(need.at_most),)))
    if not found or (need.present and len(found) == 1 and need.values):
        found.append(Requirement(key=key, operator="Exists"))
    return found


def _with_min_values(found: Sequence[Requirement], min_values: int) -> Iterator[Requirement]:
    for number, each in enumerate(found):
        wanted = min_values if number == 0 and min_values else None
        yield msgspec.structs.replace(each, min_values=wanted) if wanted else each


def _lowered(order: Order, made: NodeClaim, *, currency: str) -> Iterator[tuple[str, int]]:
    """The keys whose `minValues` what can be launched does not meet, each with the number of values that it has.

    What the plan found is so, unless a cap has lowered the price since.
    """
    planned = order.planned
    asked = {key: need.min_values for key, need in planned.requirements.items() if need.min_values}
    if asked and (planned.min_values_relaxed or order.max_price < planned.max_price):
        found = _launchable(order, made, currency=currency)
        numbers = {key: len(_values(order, key, found)) for key in asked}
        yield from ((key, number) for key, number in numbers.items() if number < asked[key])


def _launchable(order: Order, made: NodeClaim, *, currency: str) -> list[Labels]:
    """What each offering that a cloud may launch for the claim says of its machine."""
    listed = set(order.types)
    kinds = tuple(kind for kind in order.view.instance_types if kind.name in listed)
    found = choices(made, Catalogue("", currency, kinds))
    return [option_labels(each.type, each.offering) for each in found if each.offering.available]


def _values(order: Order, key: str, found: Sequence[Labels]) -> set[str]:
    """The values of a label among what can be launched, of those that the plan allows."""
    need = order.planned.requirements[key]
    return {value for labels in found for value in labels.get(key, ()) if need.allows(value)}
