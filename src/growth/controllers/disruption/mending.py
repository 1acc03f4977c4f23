"""What a process left behind that died, froze or failed: moves to go on with, and what nobody stands for any more.

`left_behind` says what there is, by the cache; each thing is looked at afresh before it is touched. A move is gone on with
when all that was to be bought for it is there, its nodes are still tainted and no other move has them; of two that have
one node only the first is. Else it is taken back: what was bought and is empty goes, then the taints. Pools that keep a
number of nodes replace theirs by themselves and are left alone.
"""

import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable, Sequence

from growth.api import moves as intents
from growth.api import names
from growth.api.growthpools import NODE_REMOVAL_REQUEST
from growth.api.karpenter import NODE_CLAIM, NodeClaim, NodePool
from growth.api.nodes import NODE, Node
from growth.cluster.replacing import replaces
from growth.controllers import tainting
from growth.controllers.disruption import marking
from growth.controllers.disruption.attempts import each
from growth.controllers.disruption.moving import Moves, Running, Stage, Target
from growth.controllers.disruption.returning import Returning, settled
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.kube.errors import NotFound
from growth.planning.disruption.model import Move
from growth.telemetry.logs import logger

_log = logger("disruption")


@dataclasses.dataclass(frozen=True, slots=True)
class Begun:
    """A move of which everything was bought: the nodes that have yet to go, and the claims that came for them. `leaving`: others
    of its nodes go already, or are gone.
    """

    intent: intents.Intent
    targets: tuple[Target, ...]
    leaving: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Left:
    """`strays` are claims that replace what is not being replaced; `marks` are claims, with their Nodes, that nobody
    disrupts and that say or show otherwise. `plain` are claims of growth pools that were asked for in the place of others
    which stay: they are machines like any other.
    """

    moves: tuple[Begun, ...]
    strays: tuple[NodeClaim, ...]
    marks: tuple[tuple[Node | None, NodeClaim], ...]
    plain: tuple[str, ...] = ()


def left_behind(
    claims: Iterable[NodeClaim], *, nodes_of: Callable[[NodeClaim], Sequence[Node]], known: Collection[str]
) -> Left:
    """`known` are the claims of moves that somebody stands for. Pure."""
    there = {claim.metadata.name: claim for claim in claims if claim.metadata.deletion_timestamp is None}
    moves: dict[tuple[str, ...], Begun] = {}
    strays: list[NodeClaim] = []
    plain: list[str] = []
    going: set[str] = set()
    for claim in there.values():
        intent = intents.intent_of(claim.metadata)
        if claim.metadata.name in known:
            continue
        alive = [there[name] for name in replaces(claim) if name in there]
        if intent is None:
            plain += [claim.metadata.name] if alive else []
            continue
        targets = [Target(nodes[0], each) for each in alive if (nodes := _staying(nodes_of(each)))]
        if not alive:
            continue  # all of them went: it was made
        others = () if intent.group in moves else going
        free = all(each.metadata.name not in known and each.metadata.name not in others for each in alive)
        whole = free and all(name in there for name in intent.group)
        if whole and len(targets) == len(alive) and all(tainting.tainted(each.node) for each in targets):
            moves.setdefault(intent.group, Begun(intent, tuple(targets), leaving=len(alive) < len(replaces(claim))))
            going |= {each.metadata.name for each in alive}
        else:
            strays.append(claim)
    marks = [
        (nodes[0] if nodes else None, claim)
        for name, claim in there.items()
        if name not in known and name not in going and claim not in strays
        for nodes in (_staying(nodes_of(claim)),)
        if marking.marked(claim) or any(map(tainting.tainted, nodes))
    ]
    return Left(tuple(moves.values()), tuple(strays), tuple(marks), tuple(plain))


def _staying(nodes: Sequence[Node]) -> list[Node]:
    return [node for node in nodes if node.metadata.deletion_timestamp is None]


class Mending:
    """Looks before every pass."""

    def __init__(self, env: Environment, moves: Moves, returning: Returning) -> None:
        self._env = env
        self._moves = moves
        self._returning = returning

    async def mend(self) -> list[Running]:
        """Takes back what must be, and returns the moves that are to be gone on with, added to those that run."""
        env = self._env
        left = left_behind(
            [claim for claim in env.state.claims.store if self._is_ours(claim)],
            nodes_of=self._nodes_of,
            known=self._moves.claims(),
        )
        going = {target.claim.metadata.name for begun in left.moves for target in begun.targets}
        await each(left.strays, functools.partial(self._return, going=going))
        await each(left.marks, self._unmark)
        await each(left.plain, self._settle)
        found = await each(left.moves, self._as_it_is)
        return [self._resumed(begun) for begun in found if begun is not None]

    def _is_ours(self, claim: NodeClaim) -> bool:
        pool = self._pool_of(claim)
        if self._env.state.node_removals.store.get(claim.metadata.name) is not None:
            return False  # it goes by a NodeRemovalRequest, whoever asked for that
        return serves(self._env.provider, claim.spec.node_class_ref) and (pool is None or pool.spec.replicas is None)

    def _pool_of(self, claim: NodeClaim) -> NodePool | None:
        return self._env.state.pools.store.get(claim.metadata.labels.get(names.NODE_POOL_LABEL, ""))

    def _nodes_of(self, claim: NodeClaim) -> Sequence[Node]:
        provider_id = claim.status.provider_id
        return self._env.state.nodes.store.find("provider", provider_id) if provider_id else ()

    async def _as_it_is(self, begun: Begun) -> Begun | None:
        """With the nodes that the server has yet: a move that we have just made is not gone on with while the cache has not
        heard of its deletions.
        """
        staying: list[Target] = []
        for target in begun.targets:
            try:
                claim = await self._env.api.get(NODE_CLAIM, target.claim.metadata.name)
            except NotFound:
                continue
            if claim.metadata.uid == target.claim.metadata.uid and claim.metadata.deletion_timestamp is None:
                staying.append(target)
        leaving = begun.leaving or len(staying) < len(begun.targets)
        return dataclasses.replace(begun, targets=tuple(staying), leaving=leaving) if staying else None

    def _resumed(self, begun: Begun) -> Running:
        env, intent = self._env, begun.intent
        now = env.clock.monotonic()
        took = max(0.0, (env.clock.now() - intent.at).total_seconds())
        pools = dict.fromkeys(each.claim.metadata.labels.get(names.NODE_POOL_LABEL, "") for each in begun.targets)
        running = Running(
            move=Move(
                reason=intent.reason,
                nodes=tuple(each.node.metadata.name for each in begun.targets),
                pools=tuple(pools),
            ),
            targets={each.node.metadata.name: each for each in begun.targets},
            since=now - took,
            at=intent.at,
            # Of nodes that go already the pods may be on their way to what was bought.
            stage=Stage.LEAVING if begun.leaving else Stage.STARTING,
            coming=intent.group,
            resumed=True,
        )
        self._moves.add(running)
        _log.info("going on with a disruption", nodes=", ".join(running.move.nodes), replacements=intent.group)
        return running

    async def _return(self, stray: NodeClaim, *, going: Collection[str]) -> None:
        """Judged again by what the server says now: the caches of claims and Nodes may be of different moments. `going` are the
        claims of moves that are about to be gone on with. Once those are made, nobody could tell a stray from what they bought.
        """
        intent = intents.intent_of(stray.metadata)
        assert intent is not None
        claims: list[NodeClaim] = []
        nodes: dict[str, list[Node]] = {}
        for name in dict.fromkeys((*intent.group, *replaces(stray))):
            try:
                claim = await self._env.api.get(NODE_CLAIM, name)
            except NotFound:
                if self._env.state.claims.store.get(name) is not None:
                    return  # one of the two is late: the next pass knows more
                continue
            claims.append(claim)
            nodes[name] = [await self._env.api.get(NODE, each.metadata.name) for each in self._nodes_of(claim)]
        known = self._moves.claims().union(going)
        left = left_behind(claims, nodes_of=lambda claim: nodes[claim.metadata.name], known=known)
        if all(each.metadata.uid != stray.metadata.uid for each in left.strays):
            return
        alive = {each.metadata.name for each in claims if each.metadata.deletion_timestamp is None}
        if alive.issuperset(replaces(stray)):
            await self._returning.give_back([stray.metadata.name])
        else:  # some of them go, and their pods may be on their way to it
            await settled(self._env, stray.metadata.name)

    async def _settle(self, name: str) -> None:
        await settled(self._env, name)

    async def _unmark(self, mark: tuple[Node | None, NodeClaim]) -> None:
        node, claim = mark
        try:
            fresh = await self._env.api.get(NODE_CLAIM, claim.metadata.name)
        except NotFound:
            return
        if await self._is_being_removed(fresh):
            return
        if fresh.metadata.deletion_timestamp is None and fresh.metadata.uid == claim.metadata.uid:
            await marking.unmark(self._env, node, fresh, why="nobody is disrupting it")

    async def _is_being_removed(self, claim: NodeClaim) -> bool:
        """Whether a NodeRemovalRequest has it; the cache may be late to know."""
        if names.POOL_LABEL not in claim.metadata.labels:
            return False
        try:
            await self._env.api.get(NODE_REMOVAL_REQUEST, claim.metadata.name)
        except NotFound:
            return False
        return True
