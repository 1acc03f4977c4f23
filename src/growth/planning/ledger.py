"""What a pool may still buy: limits on resources and nodes, a maximum per type, and free places in reservations.

Limits are exact inside a pass. Each planned machine holds the capacity of the option that it would be bought as (of
several where `minValues` wants several), and a pod joins a machine only if what it then needs is still within the limits.
"""

import copy
import dataclasses
from collections.abc import Mapping

from growth.api import names
from growth.cluster.snapshot import NODES, PoolView
from growth.planning.offerings import Option, Shelf, State


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """What one planned machine takes of its pool: one node, and the most that any of the options `mask` would take.

    `type` and `reservation` are set where the pool counts machines by them.
    """

    mask: int
    amounts: Mapping[str, int]
    type: str = ""
    reservation: str = ""


class Ledger:
    """The books of one pool. Those that are not `bounded` need not be asked."""

    def __init__(self, pool: PoolView) -> None:
        self._left = {name: limit - pool.used.get(name, 0) for name, limit in pool.limits.items() if name != NODES}
        self._nodes = pool.limits[NODES] - pool.used.get(NODES, 0) if NODES in pool.limits else None
        self._types = {name: most - pool.type_used.get(name, 0) for name, most in pool.type_max.items()}
        self._reservations = {
            offering.reservation: offering.reservation_capacity
            for kind in pool.instance_types
            for offering in kind.offerings
            if offering.reservation and offering.capacity_type == names.RESERVED
        }
        self.bounded = bool(self._left or self._types or self._reservations or self._nodes is not None)

    def copy(self) -> "Ledger":
        """The same books, to be kept apart from here on."""
        other = copy.copy(self)
        other._left, other._types = self._left.copy(), self._types.copy()  # noqa: SLF001 - its own kind
        other._reservations = self._reservations.copy()  # noqa: SLF001
        return other

    @property
    def nodes_left(self) -> int | None:
        """How many machines more; None without a limit."""
        return self._nodes

    def give_back(self, nodes: int) -> None:
        """So many machines of the pool go for what is bought."""
        if self._nodes is not None:
            self._nodes += nodes

    def within(self, shelf: Shelf, state: State, mask: int, held: Hold | None) -> Hold | None:
        """The cheapest options of the mask that the machine may be bought as, as few as `minValues` allows.

        What it holds now is given back for the question. None where nothing is within the limits.
        """
        if held is None and self._nodes is not None and self._nodes < 1:
            return None
        back: Mapping[str, int] = held.amounts if held else {}
        left = {name: amount + back.get(name, 0) for name, amount in self._left.items()}
        too_large: set[str] = set()  # types: what is too large in one zone is so in all
        amounts: dict[str, int] = {}
        kind, reservation, listed = "", "", 0
        for index in shelf.indices(mask):
            option = shelf.options[index]
            if option.type.name in too_large:
                continue
            if listed and self._counted(option):
                continue  # a place under a maximum or in a reservation is held for one machine, not listed by many
            grown = {name: max(amounts.get(name, 0), option.type.capacity.get(name, 0)) for name in left}
            if any(amount > left[name] for name, amount in grown.items()):
                too_large.add(option.type.name)
                continue
            if not listed:
                if not self._has_place(option, held):
                    continue
                kind = option.type.name if option.type.name in self._types else ""
                reservation = option.offering.reservation if option.offering.reservation in self._reservations else ""
            amounts, listed = grown, listed | 1 << index
            if shelf.too_rigid(state, listed) is None:
                return Hold(listed, amounts, kind, reservation)
        return None

    def _counted(self, option: Option) -> bool:
        return option.type.name in self._types or option.offering.reservation in self._reservations

    def _has_place(self, option: Option, held: Hold | None) -> bool:
        kind, reservation = option.type.name, option.offering.reservation
        if kind in self._types and self._types[kind] + (held is not None and held.type == kind) < 1:
            return False
        if reservation not in self._reservations:
            return True
        return self._reservations[reservation] + (held is not None and held.reservation == reservation) >= 1

    def take(self, held: Hold | None, hold: Hold) -> None:
        """Books `hold` for a machine, giving back what it held."""
        if held is not None:
            self._book(held, 1)
        elif self._nodes is not None:
            self._nodes -= 1
        self._book(hold, -1)

    def _book(self, hold: Hold, sign: int) -> None:
        for name, amount in hold.amounts.items():
            self._left[name] += sign * amount
        if hold.type:
            self._types[hold.type] += sign
        if hold.reservation:
            self._reservations[hold.reservation] += sign

    def small_enough(self, shelf: Shelf, mask: int, held: Hold) -> int:
        """The options of the mask that are no larger than what is left for the machine, which holds this now."""
        for kind in shelf.pool.instance_types if self._left else ():
            if any(kind.capacity.get(name, 0) > left + held.amounts[name] for name, left in self._left.items()):
                mask &= ~shelf.options_with(names.INSTANCE_TYPE_LABEL, kind.name)
        return mask

    def listable(self, shelf: Shelf, mask: int, hold: Hold) -> Hold:
        """The hold with all options that the machine may list, such that whichever is bought keeps the limits.

        What they take more is booked, so that the next machine sees it.
        """
        listed, amounts = hold.mask, dict(hold.amounts)
        for index in shelf.indices(mask & ~hold.mask):
            option = shelf.options[index]
            if self._counted(option):
                continue
            more = {name: max(0, option.type.capacity.get(name, 0) - amount) for name, amount in amounts.items()}
            if all(extra <= self._left[name] for name, extra in more.items()):
                for name, extra in more.items():
                    self._left[name] -= extra
                    amounts[name] += extra
                listed |= 1 << index
        return dataclasses.replace(hold, mask=listed, amounts=amounts)
