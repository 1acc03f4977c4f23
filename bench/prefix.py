"""Karpenter's consolidation as a rule: what its multi-node and then its single-node method would command.

Candidates are sorted by price ÷ (1 + eviction costs), the highest first. Multi-node takes the first hundred and looks by
halving for the longest prefix that goes for nothing or for one cheaper machine; single-node takes the first node that
does. A replacement lists the types whose worst launch price is below the price of what goes; where a type of the list
goes itself, only cheaper ones stay. `bench.peers.karpenter.consolidate` asks Karpenter itself; `bench disrupt` compares
both. Left out: its clocks (one minute and three), and what these clusters do not have (budgets, minValues, Balanced).
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.planning.attempts import Claim
from growth.planning.disruption.candidates import in_order
from growth.planning.disruption.model import Move, OwnedNode, Replacement, Room, Situation
from growth.planning.disruption.search.ground import Ground
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.solve import Options

MOST: Final = 100
TERMS: Final = (names.RESERVED, names.SPOT, names.ON_DEMAND)


@dataclasses.dataclass(frozen=True, slots=True)
class Command:
    """Nodes that go, and the types of the one machine that comes, cheapest first; none where nothing comes."""

    nodes: tuple[str, ...]
    types: tuple[str, ...] = ()
    replacement: Replacement | None = None

    @property
    def decision(self) -> str:
        return "no-op" if not self.nodes else "replace" if self.types else "delete"


class Prefix:
    """The rule on one situation. Without `candidates` all nodes may go, without `rooms` any number of them."""

    def __init__(
        self,
        situation: Situation,
        *,
        candidates: Sequence[OwnedNode] | None = None,
        rooms: Mapping[str, Room] | None = None,
    ) -> None:
        nodes = situation.nodes if candidates is None else candidates
        self._ground = Ground(situation, nodes, SearchOptions(planning=Options(packer="first-fit")))
        self._left = None if rooms is None else {pool: room.delete for pool, room in rooms.items()}
        index = self._ground.index
        self._order = [index[node.name] for node in in_order(nodes) if self._ground.evicted[index[node.name]]]

    def command(self) -> Command:
        """The first command: of the multi-node method, else of the single-node one."""
        found = self._multi()
        return found if found.nodes else self._single()

    def move(self, command: Command) -> Move:
        """The command as a move of ours."""
        nodes = [self._ground.owned[self._ground.index[name]] for name in command.nodes]
        bought = () if command.replacement is None else (command.replacement,)
        return Move(
            reason=names.UNDERUTILIZED,
            nodes=command.nodes,
            pools=tuple(dict.fromkeys(node.pool for node in nodes)),
            replacements=bought,
            savings=sum(node.price or 0 for node in nodes) - sum(each.planned.price for each in bought),
            evictions=sum(len(self._ground.evicted[self._ground.index[name]]) for name in command.nodes),
        )

    def _multi(self) -> Command:
        candidates = self._within_budgets()
        if len(candidates) < 2:
            return Command(())
        low, high = 1, min(MOST, len(candidates))
        if len(candidates) <= high:
            high = len(candidates) - 1
        last = Command(())
        while low <= high:
            middle = (low + high) // 2
            found = self._computed(candidates[: middle + 1], several=True)
            if found.nodes:
                last = found
                low = middle + 1
            else:
                high = middle - 1
        return last

    def _single(self) -> Command:
        for at in self._within_budgets(each=True):
            found = self._computed([at], several=False)
            if found.nodes:
                return found
        return Command(())

    def _within_budgets(self, *, each: bool = False) -> list[int]:
        """In their order as many as budgets let go together; where `each` would go alone, all that have any budget."""
        if self._left is None:
            return self._order
        left = dict(self._left)
        found = []
        for at in self._order:
            pool = self._ground.owned[at].pool
            room = left.get(pool, 0)
            if room is None or room > 0:
                found.append(at)
                left[pool] = room if room is None or each else room - 1
        return found

    def _computed(self, going: Sequence[int], *, several: bool) -> Command:
        trial = self._ground.with_purchase(going)
        if trial is None:
            return Command(())
        nodes = [self._ground.owned[at] for at in going]
        named = tuple(node.name for node in nodes)
        claims = list(trial.claims)
        trial.undo()
        if not claims:
            return Command(named)
        if len(claims) > 1:
            return Command(())
        return self._replaced(named, nodes, claims[0], several=several)

    def _replaced(self, named: tuple[str, ...], nodes: Sequence[OwnedNode], claim: Claim, *, several: bool) -> Command:
        shelf, mask = claim.shelf, claim.mask
        terms = shelf.values(names.CAPACITY_TYPE_LABEL, claim.state, mask)
        if names.SPOT in terms and all(node.capacity_type == names.SPOT for node in nodes):
            return Command(())  # the gate SpotToSpotConsolidation is closed
        prices = _worst_launch(claim)
        most = sum(node.price or 0 for node in nodes)
        cheaper = [name for name, price in prices.items() if price < most]
        if several:
            same = [node.price or 0 for node in nodes if node.instance_type in cheaper]
            if same:
                cheaper = [name for name in cheaper if prices[name] < min(same)]
        if not cheaper:
            return Command(())
        state = claim.state
        if names.SPOT in terms and names.ON_DEMAND in terms:
            spot = shelf.step(state, self._ground.planning.constraints.one(names.CAPACITY_TYPE_LABEL, names.SPOT))
            assert spot is not None
            state = spot
        narrowed = Claim(shelf, len(self._ground.context.resources), mask=mask & state.mask & _options(claim, cheaper))
        narrowed.state, narrowed.used, narrowed.pods = state, claim.used, claim.pods
        ledger = self._ground.planning.ledgers()[shelf.pool.ref]
        planned, _ = self._ground.planning.finished(narrowed, ledger, self._ground.context.resources)
        return Command(named, tuple(cheaper), Replacement(planned=planned, types=tuple(cheaper), max_price=most))


def _options(claim: Claim, types: Sequence[str]) -> int:
    mask = 0
    for name in types:
        mask |= claim.shelf.options_with(names.INSTANCE_TYPE_LABEL, name)
    return mask


def _worst_launch(claim: Claim) -> dict[str, int]:
    """The dearest offering of each type on the first terms that it is sold on."""
    found: dict[str, tuple[int, int]] = {}
    for option in claim.shelf.chosen(claim.mask):
        rank = TERMS.index(option.offering.capacity_type)
        known = found.get(option.type.name)
        if known is None or rank < known[0]:
            found[option.type.name] = (rank, option.price)
        elif rank == known[0]:
            found[option.type.name] = (rank, max(known[1], option.price))
    return {name: price for name, (_, price) in found.items()}
