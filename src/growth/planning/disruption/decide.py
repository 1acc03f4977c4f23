"""All of disruption in Karpenter's order: first the empty nodes, then the drifted, then those that could be cheaper.

Unlike there, a method that acts does not end the decision: the next may act too, on nodes that the ones before it left
alone and with the room that they left. Of drifted nodes with pods each decision takes one a pool, the oldest first, so that
no pool waits for another's; where there are many, the next decision goes on where this one ended (`turns`). Equal input
gives an equal decision. Static pools have a controller of their own.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Final

from growth.api import names
from growth.planning import occupants
from growth.planning.disruption import words
from growth.planning.disruption.candidates import empty, in_order, why_kept
from growth.planning.disruption.consequences import absent, after, closed, without_node_limits
from growth.planning.disruption.continuous import (
    alone,
    consolidates,
    keeps_warm,
    of_growth,
    spare,
    too_few,
    warm,
    without_maxima,
)
from growth.planning.disruption.model import Decided, Kept, Move, OwnedNode, Room, Situation, Turn
from growth.planning.disruption.reusing import reused
from growth.planning.disruption.room import counts, growth_message, limit_message, outgrown, overdrawn, rooms
from growth.planning.disruption.search import SearchOptions, consolidate, replaced
from growth.planning.disruption.turns import TRIES, age, in_turn, next_turn

# So many empty nodes of a pool, the cheapest, are open to be used again.
SPARE: Final = 10
_TAKES: Final = "pods of another node are moved there"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to decide. `resting` are pools whose drift waits, and why, and `resting_nodes` nodes that wait for themselves, whether
    they have drifted or could be cheaper.
    `buying_rests` are pools for whose nodes consolidation buys nothing for a while, and why; what needs no purchase goes on.
    Of these `buying_fails` are such where it has failed so often that nothing is put off for the next try.
    `turns` are the last decision's, by pool, and `next` are those who were to follow then: while a budget is used up they are not
    looked for.
    `priced`: nodes without a known price are not moved at all, where otherwise they go when they are empty or drifted.
    """

    search: SearchOptions = SearchOptions()  # noqa: RUF009 - frozen
    resting: Mapping[str, str] = dataclasses.field(default_factory=dict)
    resting_nodes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    buying_rests: Mapping[str, str] = dataclasses.field(default_factory=dict)
    buying_fails: frozenset[str] = frozenset()
    turns: Mapping[str, Turn] = dataclasses.field(default_factory=dict)
    next: frozenset[str] = frozenset()
    priced: bool = False


def decide(situation: Situation, options: Options = Options()) -> Decided:  # noqa: B008 - frozen
    """What goes now, and why the rest stays."""
    return _Decision(situation, options).run()


class _Decision:
    """One decision, method by method: each takes nodes away and leaves the others with a reason."""

    def __init__(self, situation: Situation, options: Options) -> None:
        self._before = self._situation = situation
        self._options = options
        self._moves: list[Move] = []
        self._kept: dict[str, Kept] = {each.node: each for each in situation.others}
        self._room: dict[tuple[str, str], Room] = {}
        self._turns: dict[str, Turn] = {}
        self._spare: set[str] = set()
        self._next: dict[str, str] = {}  # nodes that wait for their turn, and for which reason they are to go
        self._steps = 0
        self._complete = True

    def run(self) -> Decided:
        self._leaving()
        self._empty()
        self._drifted()
        self._underutilized()
        moves, spared = reused(self._moves, self._before)
        for node in self._before.nodes:
            if node.name in spared:
                self._keep(node, words.DESTINATION, _TAKES)
        moves = self._within_room(moves)
        return Decided(
            moves=moves,
            kept=tuple(self._kept[name] for name in sorted(self._kept)),
            room=self._room,
            steps=self._steps,
            complete=self._complete,
            turns=self._turns,
            next=self._following(moves),
        )

    def _following(self, moves: Sequence[Move]) -> frozenset[str]:
        """Of those that wait for their turn the ones whose pool is being moved, and whose turn comes: where nothing goes, or
        budgets allow nothing for their reason, nobody knows when that will be. Whoever takes pods of a move stays for now.
        """
        under_way = {node.pool for node in self._before.nodes if node.leaving} | {
            pool for move in moves for pool in move.pools
        }
        taken = {name for move in moves for name in (*move.nodes, *move.destinations)}
        allowed = {reason: counts(self._before, reason=reason) for reason in set(self._next.values())}
        return frozenset(
            node.name
            for node in self._before.nodes
            if node.name not in taken
            and node.pool in under_way
            and (reason := self._next.get(node.name)) is not None
            and allowed[reason][node.pool].allowed.nodes != 0
        )

    def _within_room(self, moves: Sequence[Move]) -> tuple[Move, ...]:
        """The moves that budgets and limits allow together, reason by reason."""
        pool_of = {node.name: node.pool for node in self._before.nodes}
        taken: list[Move] = []
        for reason in (names.EMPTY, names.DRIFTED_REASON, names.UNDERUTILIZED):
            room = rooms(after(self._before, taken), reason=reason)
            self._room.update({(reason, pool): each for pool, each in room.items()})
            own: list[Move] = []
            for move in moves:
                if move.reason != reason:
                    continue
                grown = outgrown([*own, move], room, pool_of)
                full = overdrawn([*own, move], room, pool_of) or ((grown, words.NODE_LIMIT) if grown else None)
                if full is None:
                    own.append(move)
                    continue
                pool, word = full
                spent = word == words.BUDGET
                told = _no_room(room[pool], pool, reason) if spent else growth_message(pool)
                for name in move.nodes:
                    self._kept[name] = Kept(name, pool_of[name], word, told, waits=spent)
                    if spent:
                        self._next.setdefault(name, reason)
            taken += own
        return tuple(taken)

    # What all methods share.

    def _open(self, reason: str) -> dict[str, Room]:
        """The room for the reason, less what is taken for certain."""
        return dict(rooms(self._situation, reason=reason))

    def _keep(self, node: OwnedNode, word: str, message: str) -> None:
        """A budget is the pool's business, which says so once; to the node it is a matter of time."""
        waits = word == words.BUDGET or word in words.PASSING
        self._kept[node.name] = Kept(node.name, node.pool, word, message, waits=waits)

    def _stay(self, kept: Kept) -> None:
        """Why it stays, unless that is said already: why a drifted node stays matters more than what it could save."""
        self._kept.setdefault(kept.node, kept)

    def _follows(self, node: OwnedNode, reason: str) -> None:
        """Nobody looks whether it could go while the budget is used up: what was found when it was not holds."""
        if node.name in self._options.next:
            self._next.setdefault(node.name, reason)

    def _take(self, moves: Sequence[Move]) -> None:
        if moves:
            self._moves += moves
            self._situation = after(self._situation, moves)
        for move in moves:
            for name in move.nodes:
                self._kept.pop(name, None)

    def _why_kept(self, node: OwnedNode, reason: str) -> Kept | None:
        if reason == names.DRIFTED_REASON and self._static(node):
            told = f"NodePool {node.pool} is static: it replaces its drifted nodes itself"
            return Kept(node.name, node.pool, words.STATIC, told, disabled=True)
        found = why_kept(node, self._situation, reason=reason, graceful=reason != names.DRIFTED_REASON)
        if found is None and self._options.priced and node.price is None:
            told = "its price is not known: what a move would save cannot be said"
            return Kept(node.name, node.pool, words.PRICE_UNKNOWN, told)
        return found

    def _leaving(self) -> None:
        for node in self._situation.nodes:
            if node.leaving:
                self._kept[node.name] = Kept(
                    node.name, node.pool, words.LEAVING, "it is being removed already", waits=True
                )

    # The methods.

    def _empty(self) -> None:
        """All empty nodes that may go, the dearest first; one move a pool."""
        may_go = []
        for node in sorted(self._situation.nodes, key=_dearest_first):
            if not node.leaving and empty(node.pods):
                stays = self._why_kept(node, names.EMPTY)
                if stays is None:
                    may_go.append(node)
                else:
                    self._kept[node.name] = stays
        going = self._affordable(may_go, names.EMPTY)
        self._moves += [removal(nodes, reason=names.EMPTY) for nodes in going]
        # The cheapest may yet be of use to those who would buy one like it: then they use up no budget.
        certain = [removal(nodes[:-SPARE], reason=names.EMPTY) for nodes in going if len(nodes) > SPARE]
        self._spare = {node.name for nodes in going for node in nodes[-SPARE:]}
        self._situation = absent(after(self._situation, certain), self._spare)

    def _remove(self, nodes: Sequence[OwnedNode], reason: str) -> None:
        """As many of the nodes as there is room for; one move a pool."""
        self._take([removal(going, reason=reason) for going in self._affordable(nodes, reason)])

    def _affordable(self, nodes: Sequence[OwnedNode], reason: str) -> list[list[OwnedNode]]:
        """As many of the nodes as there is room for, in their order, pool by pool."""
        room = self._open(reason)
        left = {pool: each.delete for pool, each in room.items()}
        going: dict[str, list[OwnedNode]] = {}
        for node in nodes:
            allowed = left[node.pool]
            if allowed == 0:
                self._keep(node, words.BUDGET, _no_room(room[node.pool], node.pool, reason))
                self._next[node.name] = reason
                continue
            left[node.pool] = None if allowed is None else allowed - 1
            going.setdefault(node.pool, []).append(node)
        return [going[pool] for pool in sorted(going)]

    def _drifted(self) -> None:
        may_go: list[OwnedNode] = []
        for node in sorted(self._situation.nodes, key=age):
            if node.leaving or not node.drifted or node.name in self._spare:
                continue
            stays = self._why_kept(node, names.DRIFTED_REASON)
            resting = self._options.resting.get(node.pool) or self._options.resting_nodes.get(node.name)
            if stays is not None:
                self._kept[node.name] = stays
            elif resting:
                self._kept[node.name] = Kept(node.name, node.pool, words.BACK_OFF, resting, waits=True)
            else:
                may_go.append(node)
        # What a minimum needs is replaced first, with pods or without.
        _, needed = spare(may_go, self._situation)
        kept_warm = {each.node for each in needed}
        vacant = [
            node
            for node in may_go
            if node.name not in kept_warm and not any(occupants.reschedulable(pod) for pod in node.pods)
        ]
        self._remove(vacant, names.DRIFTED_REASON)
        gone = {node.name for node in vacant}
        by_pool: dict[str, list[OwnedNode]] = {}
        for node in may_go:
            if node.name not in gone:
                by_pool.setdefault(node.pool, []).append(node)
        for pool in sorted(by_pool, key=lambda name: age(by_pool[name][0])):
            self._replace_one(pool, by_pool[pool])

    def _stopped(self) -> bool:
        """Whether somebody needs the processor more: then nobody uses what is decided here."""
        stop = self._options.search.stop
        if stop is not None and stop():
            self._complete = False
        return not self._complete

    def _replace_one(self, pool: str, nodes: Sequence[OwnedNode]) -> None:
        """The first of the drifted nodes whose pods have a place, on nodes that are there or on such as are bought."""
        room = self._open(names.DRIFTED_REASON)[pool]
        turn = self._options.turns.get(pool, Turn())
        found: Move | None = None
        in_vain: set[str] = set()
        for node in in_turn(nodes, turn):
            if room.delete == 0:
                self._keep(node, words.BUDGET, _no_room(room, pool, names.DRIFTED_REASON))
                self._follows(node, names.DRIFTED_REASON)
            elif found is not None:
                self._next[node.name] = names.DRIFTED_REASON
                told = f"it has drifted ({node.drifted}), and another node of NodePool {pool} is replaced first"
                self._keep(node, words.DRIFTED_WAITS, told)
            elif len(in_vain) >= TRIES:
                self._kept[node.name] = turn.kept.get(node.name) or _untried(node)
            elif node.name in self._touched():
                self._keep(node, words.DESTINATION, _TAKES)
            elif self._stopped():
                return
            else:
                found = self._rehoused(node, room)
                in_vain |= {node.name} if found is None else set()
        after_this = next_turn(nodes, turn, in_vain=in_vain, said=self._kept)
        if after_this is not None:
            self._turns[pool] = after_this
        if found is not None:
            self._take([found])

    def _rehoused(self, node: OwnedNode, room: Room) -> Move | None:
        # To a node that has drifted itself pods would only come to be moved again.
        others = {each.name for each in self._situation.nodes if each.drifted and each.name != node.name}
        apart = closed(self._situation, others)
        if of_growth(node.pool):
            return self._renewed_in_growth(node, apart)
        move = replaced(apart, [node], self._options.search)
        if room.limited and (move is None or move.replacements):
            self._keep(node, words.NODE_LIMIT, limit_message(names.DRIFTED_REASON))
            return None
        if move is None and room.buy is not None:
            unlimited = without_node_limits(apart, {node.pool})
            if replaced(unlimited, [node], self._options.search) is not None:
                self._keep(node, words.NODE_LIMIT, growth_message(node.pool))
                return None
        if move is None:
            self._keep(node, words.NO_PLACE, f"it has drifted ({node.drifted}), and its pods would have no place")
        return move

    def _renewed_in_growth(self, node: OwnedNode, apart: Situation) -> Move | None:
        """The same for a growth pool, which keeps its minima: where one would be broken, a machine of the type comes first."""
        move = self._kept_warm(node, apart)
        if move is not None:
            return move
        unlimited = without_node_limits(apart, {node.pool})
        for free, what in (
            (unlimited, "limits.nodes"),
            (without_maxima(apart, node.pool), "max of its server types"),
            (without_maxima(unlimited, node.pool), "max of its server types, and limits.nodes,"),
        ):
            if self._kept_warm(node, free) is not None:
                told = f"it has drifted ({node.drifted}), and {what} of NodePool {node.pool} leaves no room for a replacement"
                self._keep(node, words.NODE_LIMIT, told)
                return None
        self._keep(node, words.NO_PLACE, f"it has drifted ({node.drifted}), and nothing can be bought in its place")
        return None

    def _kept_warm(self, node: OwnedNode, situation: Situation) -> Move | None:
        """What replaces the node; None where something of it cannot be bought."""
        options = self._options.search
        if not too_few({node.name}, self._situation):
            return replaced(situation, [node], options)
        move = replaced(alone(node, situation), [node], options)
        if move is not None and keeps_warm(move, node):
            return move
        move = replaced(situation, [node], options) if move is None else move
        if move is None or keeps_warm(move, node):
            return move
        besides = warm(node, after(situation, [move]), options.planning)
        if besides is None:
            return None
        paid = None if move.savings is None else move.savings - besides.planned.price
        return dataclasses.replace(move, replacements=(*move.replacements, besides), savings=paid)

    def _renewed(self) -> set[str]:
        """Drifted nodes that their static pools replace as their budgets allow: pods would only come to be moved again, and what
        comes in their place is bought for no pod.
        """
        drifted = [node for node in self._situation.nodes if node.drifted and not node.leaving and self._static(node)]
        if not drifted:
            return set()
        room = self._open(names.DRIFTED_REASON)
        return {
            node.name
            for node in drifted
            if room[node.pool].delete != 0
            and why_kept(node, self._situation, reason=names.DRIFTED_REASON, graceful=False) is None
        }

    def _static(self, node: OwnedNode) -> bool:
        pool = self._situation.pools.get(node.pool)
        return pool is not None and pool.spec.replicas is not None

    def _touched(self) -> set[str]:
        """Nodes that others' pods are moved to by what is decided already: they must stay."""
        return {name for move in self._moves for name in move.destinations}

    def _underutilized(self) -> None:
        room = self._open(names.UNDERUTILIZED)
        may_go: list[OwnedNode] = []
        for node in self._situation.nodes:
            if node.leaving or empty(node.pods):
                continue
            stays = self._why_kept(node, names.UNDERUTILIZED)
            if stays is None and (resting := self._options.resting_nodes.get(node.name)):
                stays = Kept(node.name, node.pool, words.BACK_OFF, resting, waits=True)
            if stays is None and room[node.pool].delete == 0:
                told = _no_room(room[node.pool], node.pool, names.UNDERUTILIZED)
                stays = Kept(node.name, node.pool, words.BUDGET, told, waits=True)
                self._follows(node, names.UNDERUTILIZED)
            if stays is None:
                may_go.append(node)
            else:
                self._stay(stays)
        # What is replaced is replaced by machines of the same API.
        self._consolidate([node for node in may_go if not of_growth(node.pool)])
        beyond, needed = spare(in_order(node for node in may_go if of_growth(node.pool)), self._situation)
        for each in needed:
            self._stay(each)
        self._consolidate(beyond)

    def _consolidate(self, nodes: Sequence[OwnedNode]) -> None:
        touched = self._touched()
        for node in nodes:
            if node.name in touched:
                self._stay(Kept(node.name, node.pool, words.DESTINATION, _TAKES, waits=True))
        free = [node for node in nodes if node.name not in touched]
        if not free or self._stopped():
            return
        room = self._open(names.UNDERUTILIZED)
        for pool, why in self._options.buying_rests.items():
            if pool in room and room[pool].replace != 0:
                failing = pool in self._options.buying_fails
                room[pool] = dataclasses.replace(room[pool], replace=0, resting=why, failing=failing)
        going = self._renewed()
        apart = closed(self._situation, going) if going else self._situation
        # To save nothing is bought in growth pools that do not ask for it.
        saving = {name: pool for name, pool in apart.pools.items() if consolidates(name, apart)}
        apart = dataclasses.replace(apart, pools=saving)
        found = consolidate(apart, in_order(free), room, self._options.search)
        self._steps += found.steps
        self._complete = self._complete and found.complete
        for each in found.kept:
            self._stay(each)
        for name in found.target:
            self._next.setdefault(name, names.UNDERUTILIZED)
        self._take(found.moves)


def removal(nodes: Sequence[OwnedNode], *, reason: str) -> Move:
    """Nodes of one pool that go without anything in their place."""
    prices = [node.price for node in nodes]
    return Move(
        reason=reason,
        nodes=tuple(node.name for node in nodes),
        pools=tuple(dict.fromkeys(node.pool for node in nodes)),
        savings=None if None in prices else sum(price or 0 for price in prices),
        evictions=sum(occupants.reschedulable(pod) for node in nodes for pod in node.pods),
    )


def _untried(node: OwnedNode) -> Kept:
    told = f"it has drifted ({node.drifted}), and for the pods of other nodes of NodePool {node.pool} a place is sought first"
    return Kept(node.name, node.pool, words.DRIFTED_WAITS, told, waits=True)


def _no_room(room: Room, pool: str, reason: str) -> str:
    return room.blocked or f"the budget of NodePool {pool} for reason {reason} is used up"


def _dearest_first(node: OwnedNode) -> tuple[bool, int, str]:
    return (node.price is None, -(node.price or 0), node.name)
