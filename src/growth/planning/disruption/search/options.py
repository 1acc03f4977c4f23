"""How to search for cheaper clusters, and what a search has found."""

import dataclasses
import datetime as dt
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from growth.planning.disruption.model import Kept, Move, OwnedNode
from growth.planning.solve import Options

# Steps of one search: attempts to place pods of one kind, and pods bound in rehearsals. A full decision about 1,000 nodes
# with 15,000 pods takes about a thirtieth of it. `growth run` has the same defaults for what may be set there.
BUDGET: Final = 1_000_000
# A thousandth of the currency for each pod that is moved, against what a day saves.
EVICTION_COST: Final = 1_000_000
HORIZON: Final = dt.timedelta(days=1)
# Of the price of what goes: below that machines are bought and pods moved for next to nothing.
LEAST_PERCENT: Final = 3
# The same where nothing has come or gone for so long: what is saved there lasts.
AT_REST: Final = dt.timedelta(hours=1)
AT_REST_PERCENT: Final = 1
# Of the price of what goes, where pods move again that were moved a moment ago.
AGAIN_PERCENT: Final = 20
# So long a move was a moment ago.
SETTLING: Final = dt.timedelta(minutes=15)
_HOUR: Final = dt.timedelta(hours=1)
_TICK: Final = dt.timedelta(microseconds=1)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """How to search.

    `budget` is in steps, so that equal input gives an equal result on any machine. `node_cost` is what a machine costs
    beside its price; it counts for what is chosen, never for what may be bought. A move must save more within the
    `horizon` than `eviction_cost` for each pod that it evicts; one that buys must save `least_percent` of what goes at least
    (`at_rest_percent` of nodes on which no pod has come or gone for `at_rest`), and `again_percent` where it moves pods that
    were moved within `settling`; for so long what was bought for them stays. `stop` is asked now and then: when it says True
    the search ends at once, incomplete, and nobody uses its result.
    Money is in billionths of the currency.
    """

    budget: int = BUDGET
    spot_to_spot: bool = False
    node_cost: int = 0
    eviction_cost: int = EVICTION_COST
    horizon: dt.timedelta = HORIZON
    least_percent: int = LEAST_PERCENT
    at_rest: dt.timedelta = AT_REST
    at_rest_percent: int = AT_REST_PERCENT
    again_percent: int = AGAIN_PERCENT
    settling: dt.timedelta = SETTLING
    planning: Options = Options(packer="cost")  # noqa: RUF009 - frozen
    stop: Callable[[], bool] | None = None

    def rests(self, node: OwnedNode) -> bool:
        """Whether nothing has happened on the node for so long that it will probably stay so for a while."""
        return node.quiet_seconds >= self.at_rest.total_seconds()

    def least(self, nodes: Iterable[OwnedNode]) -> int:
        """The percentage of their price that must be saved where these go and something is bought."""
        return self.at_rest_percent if all(map(self.rests, nodes)) else self.least_percent

    def owed(self, evictions: int) -> int:
        """What an hour must save at least, that so many evictions are paid for."""
        return -(-evictions * self.eviction_cost * (_HOUR // _TICK) // max(1, self.horizon // _TICK))

    def too_little(self, nodes: Sequence[OwnedNode], spent: int, evictions: int, *, buys: bool) -> str:
        """Why the nodes do not go, and so many pods do not move, for machines of that price or for none; empty where they may."""
        paid = sum(node.price or 0 for node in nodes)
        saved, least = paid - spent, self.least(nodes) if buys else 0
        if saved <= 0:
            return "without it nothing would be saved"
        if saved < self.owed(evictions):
            return f"moving {evictions} pod{'' if evictions == 1 else 's'} would cost more than it saves"
        if saved * 100 < paid * least:
            share = saved * 1000 // paid / 10  # rounded down: it is less than what is asked
            return f"what would be bought instead saves only {share:g} % of what it costs, and {least} % are asked"
        return ""

    def pays_again(self, nodes: Sequence[OwnedNode], spent: int) -> bool:
        """Whether it is enough where pods move again that were moved a moment ago."""
        paid = sum(node.price or 0 for node in nodes)
        return (paid - spent) * 100 >= paid * self.again_percent


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Moves that may all be made together, and why the other candidates stay. `target` are all that are to go in the end, now or
    when budgets allow it.

    `complete` False: the budget ended the search, and there may be more to find.
    """

    moves: tuple[Move, ...]
    kept: tuple[Kept, ...]
    steps: int
    complete: bool = True
    target: frozenset[str] = frozenset()
