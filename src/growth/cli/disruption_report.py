"""What would be disrupted, as people and programs see it."""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Final

from growth.cli.output import Section
from growth.planning.disruption.model import Decided, Kept, Move
from growth.planning.explaining.reaching import Reachable
from growth.units.money import HOURS_PER_MONTH, NANO, Hours, Money, monthly, print_hourly, print_monthly

# So many names stand in a cell of a table.
_NAMED: Final = 3
_ENDED: Final = "The search ended before it was through: there may be more to save."


@dataclasses.dataclass(frozen=True, slots=True)
class Disruptions:
    """The decision as people and programs see it. The shape of the JSON is a contract."""

    decided: Decided
    currency: str
    reach: Reachable
    hours_of_month: Hours = HOURS_PER_MONTH

    def as_json(self) -> dict[str, Any]:
        return {
            "disruptions": [_move(move) for move in self.decided.moves],
            "kept": [
                {"node": each.node, "nodePool": each.pool, "reason": each.reason, "message": each.message}
                for each in self.decided.kept
            ],
            "complete": self.decided.complete,
            "reachable": {
                "today": self.reach.today / NANO,
                "toBuy": self.reach.to_buy / NANO,
                "hourly": self.reach.reachable / NANO,
                "moves": [_move(move) for move in self.reach.moves],
                "unschedulable": list(self.reach.unplaced),
                "complete": self.reach.complete,
            },
        }

    def sections(self) -> Iterator[Section]:
        """(title, headings, rows) of each table that has rows."""
        if self.decided.moves:
            headings = ("reason", "pool", "nodes", "evictions", "saves", "replaced by")
            yield "To disrupt", headings, [self._row(move) for move in self.decided.moves]
        if self.decided.kept:
            yield "Nodes that stay", ("nodes", "for example", "pool", "reason", "why"), list(self._kept_rows())

    def summary(self) -> Sequence[str]:
        return [*self._now(), *self._reachable()]

    def _reachable(self) -> Iterator[str]:
        """What the cluster costs, what it could cost, and how it gets there: the moves one by one."""
        reach = self.reach
        number = len(reach.moves)
        waits = f" (with {self._month(reach.to_buy)} still to be bought)" if reach.to_buy else ""
        unknown = f"; {_count(len(reach.unpriced), 'node')} without a known price left out" if reach.unpriced else ""
        end = ":" if number else "."
        yield (
            f"Today {self._month(reach.today)}, reachable {self._month(reach.reachable)}{waits}, {_count(number, 'move')}"
            f"{unknown}{end}"
        )
        for at, move in enumerate(reach.moves, start=1):
            bought = _some([each.planned.instance_type for each in move.replacements])
            what = f"replace {_some(move.nodes)} by {bought}" if bought else f"remove {_some(move.nodes)}"
            pods = f", {_count(move.evictions, 'pod')} to move" if move.evictions else ""
            saves = (
                ""
                if move.savings is None
                else f": {self._month(abs(move.savings))} {'less' if move.savings >= 0 else 'more'}"
            )
            yield f"  {at}. {what} ({move.reason}{pods}){saves}"
        if reach.unplaced:
            yield f"{_count(len(reach.unplaced), 'pod')} would have no place then: {_some(reach.unplaced)}."

    def _month(self, nano: int) -> str:
        return print_monthly(monthly(Money(nano, self.currency), hours=self.hours_of_month))

    def _now(self) -> Sequence[str]:
        """What would happen at once, within the budgets."""
        ended = [] if self.decided.complete else [_ENDED]
        moves = self.decided.moves
        if not moves:
            return ["No node would be disrupted now.", *ended]
        going = sum(len(move.nodes) for move in moves)
        coming = sum(len(move.replacements) for move in moves)
        evicted = sum(move.evictions for move in moves)
        bought = f"buy {_count(coming, 'machine')} instead" if coming else "buy nothing"
        told = f"Growth would remove {_count(going, 'node')}, {bought} and move {_count(evicted, 'pod')}"
        return [f"{told}: {self._saved(moves)}.", *ended]

    def _saved(self, moves: Sequence[Move]) -> str:
        known = sum(move.savings or 0 for move in moves)
        unknown = sum(len(move.nodes) for move in moves if move.savings is None)
        saved = f"{self._hourly(known)} saved" if known >= 0 else f"{self._hourly(-known)} more"
        return f"{saved}, and what {_count(unknown, 'node')} without a known price cost" if unknown else saved

    def _row(self, move: Move) -> tuple[object, ...]:
        return (
            move.reason,
            ", ".join(move.pools),
            _some(move.nodes),
            move.evictions,
            "unknown" if move.savings is None else self._hourly(move.savings),
            _some(
                [f"{each.planned.instance_type} at {self._hourly(each.planned.price)}" for each in move.replacements]
            ),
        )

    def _kept_rows(self) -> Iterator[tuple[object, ...]]:
        """Equal reasons in one pool on one row, the most frequent first; the sentence is that of the example."""
        groups: dict[tuple[str, str], list[Kept]] = {}
        for each in self.decided.kept:
            groups.setdefault((each.pool, each.reason), []).append(each)
        for (pool, reason), kept in sorted(groups.items(), key=lambda each: (-len(each[1]), each[1][0].node)):
            yield len(kept), kept[0].node, pool, reason, kept[0].message

    def _hourly(self, nano: int) -> str:
        return print_hourly(Money(nano, self.currency))


def _move(move: Move) -> dict[str, Any]:
    return {
        "reason": move.reason,
        "nodePool": ",".join(move.pools),
        "nodes": list(move.nodes),
        "replacements": [
            {
                "instanceType": each.planned.instance_type,
                "price": each.planned.price / NANO,
                "maxPrice": each.max_price / NANO,
            }
            for each in move.replacements
        ],
        "savings": None if move.savings is None else move.savings / NANO,
        "evictions": move.evictions,
    }


def _some(words: Sequence[str]) -> str:
    """The first few, and how many more."""
    if len(words) <= _NAMED:
        return ", ".join(words)
    return f"{', '.join(words[:_NAMED])} and {len(words) - _NAMED} more"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
