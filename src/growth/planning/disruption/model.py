"""The words that the parts of disruption share: what is known of the machines, what is to be done, why the rest stays."""

import dataclasses
import datetime as dt
import functools
from collections.abc import Mapping, Sequence

from growth.api import names
from growth.api.karpenter import NodePool
from growth.api.policy import PodDisruptionBudget
from growth.api.pools import SOFT, node_limit_mode
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.plan import PlannedClaim
from growth.planning.pod_budgets import PodBudgets


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OwnedNode:
    """An initialised node of a pool whose nodes may be moved, with its claim. `pool` is the PoolRef in words.

    `view` is the node as planning sees it, None while it is on its way out. `quiet_seconds` is how long no pod has come or
    gone. `leaving`: it is being deleted, or somebody is disrupting it. `nominated`: pods are about to come. `price` None
    is not known. `drifted` says how it differs from what its pool asks for; empty when it does not. `ends` says that its
    claim has a termination grace period: whatever protects its pods ends some time. `paid_until` is set where an empty node
    is to stay until shortly before then. `replaces`: it was bought by a move, in the place of others. `given_up` is what they and
    those before them were, as far as none of it is to come back (`cluster.replacing`).
    """

    name: str
    pool: str
    claim: str = ""
    view: NodeView | None = None
    pods: Sequence[CachedPod] = ()
    quiet_seconds: float = 0.0
    price: int | None = None
    created: dt.datetime | None = None
    replaces: bool = False
    given_up: tuple[str, ...] = ()
    drifted: str = ""
    ready: bool = True
    leaving: bool = False
    nominated: bool = False
    protected: bool = False
    paused: bool = False
    holds_buffer: bool = False
    ends: bool = False
    paid_until: dt.datetime | None = None

    @property
    def instance_type(self) -> str:
        return "" if self.view is None else self.view.labels.get(names.INSTANCE_TYPE_LABEL, "")

    @property
    def capacity_type(self) -> str:
        return "" if self.view is None else self.view.labels.get(names.CAPACITY_TYPE_LABEL, "")


@dataclasses.dataclass(frozen=True, slots=True)
class Aside:
    """A machine that no move touches and that is a node of its pool all the same: budgets count it. `pool` is the PoolRef in
    words; `disrupted`: it leaves or is not ready, or one of its Nodes is where it has several.
    """

    pool: str
    disrupted: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Situation:
    """Everything that a decision reads. `snapshot` has the overlays laid and holds every node that can take pods.

    `demands` are pods without a place: whatever is decided must leave them theirs. Those in `buffered`, by key, are such as
    CapacityBuffers stand for. `nodes` are all that we own and that are initialised, whether or not they may go; `others` are
    the rest, and why they are none of ours to move; `aside` is what budgets count of these. `pools` are Karpenter's and those
    growth pools whose nodes may be moved, each by its PoolRef in words; `minima` are of the latter, by pool and server type in
    lower case. `moved` are pods that came by a move of ours, by UID, and when that was. `closing` are nodes on their way out,
    by deletion or a move that is made, with those who still run there; these are in `demands` too, by the keys in `ending`.
    """

    snapshot: Snapshot
    nodes: tuple[OwnedNode, ...]
    pools: Mapping[str, NodePool]
    now: dt.datetime
    demands: tuple[Demand, ...] = ()
    buffered: frozenset[str] = frozenset()
    disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    moved: Mapping[str, dt.datetime] = dataclasses.field(default_factory=dict)
    paused: bool = False
    others: "tuple[Kept, ...]" = ()
    aside: tuple[Aside, ...] = ()
    minima: Mapping[tuple[str, str], int] = dataclasses.field(default_factory=dict)
    closing: tuple[NodeView, ...] = ()
    ending: frozenset[str] = frozenset()

    @functools.cached_property
    def soft(self) -> frozenset[str]:
        """The pools whose limit of nodes may be passed while their own nodes are replaced."""
        return frozenset(name for name, pool in self.pools.items() if node_limit_mode(pool) == SOFT)

    @functools.cached_property
    def waiting(self) -> tuple[Demand, ...]:
        """The pods without a place that there are."""
        return tuple(each for each in self.demands if each.key not in self.buffered)

    @functools.cached_property
    def adrift(self) -> tuple[Demand, ...]:
        """Those of them that run nowhere: while nodes that are on their way out still stand, the rest counts there."""
        return tuple(each for each in self.waiting if each.key not in self.ending)

    @functools.cached_property
    def registered(self) -> frozenset[str]:
        """The nodes that are there and not up yet."""
        there = {each.node for each in self.others}
        return frozenset(view.name for view in self.snapshot.nodes if not view.initialized and view.name in there)

    @functools.cached_property
    def standing(self) -> tuple[NodeView, ...]:
        """The nodes as kube-scheduler sees them at this moment: those on their way out stand there, nobody may come to those
        that are not up yet, and machines without a Node are not there.
        """
        there = (
            view if view.initialized else dataclasses.replace(view, allocatable=view.requested, initialized=True)
            for view in self.snapshot.nodes
            if view.initialized or view.name in self.registered
        )
        return (*there, *self.closing)

    @functools.cached_property
    def unsettled(self) -> bool:
        """Whether what stands now is another thing to those who wait than what will: nodes go, or machines come for them."""
        coming = any(not view.initialized for view in self.snapshot.nodes)
        return bool(self.closing) or (coming and bool(self.adrift))

    @functools.cached_property
    def of_buffers(self) -> tuple[Demand, ...]:
        """The pods that buffers stand for."""
        return tuple(each for each in self.demands if each.key in self.buffered)

    @functools.cached_property
    def pod_budgets(self) -> PodBudgets:
        """The budgets by the pods that they are about."""
        return PodBudgets(self.disruption_budgets)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """A machine to buy before others may go. `types` are what its claim lists, cheapest first; none costs more than
    `max_price`.
    """

    planned: PlannedClaim
    types: tuple[str, ...]
    max_price: int


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Nodes that go together, for one reason, and what is bought for their pods first.

    `savings` is what an hour costs less afterwards; None where a price is not known. `evictions` counts the pods that
    must go elsewhere. `destinations` are the nodes that are there already and take some of them: they must stay.
    `pools` are those of the nodes, in their order, each once.
    """

    reason: str
    nodes: tuple[str, ...]
    pools: tuple[str, ...]
    replacements: tuple[Replacement, ...] = ()
    savings: int | None = None
    evictions: int = 0
    destinations: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Kept:
    """A node that stays, and why: `reason` is one word for machines, `message` a sentence for people.

    `waits`: only until some time has passed. `disabled`: its pool does not want such nodes removed.
    """

    node: str
    pool: str
    reason: str
    message: str
    waits: bool = False
    disabled: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Room:
    """How many more nodes of a pool may be disturbed for a reason now; None is any number.

    `delete` bounds moves that only remove; `replace` bounds the nodes of moves that buy, and `buy` what they may buy in
    their own pool: what a Hard node limit leaves, any number without one, for no budget counts machines that come. `grow` is by
    how much what is bought in this pool may exceed what moves replace there, under a Soft one: it holds again afterwards.
    `limited`: the node limit and no budget is why nothing may be replaced. `blocked` says why there is no room at all, and
    `resting` why nothing is replaced for a while, whatever budgets and limits allow; `failing`: so often in vain that nothing
    is put off for the time when it may be.
    """

    delete: int | None
    replace: int | None
    limited: bool = False
    blocked: str = ""
    buy: int | None = None
    grow: int | None = None
    resting: str = ""
    failing: bool = False


Age = tuple[dt.datetime, str]  # when a node was created, and its name


@dataclasses.dataclass(frozen=True, slots=True)
class Turn:
    """Of the drifted nodes of a pool, of which there are more than one decision tries: `last` is the one that was tried last in
    the round of those who are not among the oldest, and `kept` what was said of each that was tried in vain, by name.
    """

    last: Age | None = None
    kept: Mapping[str, Kept] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """Moves that may all be made together, in order, and the nodes that stay with the reason for each.

    `room` is what budgets and limits allowed, by reason and pool. `steps` is the work that it took; `complete` False:
    the budget of steps ended the search. `turns` are of pools where not all drifted nodes could be tried: the next decision
    goes on with them. `next` are nodes that stay and are to follow those of their pool that go: whoever came there now would
    have to move again.
    """

    moves: tuple[Move, ...]
    kept: tuple[Kept, ...]
    room: Mapping[tuple[str, str], Room] = dataclasses.field(default_factory=dict)
    steps: int = 0
    complete: bool = True
    turns: Mapping[str, Turn] = dataclasses.field(default_factory=dict)
    next: frozenset[str] = frozenset()
