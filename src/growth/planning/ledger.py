"""What a pool may still buy: limits on resources and nodes, a maximum per type, and free places in reservations.

Limits are exact inside a pass. Each planned machine holds the capacity of the option that it would be bought as, and a
pod joins a machine only if the larger option that it then needs is still within the limits. Holds can be given back.
"""

import dataclasses

from growth.api import names
from growth.cluster.snapshot import NODES, PoolView
from growth.planning.offerings import Option, Shelf


@dataclasses.dataclass(slots=True)
class Hold:
    """What one planned machine takes of its pool: one node, of one option."""

    option: Option | None = None


class Ledger:
    """The books of one pool. `free` ones (without any limit) answer yes to everything."""

    def __init__(self, pool: PoolView) -> None:
        self._left = {name: limit - pool.used.get(name, 0) for name, limit in pool.limits.items()}
        self._types = {name: most - pool.type_used.get(name, 0) for name, most in pool.type_max.items()}
        self._reservations: dict[str, int] = {}
        for kind in pool.instance_types:
            for offering in kind.offerings:
                if offering.reservation:
                    self._reservations[offering.reservation] = offering.reservation_capacity
        self.bounded = bool(self._left or self._types or self._reservations)

    def nodes_left(self) -> int | None:
        return self._left.get(NODES)

    def within(self, shelf: Shelf, mask: int, hold: Hold | None) -> Option | None:
        """The cheapest option of the mask that a machine may be bought as, giving back what it holds now."""
        if hold is None and self._left.get(NODES, 1) < 1:
            return None
        held = hold.option if hold else None
        while mask:
            low = mask & -mask
            option = shelf.options[low.bit_length() - 1]
            if self._affordable(option, held):
                return option
            mask ^= low
        return None

    def _affordable(self, option: Option, held: Option | None) -> bool:
        if option is held:
            return True
        for name, left in self._left.items():
            if name != NODES:
                back = held.type.capacity.get(name, 0) if held else 0
                if option.type.capacity.get(name, 0) > left + back:
                    return False
        kind = option.type.name
        if kind in self._types and self._types[kind] + (held is not None and held.type.name == kind) < 1:
            return False
        reserved = option.offering.reservation
        if option.offering.capacity_type == names.RESERVED and reserved:
            back = held is not None and held.offering.reservation == reserved
            return self._reservations.get(reserved, 0) + back >= 1
        return True

    def take(self, hold: Hold, option: Option) -> None:
        """Books the option for a machine, giving back what it held."""
        if hold.option is None and NODES in self._left:
            self._left[NODES] -= 1
        if hold.option is not None:
            self._book(hold.option, 1)
        self._book(option, -1)
        hold.option = option

    def _book(self, option: Option, sign: int) -> None:
        for name in self._left:
            if name != NODES:
                self._left[name] += sign * option.type.capacity.get(name, 0)
        if option.type.name in self._types:
            self._types[option.type.name] += sign
        if option.offering.reservation:
            self._reservations[option.offering.reservation] = (
                self._reservations.get(option.offering.reservation, 0) + sign
            )

    def listable(self, shelf: Shelf, mask: int, hold: Hold) -> list[Option]:
        """The options that a machine may list besides the one it holds, such that whichever is bought keeps the limits.

        What the dearest listed one takes more than the held one is booked, so that the next machine sees it.
        """
        assert hold.option is not None
        listed = [hold.option]
        for option in shelf.chosen(mask):
            if option is hold.option:
                continue
            if option.type.name in self._types or option.offering.reservation:
                continue  # a place under a maximum or in a reservation is held for one machine, not listed by many
            grown = {
                name: max(0, option.type.capacity.get(name, 0) - max(o.type.capacity.get(name, 0) for o in listed))
                for name in self._left
                if name != NODES
            }
            if all(more <= self._left[name] for name, more in grown.items()):
                for name, more in grown.items():
                    self._left[name] -= more
                listed.append(option)
        return listed
