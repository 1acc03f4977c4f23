"""Fewer or cheaper machines for the same pods: the search itself.

First nodes go whose pods find room on nodes that stay, one after the other, those first that are dearest for the room
that they give. Then nodes that are too dear for what they hold are replaced, several at once by as many machines as the
cost packer draws. In the end the whole decision is rehearsed, and nodes come back until kube-scheduler would leave nobody
over.
"""

import collections
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from growth.api import names
from growth.planning.classes import PodClass
from growth.planning.disruption import balanced, words
from growth.planning.disruption.model import Kept, Move, OwnedNode, Replacement, Room, Situation
from growth.planning.disruption.search.allowance import Allowance
from growth.planning.disruption.search.believing import left_over
from growth.planning.disruption.search.ground import Ground, Trial
from growth.planning.disruption.search.options import Found, SearchOptions
from growth.planning.disruption.search.prices import Refusal, replacements
from growth.planning.disruption.search.resting import Resting
from growth.planning.disruption.search.shop import Shop
from growth.planning.disruption.search.sight import Sight
from growth.planning.drawn import Drawn

# So many nodes are replaced together, at first, then and in the end: many pack tighter, few are found more easily.
TOGETHER: Final = (16, 4, 1)
# Machines that cost at most so much more than the least in fractions are not drawn anew.
NEAR: Final = 1.03
# What differs by less than one part in so many costs the same.
EQUAL: Final = 100
# What a drawing counts in steps.
DRAWING: Final = 300
# In each round of the rehearsal so much more room comes back than the pods that were left over ask for, twice that in the
# next.
MARGIN: Final = 1.25
ROUNDS: Final = 12
# The pods come as the moves are listed, and the other way round.
ORDERS: Final = 2


@dataclasses.dataclass(frozen=True, slots=True)
class _Step:
    """Nodes that go together, and what is bought for them."""

    nodes: tuple[int, ...]
    bought: tuple[Replacement, ...] = ()


class Consolidation:
    """One search."""

    def __init__(
        self,
        situation: Situation,
        candidates: Sequence[OwnedNode],
        rooms: Mapping[str, Room],
        options: SearchOptions,
    ) -> None:
        self._situation = situation
        self._options = options
        self._allowance = Allowance(rooms)
        self._why: dict[str, Kept] = {}
        self._candidates = candidates
        self._with_balance = {
            name
            for name, pool in situation.pools.items()
            if pool.spec.disruption.consolidation_policy == balanced.POLICY
        }
        self._totals = balanced.totals(situation) if self._with_balance else {}
        self._resting = Resting(situation, options.settling)
        going = [node for node in candidates if self._may_go(node)]
        self._ground = Ground(situation, going, options)
        self._shop = Shop(self._ground, options.node_cost)
        self._where: dict[str, str | int] = {}
        self._steps: list[_Step] = []
        self._gone: set[int] = set()
        self._complete = True
        self._destinations: set[str] = set()

    def found(self) -> Found:
        for part in self._ground.parts():
            sight = Sight(self._ground, part, self._shop, self._options.node_cost)
            self._ground.nodes.order = sight.order()
            self._delete(sight)
            self._replace(part)
        self._rehearse()
        moves = self._moves()
        self._destinations = {name for move in moves for name in move.destinations}
        moved = {name for move in moves for name in move.nodes}
        kept = tuple(self._reason(node) for node in self._candidates if node.name not in moved)
        return Found(moves=moves, kept=kept, steps=self._ground.steps, complete=self._complete)

    # -- who may go -----------------------------------------------------------------------------------------------------

    def _may_go(self, node: OwnedNode) -> bool:
        if node.price is None:
            told = "its price is not known, so that nobody can say what a move would save"
            self._say(node, words.PRICE_UNKNOWN, told)
        elif node.view is None:
            self._say(node, words.LEAVING, "it is being removed already", waits=True)
        elif self._resting.node(node):
            self._say(node, words.RECENTLY_MOVED, "it was bought for pods that were moved a moment ago", waits=True)
        else:
            return True
        return False

    def _say(self, node: OwnedNode, word: str, message: str, *, waits: bool = False) -> None:
        self._why[node.name] = Kept(node.name, node.pool, word, message, waits)

    def _reason(self, node: OwnedNode) -> Kept:
        known = self._why.get(node.name)
        if known is not None:
            return known
        if node.name in self._destinations:
            return Kept(node.name, node.pool, words.DESTINATION, "pods of another node are moved there", waits=True)
        if self._allowance.spent(node.pool):
            return Kept(node.name, node.pool, words.BUDGET, self._allowance.why_spent(node.pool), waits=True)
        told = "its pods have no room on other nodes, and no cheaper machine holds them"
        return Kept(node.name, node.pool, words.IN_USE, told)

    def _over(self) -> bool:
        """Whether the search must end."""
        stopped = self._options.stop is not None and self._options.stop()
        if stopped or self._ground.steps >= self._options.budget:
            self._complete = False
        return not self._complete

    # -- going without anything instead ---------------------------------------------------------------------------------

    def _delete(self, sight: Sight) -> None:
        ground = self._ground
        for at in sight.leavers():
            node = ground.owned[at]
            if self._over():
                return
            if not self._allowance.deletes([node]):
                continue
            if not self._pays([node], (), ground.evicted[at]) or not self._balanced([node], ()):
                continue
            trial = ground.without_purchase((at,))
            if trial is not None:
                self._commit(_Step((at,)), trial)

    def _pays(self, nodes: Sequence[OwnedNode], bought: Sequence[Replacement], evicted: Sequence[str]) -> bool:
        """Whether the move is worth its disruption."""
        paid = sum(node.price or 0 for node in nodes)
        saved = paid - sum(each.planned.price for each in bought)
        fine = saved > 0 and saved >= self._options.owed(len(evicted))
        fine &= not bought or saved * 100 >= paid * self._options.least_percent
        if not fine and len(nodes) == 1:
            self._say(nodes[0], words.TOO_LITTLE, f"moving {len(evicted)} pods would cost more than it saves")
        return fine

    def _balanced(self, nodes: Sequence[OwnedNode], bought: Sequence[Replacement]) -> bool:
        """Whether no pool's policy objects."""
        if not any(node.pool in self._with_balance for node in nodes):
            return True
        saved = sum(node.price or 0 for node in nodes) - sum(each.planned.price for each in bought)
        against = balanced.why_not(nodes, saved, self._situation, whole=self._totals)
        if against and len(nodes) == 1:
            self._say(nodes[0], words.BALANCED, against)
        return not against

    def _commit(self, step: _Step, trial: Trial) -> _Step:
        self._steps.append(step)
        self._gone.update(step.nodes)
        self._where.update(trial.order)
        self._ground.keep(trial)
        nodes = [self._ground.owned[at] for at in step.nodes]
        self._allowance.take(nodes, [each.planned.pool.name for each in step.bought])
        for node in nodes:
            self._why.pop(node.name, None)
        return step

    # -- something cheaper instead --------------------------------------------------------------------------------------

    def _replace(self, part: Sequence[int]) -> None:
        """Replaces many together where that is cheaper, else the same in fewer, down to each by itself."""
        waiting = [self._too_dear(part)]
        for size in TOGETHER:
            failed: list[list[int]] = []
            for some in waiting:
                for start in range(0, len(some), size):
                    if self._over():
                        return
                    group = self._group(some[start : start + size])
                    if group and self._replaced(tuple(group)) is None:
                        failed.append(group)
            waiting = failed

    def _too_dear(self, part: Sequence[int]) -> list[int]:
        """Nodes that nothing was moved to, that cost more than their pods would elsewhere; the worst first."""
        taken = set(self._where.values())
        ground = self._ground
        free = [
            at
            for at in part
            if at not in self._gone
            and ground.evicted[at]
            and ground.nodes.nodes[at].name not in taken
            and not ground.nodes.arrived[at]
            and self._allowance.replaces([ground.owned[at]])
            and not self._rests(at)
        ]
        if not free:
            return []
        needed = self._shop.cost_of([ground.pods[at] for at in free])
        paid = np.array([(ground.owned[at].price or 0) + self._options.node_cost for at in free], dtype=np.float64)
        ratio = np.round(paid / np.maximum(needed, 1.0), 6)
        order = np.lexsort((np.arange(len(free)), -ratio))
        # What saves less than it must even if machines came in fractions is not tried.
        least = 100 / max(1, 100 - self._options.least_percent)
        return [free[int(i)] for i in order if ratio[int(i)] > 1 and ratio[int(i)] >= round(least, 6)]

    def _rests(self, at: int) -> bool:
        node = self._ground.owned[at]
        if self._resting.any_pod(node):
            self._say(node, words.RECENTLY_MOVED, "its pods were moved a moment ago", waits=True)
            return True
        return False

    def _group(self, wanted: Iterable[int]) -> list[int]:
        """Those that may still be replaced together; not those to which others have moved meanwhile."""
        group: list[int] = []
        for at in wanted:
            nodes = [self._ground.owned[each] for each in (*group, at)]
            if not self._ground.nodes.arrived[at] and self._allowance.replaces(nodes):
                group.append(at)
        return group

    def _replaced(self, group: tuple[int, ...]) -> _Step | None:
        """The cheapest of the ways to replace these nodes, made; None where none is cheaper."""
        ground = self._ground
        trial = ground.with_purchase(group)
        if trial is None:
            return None
        homeless = [key for key, place in trial.order if not isinstance(place, str)]
        first = self._tried(group, trial)
        drawings, rows = self._drawn(group, homeless, first)
        if first is not None:
            trial.undo()
        second = self._tried(group, ground.with_purchase(group, drawings, rows)) if drawings else None
        if second is not None and (first is None or self._better(second[1], first[1])):
            return self._commit(_Step(group, second[1]), second[0])
        if second is not None:
            second[0].undo()
        if first is None:
            return None
        again = self._tried(group, ground.with_purchase(group))
        assert again is not None  # it was found a moment ago
        return self._commit(_Step(group, again[1]), again[0])

    def _drawn(
        self, group: Sequence[int], keys: Sequence[str], first: tuple[Trial, tuple[Replacement, ...]] | None
    ) -> tuple[Sequence[Drawn], Mapping[PodClass, int]]:
        """Machines that the cost packer would buy for the pods; none where those that first fit buys are near the least."""
        if first is not None and len(first[1]) >= len(group):
            least = float(self._shop.cost_of([[(self._ground.class_of[key], (key,)) for key in keys]])[0])
            if self._cost(first[1]) <= least * NEAR:
                return [], {}
        self._ground.steps += DRAWING
        paid = sum((self._ground.owned[at].price or 0) + self._options.node_cost for at in group)
        return self._shop.drawn(keys, most=paid)

    def _better(self, one: Sequence[Replacement], other: Sequence[Replacement]) -> bool:
        """Whether the one is cheaper; among equals the one whose largest machine holds fewer pods."""
        mine, yours = self._cost(one), self._cost(other)
        if abs(mine - yours) * EQUAL > yours:
            return mine < yours
        return _largest(one) < _largest(other)

    def _cost(self, bought: Sequence[Replacement]) -> int:
        return sum(each.planned.price + self._options.node_cost for each in bought)

    def _tried(self, group: tuple[int, ...], trial: Trial | None) -> tuple[Trial, tuple[Replacement, ...]] | None:
        if trial is None:
            return None
        ground = self._ground
        nodes = [ground.owned[at] for at in group]
        evicted = [key for at in group for key in ground.evicted[at]]
        bought = replacements(
            trial.claims,
            nodes,
            evictions=len(evicted),
            ledgers=trial.ledgers,
            planning=ground.planning,
            context=ground.context,
            options=self._options,
        )
        if isinstance(bought, Refusal):
            if len(nodes) == 1 and nodes[0].name not in self._why:
                self._say(nodes[0], words.IN_USE, bought.message)
        elif (
            self._allowance.replaces(nodes, [each.planned.pool.name for each in bought])
            and self._pays(nodes, bought, evicted)
            and self._balanced(nodes, bought)
        ):
            return trial, bought
        trial.undo()
        return None

    # -- the rehearsal --------------------------------------------------------------------------------------------------

    def _rehearse(self) -> None:
        """Takes moves back until kube-scheduler would leave nobody over, in whichever order the pods come."""
        ground = self._ground
        clean, turn = 0, 0
        while self._steps and clean < ORDERS and turn < ROUNDS:
            if self._options.stop is not None and self._options.stop():
                return
            evicted = [ground.demands[key] for step in self._steps for at in step.nodes for key in ground.evicted[at]]
            ground.steps += len(evicted)
            left = left_over(
                self._situation,
                gone=[ground.nodes.nodes[at].name for step in self._steps for at in step.nodes],
                evicted=evicted[::-1] if clean else evicted,
                claims=[each.planned for step in self._steps for each in step.bought],
                waiting=ground.waiting,
            )
            clean = 0 if left else clean + 1
            if left:
                self._take_back(left, MARGIN * 2**turn)
                turn += 1
        if clean < ORDERS:
            for step in self._steps:
                for at in step.nodes:
                    self._say_crowded(at)
            self._steps = []

    def _take_back(self, left: Sequence[str], margin: float) -> None:
        """The moves whose pods were left over come back, until there is room for the rest of them."""
        ground = self._ground
        over = collections.Counter(ground.origin.get(key, -1) for key in left)
        needed = float(self._shop.cost_of([[(ground.class_of[key], (key,)) for key in left]])[0]) * margin
        order = sorted(
            range(len(self._steps)),
            key=lambda turn: (-sum(over[at] for at in self._steps[turn].nodes) / len(self._steps[turn].nodes), -turn),
        )
        back: set[int] = set()
        room = 0.0
        for turn in order:
            if back and room >= needed:
                break
            back.add(turn)
            for at in self._steps[turn].nodes:
                room += float(self._shop.guide.of(ground.room[[at]])[0] + self._shop.cost_of([ground.pods[at]])[0])
                self._say_crowded(at)
        self._steps = [step for turn, step in enumerate(self._steps) if turn not in back]

    def _say_crowded(self, at: int) -> None:
        node = self._ground.owned[at]
        self._say(node, words.NO_PLACE, "kube-scheduler would leave some of the pods without a place")

    # -- what came of it ------------------------------------------------------------------------------------------------

    def _moves(self) -> tuple[Move, ...]:
        return tuple(self._move(step, self._where) for step in self._steps)

    def _move(self, step: _Step, where: Mapping[str, str | int]) -> Move:
        ground = self._ground
        nodes = [ground.owned[at] for at in step.nodes]
        keys = [key for at in step.nodes for key in ground.evicted[at]]
        destinations = {place for key in keys if isinstance(place := where.get(key), str)}
        return Move(
            reason=names.UNDERUTILIZED,
            nodes=tuple(node.name for node in nodes),
            pools=tuple(dict.fromkeys(node.pool for node in nodes)),
            replacements=step.bought,
            savings=sum(node.price or 0 for node in nodes) - sum(each.planned.price for each in step.bought),
            evictions=len(keys),
            destinations=tuple(sorted(destinations)),
        )


def _largest(bought: Sequence[Replacement]) -> int:
    """How many pods the fullest machine holds."""
    return max((len(each.planned.pods) for each in bought), default=0)
