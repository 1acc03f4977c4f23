"""Whether machines of a growth pool are within its `max`, `min` and `limits.nodes`. Pure.

Counted is everything from a request to the moment when the machine is gone: claims, requests whose claim is not there
yet, and names that somebody has reserved. A name counts once, whichever of the three it is.
"""

import collections
import dataclasses
import datetime as dt
from collections.abc import Iterable, Mapping, Sequence

from growth.api import names
from growth.api.growthpools import GrowthPool, NodeRequest
from growth.api.karpenter import NodeClaim
from growth.api.pools import PoolRef
from growth.api.reservations import Reservation
from growth.cluster.machines import types_of
from growth.cluster.node_requests import COUNTED, claim_name, server_type


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A machine to be asked for; `name` is its claim's, `type` in lower case.

    A `warm` one is wanted only as long as there are fewer than the type's `min`. `price` is the most that it can cost,
    in billionths an hour, for caps of the whole cluster.
    """

    name: str
    type: str
    warm: bool = False
    price: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Booked:
    """What may be asked for, what may not and why, and all names that are reserved then."""

    taken: tuple[Wanted, ...]
    refused: tuple[tuple[Wanted, str], ...]
    reserved: Mapping[str, Reservation]


class Count:
    """The machines of one pool by their claims' names, each with the types that it is or may become, in lower case."""

    def __init__(
        self,
        pool: str,
        *,
        claims: Iterable[NodeClaim],
        requests: Iterable[NodeRequest] = (),
        besides: Iterable[str] = (),
    ) -> None:
        """`besides` are names that are not counted."""
        self._types: dict[str, tuple[str, ...]] = {}
        for claim in claims:
            if claim.metadata.labels.get(names.POOL_LABEL) == pool:
                self._types[claim.metadata.name] = types_of(claim)
        for request in requests:
            if request.spec.pool == pool and request.status.phase in COUNTED:
                self._types.setdefault(claim_name(request.metadata.name), (server_type(request).lower(),))
        for name in besides:
            self._types.pop(name, None)
        self._of = collections.Counter(type_ for types in self._types.values() for type_ in set(types))

    def add(self, name: str, type_: str) -> None:
        if name not in self._types:
            self._types[name] = (type_.lower(),)
            self._of[type_.lower()] += 1

    def __len__(self) -> int:
        return len(self._types)

    def of(self, type_: str) -> int:
        return self._of[type_]


def book(
    pool: GrowthPool,
    wanted: Sequence[Wanted],
    *,
    reserved: Mapping[str, Reservation],
    claims: Iterable[NodeClaim],
    requests: Iterable[NodeRequest],
    now: dt.datetime,
) -> Booked:
    """Books the machines within the pool's bounds, in their order. Everything given must be fresh.

    `reserved` are names that somebody will still create; the machines' own do not count.
    """
    ref = PoolRef.growth(pool.metadata.name)
    own = {each.name for each in wanted}
    standing = {name: each for name, each in reserved.items() if name not in own}
    count = Count(ref.name, claims=claims, requests=requests, besides=own)
    for name, reservation in standing.items():
        count.add(name, reservation.instance_type)
    asked = {each.name.lower(): each for each in pool.spec.server_types}
    taken: list[Wanted] = []
    refused: list[tuple[Wanted, str]] = []
    booked = dict(standing)
    for each in wanted:
        bounds = asked.get(each.type)
        there, most = count.of(each.type), pool.spec.limits.nodes
        if bounds is None:
            why = f"NodePool {ref} has no server type {each.type} any more"
        elif each.warm and there >= bounds.min:
            why = f"NodePool {ref} has its min of {bounds.min} machines of type {bounds.name}"
        elif there >= bounds.max:
            why = (
                f"NodePool {ref} has no room left: max {bounds.max} of type {bounds.name}, {there} are there or coming"
            )
        elif most is not None and len(count) >= most:
            why = f"NodePool {ref} has no room left: limit nodes {most}, {len(count)} are there or coming"
        else:
            count.add(each.name, each.type)
            taken.append(each)
            booked[each.name] = Reservation(at=now, instance_type=each.type)
            continue
        refused.append((each, why))
    return Booked(tuple(taken), tuple(refused), booked)
