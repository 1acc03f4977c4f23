"""How many nodes of each pool may still be moved in one decision.

What is bought for a pool's own nodes counts there. What another pool buys for them is bounded by that pool's limit alone,
which every plan keeps, and by none of its budgets: nothing of it is disturbed.
"""

from collections.abc import Iterable, Mapping, Sequence

from growth.planning.disruption.model import OwnedNode, Room


class Allowance:
    """The books of budgets and node limits. A pool without an entry has no room."""

    def __init__(self, rooms: Mapping[str, Room]) -> None:
        self._rooms = rooms
        self._gone: dict[str, int] = {}
        self._replaced: dict[str, int] = {}
        self._bought: dict[str, int] = {}

    def spent(self, pool: str) -> bool:
        """Whether no node of the pool may go any more."""
        return not self._within(self._room(pool).delete, self._gone.get(pool, 0) + 1)

    def limited(self, pool: str) -> bool:
        """Whether nodes of the pool may go and none of them be replaced any more, which its node limit forbids."""
        room = self._room(pool)
        replaces = self._within(room.replace, self._replaced.get(pool, 0) + 1)
        buys = self._within(room.buy, self._bought.get(pool, 0) + 1)
        return not room.resting and not self.spent(pool) and not (replaces and buys)

    def few(self, pools: Iterable[str]) -> bool:
        """Whether not all of so many nodes of these pools may go."""
        return not all(self._within(self._room(pool).delete, number) for pool, number in _counted(pools).items())

    def deletes(self, nodes: Iterable[OwnedNode]) -> bool:
        """Whether all of these may go without anything in their place."""
        return all(
            self._within(self._room(pool).delete, self._gone.get(pool, 0) + number)
            for pool, number in _counted(node.pool for node in nodes).items()
        )

    def replaces(self, nodes: Sequence[OwnedNode], bought: Iterable[str] = ()) -> bool:
        """Whether these may go for machines of these pools."""
        fine = self.deletes(nodes)
        own = _counted(node.pool for node in nodes)
        for pool, number in own.items():
            fine &= self._within(self._room(pool).replace, self._replaced.get(pool, 0) + number)
        for pool, number in _counted(each for each in bought if each in own).items():
            fine &= self._within(self._room(pool).buy, self._bought.get(pool, 0) + number)
        return fine

    def take(self, nodes: Sequence[OwnedNode], bought: Sequence[str] = ()) -> None:
        """Books a move."""
        own = _counted(node.pool for node in nodes)
        for pool, number in own.items():
            self._gone[pool] = self._gone.get(pool, 0) + number
            if bought:
                self._replaced[pool] = self._replaced.get(pool, 0) + number
        for pool, number in _counted(each for each in bought if each in own).items():
            self._bought[pool] = self._bought.get(pool, 0) + number

    def rebook(self, nodes: Sequence[OwnedNode], before: Sequence[str], after: Sequence[str]) -> bool:
        """Nodes that go already go for machines of other pools or for more of them; False where they may not."""
        own = _counted(node.pool for node in nodes)
        replaced = dict(self._replaced)
        for pool, number in own.items() if after and not before else ():
            replaced[pool] = replaced.get(pool, 0) + number
            if not self._within(self._room(pool).replace, replaced[pool]):
                return False
        bought = dict(self._bought)
        less, more = _counted(before), _counted(after)
        for pool in own:
            bought[pool] = bought.get(pool, 0) + more.get(pool, 0) - less.get(pool, 0)
            if not self._within(self._room(pool).buy, bought[pool]):
                return False
        self._replaced, self._bought = replaced, bought
        return True

    def why_spent(self, pool: str) -> str:
        room = self._room(pool)
        return room.blocked or f"the disruption budgets of NodePool {pool} are used up by other moves"

    def why_resting(self, pool: str) -> str:
        """Why nothing is bought for the pool's nodes for a while; empty where it may be."""
        return self._room(pool).resting

    def awaits(self, pool: str) -> bool:
        """Whether purchases for the pool's nodes are only put off: what would be decided then is not spoiled now."""
        room = self._room(pool)
        return bool(room.resting) and not room.failing

    def _room(self, pool: str) -> Room:
        return self._rooms.get(pool) or Room(0, 0)

    def _within(self, most: int | None, number: int) -> bool:
        return most is None or number <= most


def _counted(pools: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pool in pools:
        found[pool] = found.get(pool, 0) + 1
    return found
