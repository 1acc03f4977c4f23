"""What a pool's annotation `growth.dev/in-vain` means for plans, and what a claim says of the pods that it is bought for. Pure.

The law: for one pool and sort of pods machines are bought in vain in at most two rounds, the second of one machine. Then the
sort backs off: no machine is bought there for it before a time that doubles, or a change of the pool, its class or what is
sold; then a single one. Moves of pods that run buy
none for it before that time after the first round already.
"""

import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from growth.api import names
from growth.api.conditions import is_true, since
from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.meta import ObjectMeta
from growth.api.vain import BoughtFor, InVain, annotation, bought_for, parse
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import BackedOff, PoolView
from growth.cluster.sorts import Sorts
from growth.units import print_time

# From so many rounds on a sort backs off.
ROUNDS: Final = 2
# An entry holds so long after its rest, where no machine was tried.
FORGOTTEN: Final = dt.timedelta(days=1)
# A machine that is up for so long and still stands without a word in its pool has not come in vain.
JUDGED: Final = dt.timedelta(seconds=60)
# The times of rest double so often at most.
_DOUBLINGS: Final = 5


def rest_of(rounds: int, first: float) -> float:
    """How many seconds a sort rests after so many rounds in vain; `first` is the shortest rest."""
    return first * 2.0 ** min(max(0, rounds - ROUNDS), _DOUBLINGS)


def basis_of(metadata: ObjectMeta, generation: int, types: Iterable[InstanceType]) -> str:
    """The pool and its node class (by its generation), and after a slash what is sold, prices and stock aside: with another
    basis machines may come otherwise, and one is tried at once.
    """
    sold = [(kind.name, sorted(kind.allocatable.items()), sorted(kind.labels.items())) for kind in types]
    return f"{_digest((metadata.uid, metadata.generation, generation))}/{_digest(sold)}"


def _digest(value: object) -> str:
    return hashlib.blake2s(msgspec.msgpack.encode(value), digest_size=5).hexdigest()


def _same(one: str, other: str, *, whole: bool) -> bool:
    return one == other if whole else one.partition("/")[0] == other.partition("/")[0]


def standing(entries: Mapping[str, InVain], now: dt.datetime) -> dict[str, InVain]:
    """Without what nobody has tried again for long after its rest."""
    return {sort: each for sort, each in entries.items() if now - each.until < FORGOTTEN}


def backed_off(
    metadata: ObjectMeta, basis: str, claims: Iterable[NodeClaim], now: dt.datetime, *, whole: bool = True
) -> dict[str, BackedOff]:
    """The sorts that a pool's annotation holds back, as plans see them. `claims` are the pool's that stay: one machine a sort is
    under way, until its Node has been up for so long that it was judged; others may have taken its room. `whole` False does not compare what is sold: those who only read a cluster know a list of prices.
    """
    entries = standing(parse(metadata.annotations.get(names.IN_VAIN_ANNOTATION, "")), now)
    under_way = {
        each.sort
        for claim in (claims if entries else ())
        for each in bought_for(claim.metadata)
        if each.sort in entries and each.rounds >= entries[each.sort].rounds and not _is_judged(claim, now)
    }
    found = {}
    for sort, each in entries.items():
        rested = sort not in under_way and (now >= each.until or not _same(each.basis, basis, whole=whole))
        found[sort] = BackedOff(
            rounds=each.rounds,
            why=_said(each, under_way=sort in under_way, rested=rested),
            probe=rested or (sort not in under_way and each.rounds < ROUNDS),
            rested=rested,
            claim=each.claim,
        )
    return found


def _is_judged(claim: NodeClaim, now: dt.datetime) -> bool:
    up = (
        since(claim.status.conditions, names.INITIALIZED)
        if is_true(claim.status.conditions, names.INITIALIZED)
        else None
    )
    return up is not None and now - up > JUDGED


def _said(entry: InVain, *, under_way: bool, rested: bool) -> str:
    where = f"the Node {entry.node} of NodeClaim {entry.claim}" if entry.node else f"NodeClaim {entry.claim}"
    rounds = "a machine was" if entry.rounds == 1 else f"{entry.rounds} rounds of machines were"
    if under_way:
        then = "one machine is tried, and no other meanwhile"
    elif rested or entry.rounds < ROUNDS:
        then = "one machine is tried before others"
    else:
        then = f"none is bought before {print_time(entry.until)}, then one"
    return f"{rounds} bought here in vain for such pods, last {where}: {entry.why}; {then}"


def annotated(view: PoolView | None, shapes: Sequence[PodShape], sorts: Sorts) -> dict[str, str]:
    """The annotation of a claim that is bought in that pool for pods of these shapes."""
    counts: dict[str, int] = {}
    for shape in shapes:
        sort = sorts.digest(shape)
        counts[sort] = counts.get(sort, 0) + 1
    known = {} if view is None else view.in_vain
    return annotation(
        BoughtFor(sort=sort, rounds=known[sort].rounds if sort in known else 0, pods=number)
        for sort, number in counts.items()
    )
