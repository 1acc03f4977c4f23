"""One move from its decision to the deletion of its claims, or back: taint, buy, wait until initialised, look, delete.

    wait, check again ─► taint ─► reserve, buy ─► all initialised ─► look afresh ─► delete the claims
          │ not any more      └──────────────┴───────────────┴─────────────┴─► take it all back

Each step may be the last of this process. What is written by then says the rest: a taint without a claim that replaces
is taken off (`mending`), and a claim that replaces names its move, with which another process goes on.
"""

import asyncio
import dataclasses
from collections.abc import Collection, Sequence
from typing import Final, Protocol, TypeVar

from growth.api import moves as intents
from growth.api import names
from growth.api.conditions import is_true
from growth.api.edits import set_annotations
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import key_of
from growth.controllers import tainting
from growth.controllers.disruption import marking
from growth.controllers.disruption.attempts import each
from growth.controllers.disruption.looking import Fresh, Looking
from growth.controllers.disruption.memory import Memory
from growth.controllers.disruption.moving import VALIDATED, Moves, Running, Stage, Target
from growth.controllers.disruption.orders import ordered
from growth.controllers.disruption.question import Verdict, confirmed, validated
from growth.controllers.disruption.reporting import Report
from growth.controllers.disruption.surroundings import Surroundings, look
from growth.controllers.environment import Environment
from growth.controllers.fresh import pods_on
from growth.controllers.provisioning.purchases import Purchases
from growth.kube.changes import change
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.planning.disruption.candidates import empty
from growth.telemetry.logs import logger

T = TypeVar("T")

_log = logger("disruption")

# After the taint a scheduler that has not seen it yet may still bind a pod; then the fresh list must show it.
SETTLE_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
# Between two last looks, while a budget is closed or somebody else has the room.
AGAIN_SECONDS: Final = 5.0
# A claim that we bought and the cache has not shown by now is asked for.
SHOWN_SECONDS: Final = 10.0
# So often the nodes that are to take the pods are looked at before the move is given up, or waits.
ROUNDS: Final = 8


class Judged(Protocol):
    """What becomes of a move with what was seen around it; only nodes that are `known` take its pods, None: any."""

    async def __call__(self, around: Surroundings | None, *, known: Collection[str] | None = None) -> Verdict: ...


class GaveUp(Exception):
    """The move will not be made; the message says why. `failed`: what it was to buy is not to be had."""

    def __init__(self, why: str, *, failed: bool = False) -> None:
        super().__init__(why)
        self.failed = failed


class Execution:
    """Carries moves out, any number of them side by side."""

    def __init__(self, env: Environment, moves: Moves, looking: Looking, memory: Memory, report: Report) -> None:
        self._env = env
        self._moves = moves
        self._looking = looking
        self._memory = memory
        self._report = report
        self._purchases = Purchases(env)

    async def carry_out(self, running: Running) -> None:
        """Until the claims are deleted or everything is taken back. A closed gate ends it where it is."""
        why = ""
        try:
            await self._through(running)
        except (GateClosed, ConfigError):
            raise
        except GaveUp as error:
            why = str(error)
            if error.failed:
                self._memory.failed(running.move.reason, running.move.pools)
        except KubeError as error:
            why = f"the API server: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the nodes must get their pods back
            _log.exception("a bug in us; a move is given up")
            why = f"a bug in Growth: {type(error).__name__}: {error}"
        try:
            if why:
                await self._take_back(running, why)
        finally:
            self._moves.remove(running)

    async def _through(self, running: Running) -> None:
        if running.stage is Stage.WAITING:
            if running.move.reason in VALIDATED:
                await asyncio.sleep(self._env.settings.validation)
                await self._validate(running)
            running.stage = Stage.STARTING
            await self._mark(running)
            await self._buy(running)
        await self._initialized(running)
        await self._delete(running, await self._last_look(running))

    # Before anything is done.

    async def _validate(self, running: Running) -> None:
        """The move, decided afresh for its nodes: what is left of it, or `GaveUp`."""
        await self._synced(running)
        question = self._looking.question(self._moves.nodes(but=running))
        verdict = await self._env.compute.run(validated, question, running.move)
        lost = len(running.move.nodes) - len(verdict.nodes)
        if lost:
            self._report.failed_validation(running, lost)
            _log.info("abandoning disruption of node(s)", nodes=", ".join(running.move.nodes), why=verdict.why)
        if not verdict.nodes:
            raise GaveUp(verdict.why)
        running.keep(verdict.nodes)

    async def _synced(self, running: Running) -> None:
        """Nothing is decided on a state that may be partial."""
        while self._env.state.unsynced() or self._env.state.catalogue is None:
            self._check_time(running)
            await asyncio.sleep(LOOK_SECONDS)

    def _check_time(self, running: Running) -> None:
        seconds = self._env.clock.monotonic() - running.since
        if seconds > self._moves.patience():
            missing = [name for name in running.coming if not self._is_up(name)]
            what = f"{', '.join(missing)} did not become ready" if missing else "it could not be completed"
            raise GaveUp(f"it took longer than {self._moves.patience():.0f} s: {what}", failed=bool(missing))

    # Doing it.

    async def _mark(self, running: Running) -> None:
        move = running.move
        self._report.begins(running)

        async def one(target: Target) -> str | None:
            await marking.mark(self._env, target.node, target.claim, reason=move.reason)
            return target.node.metadata.name

        done = [name for name in await each(tuple(running.targets.values()), one) if name is not None]
        if len(done) < len(running.targets):
            missing = ", ".join(name for name in running.targets if name not in done)
            if move.reason != names.EMPTY or not done:
                raise GaveUp(f"not all nodes could be tainted: {missing}")
            await self._unmark(running, [name for name in running.targets if name not in done], why="not tainted whole")
            running.keep(done)
        await asyncio.sleep(SETTLE_SECONDS)

    async def _buy(self, running: Running) -> None:
        """Creates the claims that replace, all or none. Their names are known before the first is asked for."""
        move, market, env = running.move, running.market, self._env
        if not move.replacements:
            return
        assert market is not None
        taken: set[str] = set()
        named = [self._purchases.new_name(one.planned.pool.name, taken) for one in move.replacements]
        running.coming = tuple(named)
        intent = intents.Intent(reason=move.reason, at=running.at, group=running.coming)
        claims = tuple(target.claim.metadata.name for target in running.targets.values())
        pools = {}
        for one in move.replacements:
            pool = env.state.pools.store.get(one.planned.pool.name)
            if pool is None:
                raise GaveUp(f"NodePool {one.planned.pool} is gone", failed=True)
            pools[one.planned.pool] = pool
        catalogue = env.state.catalogue
        orders = [
            ordered(
                one,
                name=name,
                pool=pools[one.planned.pool],
                market=market,
                sold=catalogue.types if catalogue is not None else (),
                replaces=claims,
                intent=intent,
            )
            for one, name in zip(move.replacements, named, strict=True)
        ]
        for name in named:
            env.state.nominate(name, seconds=env.settings.nomination)
        self._promise(running)
        done = await self._purchases.buy(
            orders, views=market.views, currency=market.currency, reason=move.reason.lower()
        )
        if len(done.created) < len(orders):
            told = "; ".join(dict.fromkeys(why for _, why in done.refused)) or done.again
            raise GaveUp(f"what replaces them cannot be bought: {told}", failed=True)
        self._report.bought(running)

    def _promise(self, running: Running) -> None:
        """The pods that the plan puts on each new machine keep their room there."""
        pods = {key_of(pod): pod for name in running.targets for pod in self._env.state.pods.store.find("node", name)}
        for name, one in zip(running.coming, running.move.replacements, strict=True):
            self._env.state.promises.promise(name, [pods[key] for key in one.planned.pods if key in pods])

    async def _initialized(self, running: Running) -> None:
        """Waits until everything that was bought is up. `GaveUp` where one of them is gone, or it takes too long."""
        env = self._env
        asked = env.clock.monotonic()
        while True:
            for name in (*running.coming, *running.move.destinations):
                env.state.nominate(name, seconds=env.settings.nomination)
            for name in running.coming:
                claim = env.state.claims.store.get(name)
                if claim is None and env.clock.monotonic() - asked >= SHOWN_SECONDS:
                    claim = await self._asked_for(name)
                if claim is not None and claim.metadata.deletion_timestamp is not None:
                    raise GaveUp(f"the replacement {name} was deleted", failed=True)
                if claim is not None:
                    self._report.launching(running, claim, up=self._is_up(name))
            if all(map(self._is_up, running.coming)):
                return
            self._check_time(running)
            await asyncio.sleep(LOOK_SECONDS)

    def _is_up(self, name: str) -> bool:
        claim = self._env.state.claims.store.get(name)
        return claim is not None and is_true(claim.status.conditions, names.INITIALIZED)

    async def _asked_for(self, name: str) -> NodeClaim | None:
        """None where the server says that it is gone and the cache that it is not: one of the two is late."""
        try:
            return await self._env.api.get(NODE_CLAIM, name)
        except NotFound:
            if self._env.state.claims.store.get(name) is not None:
                return None
            raise GaveUp(f"the replacement {name} was deleted", failed=True) from None

    # The last look, and the end.

    async def _last_look(self, running: Running) -> dict[str, Fresh]:
        """What the server says now of the nodes that may go. `GaveUp` where the move may not be made any more."""
        while True:
            await self._synced(running)
            fresh, why, sure = await self._looked(running)
            if running.move.reason != names.EMPTY and why:
                raise GaveUp(why)
            if sure:
                verdict = await self._confirmed(running, fresh)
                if verdict.nodes or not verdict.again or not running.coming:
                    break
            self._check_time(running)
            for name in (*running.coming, *running.move.destinations):
                self._env.state.nominate(name, seconds=self._env.settings.nomination)
            await asyncio.sleep(AGAIN_SECONDS)
        stays = [name for name in running.targets if name not in verdict.nodes]
        if stays and not running.coming:
            self._report.failed_validation(running, len(stays))
        if not verdict.nodes and stays:
            raise GaveUp("; ".join(part for part in (why, verdict.why) if part))
        if stays:
            _log.info("abandoning disruption of node(s)", nodes=", ".join(stays), why=why or verdict.why)
            await self._unmark(running, stays, why=why or verdict.why)
            running.keep(verdict.nodes)
        return {name: fresh[name] for name in running.targets}

    async def _looked(self, running: Running) -> tuple[dict[str, Fresh], str, bool]:
        """Nodes, claims and pods as they are now; those that are leaving already are dropped from the move. And what is
        wrong with one of the others, and with what replaces them; and whether server and cache agree on who is there.
        """
        env = self._env
        fresh: dict[str, Fresh] = {}
        why = ""
        for name in running.coming:
            new = await self._asked_for(name)
            if new is None:
                return {}, "", False
            if new.metadata.deletion_timestamp is not None or not is_true(new.status.conditions, names.INITIALIZED):
                raise GaveUp(f"the replacement {name} is on its way out", failed=True)
        for name, target in tuple(running.targets.items()):
            try:
                node = await env.api.get(NODE, name)
                claim = await env.api.get(NODE_CLAIM, target.claim.metadata.name)
            except NotFound:
                if self._is_there(target):
                    return {}, "", False
                running.keep([one for one in running.targets if one != name])
                continue
            deleted = any(one.metadata.deletion_timestamp is not None for one in (node, claim))
            if deleted or claim.metadata.uid != target.claim.metadata.uid:
                # By our own request, whose answer was lost, or by somebody else's: the mark belongs there.
                running.keep([one for one in running.targets if one != name])
            elif node.metadata.uid != target.node.metadata.uid or node.spec.provider_id != claim.status.provider_id:
                why = f"node {name} is another machine than was looked at"
            elif not tainting.tainted(node):
                why = f"the mark of node {name} was taken off, so that pods may be on their way"
            else:
                fresh[name] = Fresh(node=node, claim=claim, pods=tuple(await pods_on(env, name)))
        return fresh, why, True

    def _is_there(self, target: Target) -> bool:
        """Whether the cache has both, and neither is on its way out."""
        state = self._env.state
        found = state.nodes.store.get(target.node.metadata.name), state.claims.store.get(target.claim.metadata.name)
        return all(each is not None and each.metadata.deletion_timestamp is None for each in found)

    async def _confirmed(self, running: Running, fresh: dict[str, Fresh]) -> Verdict:
        move = running.move
        pools: dict[str, NodePool] = {}
        for name in move.pools:
            try:
                pools[name] = await self._env.api.get(NODE_POOL, name)
            except NotFound:
                if running.targets:
                    raise GaveUp(f"NodePool {name} is gone") from None
        asked = dataclasses.replace(
            move,
            nodes=tuple(name for name in move.nodes if name in fresh),
            replacements=(),
        )
        judge = confirmed if running.coming else validated
        acting = self._moves.nodes(but=running)

        async def judged(around: Surroundings | None, *, known: Collection[str] | None = None) -> Verdict:
            question = self._looking.question(acting, fresh=fresh, pools=pools, around=around)
            return await self._env.compute.run(judge, question, asked, known)

        if move.reason == names.EMPTY:
            return await judged(None)
        return await self._with_room(running, judged)

    async def _with_room(self, running: Running, judged: "Judged") -> Verdict:
        """What is judged of the move when the nodes that take its pods are looked at afresh; nobody else takes any."""
        env = self._env
        places = {*running.move.destinations, *self._nodes_of(running.coming)}
        around: Surroundings | None = None
        for _ in range(ROUNDS):
            if around is None:
                around = await look(env, places)
                continue
            verdict = await judged(around, known=places)
            if verdict.homeless:  # there may be room elsewhere
                verdict = await judged(around)
            beyond = verdict.places - places
            if verdict.nodes and (beyond or env.clock.monotonic() > around.until):
                places |= beyond
                before, around = around, await look(env, places)
                if beyond or around is None or not around.holds_after(before):
                    continue
            running.sure_until = around.until
            return verdict
        why = "what the nodes that are to take their pods hold changes all the time, or the API server does not tell"
        return dataclasses.replace(await judged(None), nodes=(), why=why, again=True)

    def _nodes_of(self, claims: Collection[str]) -> set[str]:
        found = (self._env.state.claims.store.get(name) for name in claims)
        return {claim.status.node_name for claim in found if claim is not None and claim.status.node_name}

    async def _delete(self, running: Running, fresh: dict[str, Fresh]) -> None:
        running.stage = Stage.LEAVING
        env = self._env
        for name in (*running.coming, *running.move.destinations):
            env.state.nominate(name, seconds=env.settings.nomination)

        async def one(name: str) -> str | None:
            looked = fresh[name]
            if env.clock.monotonic() > running.sure_until:
                return None
            try:
                await env.api.delete(NODE_CLAIM, looked.claim.metadata.name, uid=looked.claim.metadata.uid)
            except (NotFound, Conflict) as error:
                _log.info("a nodeclaim is gone already", NodeClaim=looked.claim.metadata.name, error=str(error))
                return name
            self._report.removed(running, looked)
            self._memory.remember(looked.pods, env.state.pods.store)
            return name

        whole = dataclasses.replace(running)  # a look drops from the move what is on its way out
        asked: set[str] = set()
        while fresh:
            asked.update(fresh)
            if None not in await each(tuple(fresh), one, attempts=1):
                break
            self._check_time(running)
            await asyncio.sleep(LOOK_SECONDS)
            fresh = await self._last_look(running)  # what was seen before is too old to delete by
        whole.keep([*asked])
        self._memory.succeeded(running.move.reason, running.move.pools)
        self._report.made(whole)

    # Back.

    async def _take_back(self, running: Running, why: str) -> None:
        """First what was bought, then the marks: as long as a mark is there, whoever comes after us sees to the rest."""
        if running.stage is Stage.WAITING:
            return
        self._report.gave_up(running, why, missing=sum(not self._is_up(name) for name in running.coming))
        for name in running.coming:
            self._env.state.promises.withdraw(name)
        begun = running.stage is Stage.LEAVING  # then pods may be on their way to what was bought
        await each(running.coming, self._settle if begun else self._return)
        await self._unmark(running, tuple(running.targets), why=why)

    async def _return(self, name: str) -> None:
        await returned(self._env, name)

    async def _settle(self, name: str) -> None:
        await settled(self._env, name)

    async def _unmark(self, running: Running, nodes: Sequence[str], *, why: str) -> None:
        async def one(target: Target) -> None:
            await marking.unmark(self._env, target.node, target.claim, why=why)

        await each([running.targets[name] for name in nodes], one)


async def returned(env: Environment, name: str) -> None:
    """A claim that was bought for a move which is not made goes again if it is ours and empty; else it just stays."""
    try:
        claim = await env.api.get(NODE_CLAIM, name)
    except NotFound:
        return
    if claim.metadata.deletion_timestamp is not None or intents.intent_of(claim.metadata) is None:
        return
    nodes = env.state.nodes.store.find("provider", claim.status.provider_id) if claim.status.provider_id else ()
    for node in nodes:  # no pod may come between the look and the end
        await tainting.mark(env.api, node)
    if nodes:
        await asyncio.sleep(SETTLE_SECONDS)
    if await _in_use(env, claim):
        await settled(env, name)
        for node in nodes:
            await tainting.unmark(env.api, node)
        return
    try:
        await env.api.delete(NODE_CLAIM, name, uid=claim.metadata.uid)
        _log.info("a replacement is not needed", NodeClaim=name)
    except NotFound:
        return


async def settled(env: Environment, name: str) -> None:
    """From now on the claim replaces nobody: it is a machine like any other."""

    def edit(draft: Json) -> None:
        set_annotations(draft, {names.REPLACES_ANNOTATION: None, names.MOVE_ANNOTATION: None})

    try:
        await change(env.api, NODE_CLAIM, name, edit)
    except NotFound:
        return


async def _in_use(env: Environment, claim: NodeClaim) -> bool:
    """Whether pods are on the claim's machine. A machine whose Node we cannot tell is in use."""
    provider_id = claim.status.provider_id
    if not provider_id:
        return False
    pods: list[CachedPod] = []
    nodes = env.state.nodes.store.find("provider", provider_id)
    for name in {claim.status.node_name or claim.metadata.name, *(node.metadata.name for node in nodes)}:
        pods += await pods_on(env, name)
    return not empty(pods)
