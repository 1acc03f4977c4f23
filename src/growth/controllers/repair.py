"""Node repair: a machine whose Node has been broken for longer than its cloud tolerates goes, with whatever is on it.

Off unless `--node-repair` is set. Not where more than a fifth of the pool is broken: then the cause is elsewhere. Budgets
for the reason `Unhealthy` are of the initialised nodes, as all are, and machines on their way out or marked for a move use
them up; that other nodes are broken too takes nothing off them.
"""

from typing import Final

from growth.api import names
from growth.api.conditions import is_true
from growth.api.edits import set_annotations
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.controllers import ending, tainting
from growth.controllers.environment import Environment
from growth.controllers.ownership import marked_paused, pool_of, serves, why_paused
from growth.controllers.reconciler import Reconciler
from growth.controllers.waits import Waits
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.store import Change, Deleted
from growth.planning.budgets import allowance
from growth.planning.repairs import Broken, broken, too_many
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Counter, Declaration
from growth.units import TimestampError, parse_time, print_time

_log = logger("node.health")

# After something held a repair back: too many broken nodes, a budget, a pause.
BLOCKED_SECONDS: Final = 300.0

UNHEALTHY_DISRUPTED: Final = Counter(
    "karpenter_nodeclaims_unhealthy_disrupted_total",
    "NodeClaims that were deleted because their Nodes were broken, by the condition that told so.",
    labels=("condition", "nodepool", "capacity_type", "image_id"),
)
METRICS: Final[tuple[Declaration, ...]] = (UNHEALTHY_DISRUPTED,)


class Repair:
    """Works node by node, one at a time: each takes its place in the budget before the next is looked at."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._policies = tuple(env.provider.repair_policies())
        self._waits = Waits(env.clock)
        self._ended: set[str] = set()  # UIDs of claims that we ended and the cache still shows as staying
        self._reconciler: Reconciler[str] = Reconciler("node.health", self._act, random=env.random, workers=1)
        env.state.nodes.subscribe(self._on_node)

    async def run(self) -> None:
        """Works until cancelled, or until the gate is closed."""
        state = self._env.state
        for informer in (state.nodes, state.claims, state.pools):
            await informer.wait_synced()
        await self._reconciler.run()

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted):
            self._waits.forget(news.old.metadata.uid)
        else:
            self._reconciler.add(news.key[1])

    async def _act(self, name: str) -> float | None:
        """In how many seconds to look again; None where only a change of the Node can make a difference."""
        env = self._env
        node = env.state.nodes.store.get(name)
        claim = None if node is None else self._claim_of(node)
        if node is None or claim is None:
            return None
        found = broken(node, self._policies)
        if found is None:
            self._waits.forget(node.metadata.uid)
            await self._forgive(claim)
            return None
        left = self._left(node, found)
        if left > 0:
            return left
        if any(_spared(each) for each in (node, claim)):
            await self._forgive(claim)
            return BLOCKED_SECONDS  # a claim's annotation may go without a change of the Node
        if why_paused(env, pool_of(claim)) or any(marked_paused(each.metadata) for each in (node, claim)):
            await self._forgive(claim)
            return BLOCKED_SECONDS
        why = too_many(self._nodes_beside(claim), self._policies) or self._over_budget(claim)
        if why:
            self._tell_blocked(node, claim, why)
            await self._forgive(claim)
            return BLOCKED_SECONDS
        # Whoever stays does so by a pause, an annotation or a recovery that we may have seen already.
        return None if await self._repair(node, claim, found) else BLOCKED_SECONDS

    def _left(self, node: Node, found: Broken) -> float:
        """For how many seconds the node may still recover."""
        now = self._waits.now(node.metadata.uid, (found.condition, found.since), began=found.since)
        return (found.due - now).total_seconds()

    def _claim_of(self, node: Node) -> NodeClaim | None:
        """The claim of the Node's machine; None where it is not ours, in doubt, or leaving already."""
        if not node.spec.provider_id or node.metadata.deletion_timestamp is not None:
            return None
        claims = self._env.state.claims.store.find("provider", node.spec.provider_id)
        if len(claims) != 1 or not serves(self._env.provider, claims[0].spec.node_class_ref):
            return None
        return claims[0] if claims[0].metadata.deletion_timestamp is None else None

    # What holds it back.

    def _nodes_beside(self, claim: NodeClaim) -> list[Node]:
        """The Nodes of the claim's pool; of all claims where it has none."""
        state, pool = self._env.state, pool_of(claim)
        claims = [each for each in state.claims.store if pool is None or pool_of(each) == pool]
        return [node for each in claims for node in ending.nodes_of(self._env, each)]

    def _over_budget(self, claim: NodeClaim) -> str:
        env = self._env
        name = claim.metadata.labels.get(names.NODE_POOL_LABEL, "")
        pool = env.state.pools.store.get(name)
        if pool is None:
            return ""
        claims = [each for each in env.state.claims.store.find("pool", name) if ending.nodes_of(env, each)]
        self._ended &= {each.metadata.uid for each in claims if each.metadata.deletion_timestamp is None}
        counted = [each for each in claims if _counts(each)]
        going = sum(self._goes(each) for each in counted if each.metadata.uid != claim.metadata.uid)
        budgets = pool.spec.disruption.budgets
        # Where none counts the broken one does: a share of nothing would keep it for ever.
        allowed = allowance(budgets, nodes=len(counted) or 1, reason=names.UNHEALTHY, now=env.clock.now())
        if allowed.less(going) != 0:
            return ""
        if allowed.faults:
            return f"NodePool {name} has a budget that cannot be read: {allowed.faults[0]}"
        return f"the budget of NodePool {name} for reason {names.UNHEALTHY} allows {allowed.nodes} at a time"

    def _goes(self, claim: NodeClaim) -> bool:
        """Whether the machine is on its way out, or somebody is disrupting it."""
        if claim.metadata.deletion_timestamp is not None or claim.metadata.uid in self._ended:
            return True
        return any(map(tainting.tainted, ending.nodes_of(self._env, claim)))

    def _tell_blocked(self, node: Node, claim: NodeClaim, why: str) -> None:
        events = self._env.events
        events.event(regarding(NODE, node.metadata), names.NODE_REPAIR_BLOCKED, why, type=WARNING)
        events.event(regarding(NODE_CLAIM, claim.metadata), names.NODE_REPAIR_BLOCKED, why, type=WARNING)
        pool = self._env.state.pools.store.get(claim.metadata.labels.get(names.NODE_POOL_LABEL, ""))
        if pool is not None:
            events.event(regarding(NODE_POOL, pool.metadata), names.NODE_REPAIR_BLOCKED, why, type=WARNING)

    # What is done.

    async def _repair(self, node: Node, claim: NodeClaim, found: Broken) -> bool:
        """The deadline first, then the deletion: without the deadline a broken node may be drained for ever."""
        env = self._env
        try:
            fresh = await env.api.get(NODE, node.metadata.name)
        except NotFound:
            return False
        still = broken(fresh, self._policies)
        if fresh.metadata.uid != node.metadata.uid or still is None or self._left(fresh, still) > 0:
            _log.info("a node has recovered in time", Node=node.metadata.name)
            return False
        if _spared(fresh) or marked_paused(fresh.metadata):
            return False
        now = print_time(env.clock.now())

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != claim.metadata.uid:
                raise Conflict(f"another NodeClaim is called {claim.metadata.name} by now")
            set_annotations(draft, {names.TERMINATION_TIMESTAMP_ANNOTATION: now})

        try:
            await change(env.api, NODE_CLAIM, claim.metadata.name, edit)
        except NotFound:
            return False
        if not await ending.end(env, claim, reason=names.UNHEALTHY, stays=_why_it_stays):
            await self._take_back(claim)
            return False
        self._ended.add(claim.metadata.uid)
        pool = pool_of(claim)
        _log.info("deleting unhealthy node", Node=node.metadata.name, condition=found.condition)
        env.metrics.add(
            UNHEALTHY_DISRUPTED,
            condition=found.condition,
            nodepool="" if pool is None else str(pool),
            capacity_type=claim.metadata.labels.get(names.CAPACITY_TYPE_LABEL, ""),
            image_id=claim.status.image_id,
        )
        return True

    async def _forgive(self, claim: NodeClaim) -> None:
        """Takes back a deadline that a crash left, or who was faster, on a claim whose Node has recovered or is not to be repaired
        now: some day it will go in peace.
        """
        text = claim.metadata.annotations.get(names.TERMINATION_TIMESTAMP_ANNOTATION)
        if text is None:
            return
        try:
            if parse_time(text) > self._env.clock.now():
                return  # not one of ours: a repair's deadline is past at once
        except TimestampError:
            return
        await self._take_back(claim)

    async def _take_back(self, claim: NodeClaim) -> None:
        """Without its deadline the claim goes in peace, whenever it goes; one that goes already keeps it."""

        def edit(draft: Json) -> None:
            meta = draft["metadata"]
            if meta["uid"] == claim.metadata.uid and not meta.get("deletionTimestamp"):
                set_annotations(draft, {names.TERMINATION_TIMESTAMP_ANNOTATION: None})

        try:
            await change(self._env.api, NODE_CLAIM, claim.metadata.name, edit, guarded=True)
        except NotFound:
            return


def _counts(claim: NodeClaim) -> bool:
    """Whether budgets count the machine: it is initialised, and its end has not begun at the cloud."""
    conditions = claim.status.conditions
    return is_true(conditions, names.INITIALIZED) and not is_true(conditions, names.INSTANCE_TERMINATING)


def _spared(item: Node | NodeClaim) -> bool:
    return item.metadata.annotations.get(names.DO_NOT_REPAIR_ANNOTATION) == "true"


def _why_it_stays(claim: NodeClaim) -> str:
    """Once the deadline was written: spared meanwhile, or another process holds repairs back and has taken the deadline off."""
    if _spared(claim):
        return "spared"
    return "" if names.TERMINATION_TIMESTAMP_ANNOTATION in claim.metadata.annotations else "its deadline was taken off"
