"""A decision as it grows: which nodes go so far, where their pods go, what is bought, and why others stay."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence

from growth.api import names
from growth.planning.attempts import Claim
from growth.planning.disruption import balanced, words
from growth.planning.disruption.model import Kept, Move, OwnedNode, Replacement, Room, Situation
from growth.planning.disruption.search.allowance import Allowance
from growth.planning.disruption.search.departing import Answer, Answers
from growth.planning.disruption.search.ground import Ground, Trial
from growth.planning.disruption.search.options import SearchOptions
from growth.planning.disruption.search.resting import Resting
from growth.planning.disruption.search.shop import Shop


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """Nodes that go together, and what is bought for them."""

    nodes: tuple[int, ...]
    bought: tuple[Replacement, ...] = ()


class Course:
    """What all parts of a search share. `steps` are what is decided so far."""

    def __init__(
        self,
        situation: Situation,
        candidates: Sequence[OwnedNode],
        rooms: Mapping[str, Room],
        options: SearchOptions,
        *,
        doubted: Mapping[str, Kept],
        ground: Callable[[Sequence[OwnedNode]], Ground],
        answers: Answers,
    ) -> None:
        """`doubted` are candidates of which is known why they must stay; `ground` makes the ground for those that may go.

        `answers` are those of the situation, which other courses have asked for too.
        """
        self.situation = situation
        self.options = options
        self.allowance = Allowance(rooms)
        self.resting = Resting(situation, options.settling)
        self.why: dict[str, Kept] = dict(doubted)
        self.taken_back: set[str] = set()
        self._with_balance = {
            name
            for name, pool in situation.pools.items()
            if pool.spec.disruption.consolidation_policy == balanced.POLICY
        }
        self._totals = balanced.totals(situation) if self._with_balance else {}
        self.ground = ground([node for node in candidates if self._may_go(node)])
        self.shop = Shop(self.ground, options.node_cost)
        self.answers = answers
        self.steps: list[Step] = []
        self.claims: dict[tuple[int, ...], Sequence[Claim]] = {}
        self.where: dict[str, str | int] = {}
        self.gone: set[int] = set()
        self.target: frozenset[str] = frozenset()  # nodes that go in the end, now or when budgets allow it
        self.complete = True
        self.spent = 0  # steps of searches before this one
        self._moving_again = {node.name for node in candidates if self.resting.any_pod(node)}

    def _may_go(self, node: OwnedNode) -> bool:
        if node.name in self.why:
            return False
        if node.price is None:
            told = "its price is not known, so that nobody can say what a move would save"
            self.say(node, words.PRICE_UNKNOWN, told)
        elif node.view is None:
            self.say(node, words.LEAVING, "it is being removed already", waits=True)
        elif self.resting.node(node):
            # What keeps the node even afterwards is said at once, and not only when the moment has passed.
            if self.balanced([node], ()):
                self.say(node, words.RECENTLY_MOVED, "it was bought for pods that were moved a moment ago", waits=True)
        else:
            return True
        return False

    def say(self, node: OwnedNode, word: str, message: str, *, waits: bool = False) -> None:
        """Why the node stays."""
        self.why[node.name] = Kept(node.name, node.pool, word, message, waits)

    @property
    def stopped(self) -> bool:
        """Somebody else needs the processor: what was found is of no use."""
        return self.options.stop is not None and self.options.stop()

    def over(self) -> bool:
        """Whether the search must end."""
        if self.stopped or self.spent + self.ground.steps >= self.options.budget:
            self.complete = False
        return not self.complete

    def pays(self, nodes: Sequence[OwnedNode], bought: Sequence[Replacement], evictions: int) -> bool:
        """Whether the move is worth its disruption."""
        spent = sum(each.planned.price for each in bought)
        against = self.options.too_little(nodes, spent, evictions, buys=bool(bought))
        again = not against and bool(bought) and any(node.name in self._moving_again for node in nodes)
        rests = again and not self.options.pays_again(nodes, spent)
        if len(nodes) == 1 and rests:
            self.say(nodes[0], words.RECENTLY_MOVED, "its pods were moved a moment ago", waits=True)
        elif len(nodes) == 1 and against:
            self.say(nodes[0], words.TOO_LITTLE, against)
        return not against and not rests

    def balanced(self, nodes: Sequence[OwnedNode], bought: Sequence[Replacement]) -> bool:
        """Whether no pool's policy objects."""
        if not any(node.pool in self._with_balance for node in nodes):
            return True
        saved = sum(node.price or 0 for node in nodes) - sum(each.planned.price for each in bought)
        against = balanced.why_not(nodes, saved, self.situation, whole=self._totals)
        if against and len(nodes) == 1:
            self.say(nodes[0], words.BALANCED, against)
        return not against

    def commit(self, step: Step, trial: Trial) -> None:
        """The trial stays as it is. Nodes for which nothing is bought go each by itself."""
        self.steps += [step] if step.bought else [Step((at,)) for at in step.nodes]
        self.claims[step.nodes] = trial.claims
        self.gone.update(step.nodes)
        self.where.update(trial.order)
        self.ground.keep(trial)
        nodes = [self.ground.owned[at] for at in step.nodes]
        self.allowance.take(nodes, [str(each.planned.pool) for each in step.bought])
        for node in nodes:
            self.why.pop(node.name, None)

    def rehearsed(self, steps: Sequence[Step], waiting: frozenset[str]) -> Answer:
        """Whom these steps would leave without a place. An answer that is known counts as the work that it once was: how
        far a search comes does not depend on what was asked before.
        """
        ground = self.ground
        nodes = [at for step in steps for at in step.nodes]
        evicted = [ground.demands[key] for at in nodes for key in ground.evicted[at]]
        gone = tuple(ground.nodes.nodes[at].name for at in nodes)
        answer = self.answers.of(gone, evicted, [each.planned for step in steps for each in step.bought], waiting)
        ground.steps += answer.orders * len(evicted)
        return answer

    @property
    def savings(self) -> int:
        """What an hour costs less after all steps."""
        return sum(map(self.saved, self.steps))

    @property
    def evictions(self) -> int:
        return sum(len(self.ground.evicted[at]) for step in self.steps for at in step.nodes)

    def urgency(self, step: Step) -> tuple[int, int, tuple[int, ...]]:
        """First what saves most for each node that goes, then what moves fewest pods."""
        nodes = len(step.nodes)
        evictions = sum(len(self.ground.evicted[at]) for at in step.nodes)
        return -(self.saved(step) // nodes), evictions // nodes, step.nodes

    def saved(self, step: Step) -> int:
        """What an hour costs less after the step."""
        paid = sum(self.ground.owned[at].price or 0 for at in step.nodes)
        return paid - sum(each.planned.price for each in step.bought)

    def moves(self) -> tuple[Move, ...]:
        """The steps as moves."""
        return tuple(map(self._move, self.steps))

    def _move(self, step: Step) -> Move:
        ground = self.ground
        nodes = [ground.owned[at] for at in step.nodes]
        keys = [key for at in step.nodes for key in ground.evicted[at]]
        destinations = {place for key in keys if isinstance(place := self.where.get(key), str)}
        return Move(
            reason=names.UNDERUTILIZED,
            nodes=tuple(node.name for node in nodes),
            pools=tuple(dict.fromkeys(node.pool for node in nodes)),
            replacements=step.bought,
            savings=self.saved(step),
            evictions=len(keys),
            destinations=tuple(sorted(destinations)),
        )
