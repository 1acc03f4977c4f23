"""The NodeClaim of a planned machine. Pure.

As Karpenter composes it: what the pool's template says, narrowed to what the planned pods need, with the types that
would do. Everything that must be true of the claim from its first moment is in the one body: owner, finalizer, hash,
and the price that nobody may exceed for it.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NODE_POOL, NodeClaim, NodeClaimSpec, NodePool, Requirement, ResourceRequests
from growth.api.kinds import Json
from growth.api.meta import ObjectMeta, OwnerReference
from growth.cluster import replacing
from growth.cluster.hashes import stamp
from growth.cluster.snapshot import PoolView
from growth.planning.plan import PlannedClaim
from growth.planning.requirements import Requirement as Need
from growth.planning.requirements import Requirements, key_of
from growth.ports import Random
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
    """The claim as it is created."""
    template = order.pool.spec.template
    uses = template.spec.node_class_ref
    planned = order.planned
    relaxed = {names.MIN_VALUES_RELAXED_ANNOTATION: "true"} if planned.min_values_relaxed else {}
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
                **relaxed,
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
            resources=ResourceRequests(requests={**quantities(planned.requests)}),
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
    """As many of the types, cheapest first, as keep the claim small; all where `minValues` asks for many."""
    if any(need.min_values for need in planned.requirements.values()):
        return planned.instance_types
    probe = Order(
        name="x" * _NAME,
        pool=pool,
        view=view,
        planned=planned,
        pods=(),
        types=planned.instance_types,
        max_price=planned.max_price,
    )
    size = len(msgspec.json.encode(body(claim(probe, currency=currency))))
    types = list(planned.instance_types)
    while size > BODY_BYTES and len(types) > 1:
        size -= len(types.pop()) + 3  # its quotes and comma
    return tuple(types)


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
    lowered = _lowered(order) if order.planned.min_values_relaxed else {}
    for key, need in sorted(needs.items()):
        if key in _NEVER_REQUIRED or key == names.INSTANCE_TYPE_LABEL:
            continue
        yield from _with_min_values(expressed(key, need), lowered.get(key, need.min_values))
    most = lowered.get(names.INSTANCE_TYPE_LABEL, listed.min_values if listed is not None else 0)
    yield Requirement(key=names.INSTANCE_TYPE_LABEL, operator="In", values=order.types, min_values=most or None)


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


def _lowered(order: Order) -> dict[str, int]:
    """`minValues` as far as the listed types can meet them with values that the requirement allows."""
    kinds = [kind for kind in order.view.instance_types if kind.name in set(order.types)]
    return {
        key: min(need.min_values, len(set(filter(need.allows, _values(key, kinds)))))
        for key, need in order.planned.requirements.items()
        if need.min_values
    }


def _values(key: str, kinds: Iterable[InstanceType]) -> Iterator[str]:
    for kind in kinds:
        if key == names.INSTANCE_TYPE_LABEL:
            yield kind.name
        yield from (value for raw, values in kind.labels.items() if key_of(raw) == key for value in values)
        for offering in kind.offerings:
            own: Mapping[str, tuple[str, ...]] = {
                names.ZONE_LABEL: (offering.zone,),
                names.CAPACITY_TYPE_LABEL: (offering.capacity_type,),
                **offering.labels,
            }
            yield from own.get(key, ())
