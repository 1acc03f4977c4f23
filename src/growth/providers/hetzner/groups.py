"""Placement groups: each holds ten machines, so there are as many as a class needs. They are counted before they are used.

A seat is taken before the machine is bought and counts until a list shows the machine, or the purchase failed.
"""

import asyncio
import dataclasses
import itertools
from typing import Final

from growth.api.clouds import CreateError
from growth.ports import Clock
from growth.providers.answering import Hold
from growth.providers.hetzner import labels
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.failures import Meaning, meaning, told
from growth.providers.hetzner.wire import PlacementGroup
from growth.providers.http import Refused, Unanswered

SEATS: Final = 10
# How old a list of groups may be where it shows a free seat; a full one is read again.
LISTED_SECONDS: Final = 60.0
# A seat whose machine no list shows after that is free: the machine is gone.
SEAT_SECONDS: Final = 600.0
_ATTEMPTS: Final = 5

NO_GROUP: Final = "NoPlacementGroup"


@dataclasses.dataclass(slots=True, eq=False)
class Seat:
    """A place in a group, for one machine; `server` once it is bought."""

    group: int
    since: float
    server: int | None = None


class Groups:
    """One per account. Two processes may both take the last seat of a group: the vendor then refuses one of them."""

    def __init__(self, cloud: HetznerApi, *, cluster: str, clock: Clock) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._listed: dict[int, PlacementGroup] = {}
        self._as_of: float | None = None
        self._seats: list[Seat] = []
        self._hold = Hold(clock)

    async def take(self, node_class: str) -> Seat:
        """A seat for a machine of the class; a group is made where all are full.

        `CallError` where that fails, `CreateError` where the account may hold no more groups.
        """
        async with self._lock:
            for _ in range(_ATTEMPTS):
                group = self._free(node_class)
                if group is None and not await self._relisted():
                    group = await self._make(node_class)
                if group is not None:
                    seat = Seat(group, self._clock.monotonic())
                    self._seats.append(seat)
                    return seat
            raise Unanswered("placement groups change faster than they can be read")

    def give_back(self, seat: Seat) -> None:
        """Nothing was bought for it."""
        if seat in self._seats:
            self._seats.remove(seat)

    async def is_lost(self, seat: Seat) -> bool:
        """After a refusal that may be the group's: gives the seat back; whether the group is full by now, or gone."""
        refused = self._clock.monotonic()
        self.give_back(seat)
        async with self._lock:
            if self._as_of is None or self._as_of < refused:
                await self._list()
            group = self._listed.get(seat.group)
        return group is None or len(group.servers) >= SEATS

    def are_there(self) -> bool:
        """Whether the account has groups of ours, as far as we know; so too before it was asked."""
        return self._as_of is None or bool(self._listed)

    async def tidy(self) -> int:
        """Removes groups of ours that nobody is in or on the way to; how many."""
        async with self._lock:
            await self._list()
            removed = 0
            for group in [group for group in self._listed.values() if not self._taken(group)]:
                try:
                    await self._cloud.delete_placement_group(group.id)
                except Refused as error:
                    if meaning(error.code, error.message) is Meaning.FATAL:
                        raise
                    if error.code != "not_found":
                        continue
                self._listed.pop(group.id, None)
                removed += 1
            return removed

    def _free(self, node_class: str) -> int | None:
        """The fullest that has a seat, so that few are needed."""
        now = self._clock.monotonic()
        if self._as_of is None or now - self._as_of > LISTED_SECONDS:
            return None
        open_ = [
            (-self._taken(group), group.id)
            for group in self._listed.values()
            if group.labels.get(labels.NODE_CLASS) == labels.label_value(node_class) and self._taken(group) < SEATS
        ]
        return min(open_)[1] if open_ else None

    def _taken(self, group: PlacementGroup) -> int:
        there = set(group.servers)
        return len(there) + sum(
            seat.group == group.id and (seat.server is None or seat.server not in there) for seat in self._seats
        )

    async def _relisted(self) -> bool:
        """Reads the groups where what we know may be old; False where it was read just now."""
        if self._as_of is not None and self._clock.monotonic() - self._as_of < 1.0:
            return False
        await self._list()
        return True

    async def _list(self) -> None:
        began = self._clock.monotonic()
        found = await self._cloud.placement_groups(labels=labels.selector(self._cluster))
        self._listed = {group.id: group for group in found if group.labels.get(labels.CLUSTER) == self._cluster}
        self._as_of = began
        there = {number for group in found for number in group.servers}
        self._seats = [
            seat
            for seat in self._seats
            if seat.server is None or (seat.server not in there and began - seat.since < SEAT_SECONDS)
        ]

    async def _make(self, node_class: str) -> int | None:
        """A new group. None where somebody else took its name: then there is something to read."""
        self._hold.check()
        taken = {group.name for group in self._listed.values()}
        stem = f"growth-{self._cluster}-{labels.label_value(node_class)[:40].rstrip('-._')}"
        name = next(name for name in (f"{stem}-{number}" for number in itertools.count(1)) if name not in taken)
        held = {labels.CLUSTER: self._cluster, labels.NODE_CLASS: labels.label_value(node_class)}
        try:
            group = await self._cloud.create_placement_group(name, labels=held)
        except Refused as error:
            match meaning(error.code, error.message):
                case Meaning.TAKEN:
                    self._as_of = None
                    return None
                case Meaning.QUOTA:
                    raise self._hold.begin(_no_more(error)) from error
                case _:
                    raise
        self._listed[group.id] = group
        return group.id


def _no_more(error: Refused) -> CreateError:
    """Machines may still be had: only of classes that spread theirs is nothing bought."""
    return CreateError(
        "the project may hold no more placement groups, and those of the class are full:"
        f" {told(error)}; remove groups that nobody uses, ask Hetzner for a higher limit, or set"
        " spec.placementGroup of the class to None",
        reason=NO_GROUP,
    )
