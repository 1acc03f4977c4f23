"""One move from its decision to the deletion of its claims, or back: taint, buy, wait until initialised, look, delete.

    wait, check again ─► taint ─► reserve, buy ─► all initialised ─► look afresh ─► delete the claims
          │ not any more      └──────────────┴───────────────┴─────────────┴─► take it all back

Each step may be the last of this process. What is written by then says the rest: a taint without a claim that replaces
is taken off (`mending`), and a claim that replaces names its move, with which another process goes on.
"""

import asyncio
import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Final

from growth.api import moves as intents
from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NODE_CLAIM
from growth.cluster.shapes import CachedPod
from growth.cluster.snapshot import Snapshot
from growth.cluster.wanting import key_of
from growth.controllers.disruption import marking
from growth.controllers.disruption.attempts import each
from growth.controllers.disruption.confirming import Confirming
from growth.controllers.disruption.looking import Fresh, Looking
from growth.controllers.disruption.memory import Memory
from growth.controllers.disruption.moving import VALIDATED, GaveUp, Moves, Running, Stage, Target
from growth.controllers.disruption.orders import ordered
from growth.controllers.disruption.question import validated
from growth.controllers.disruption.reporting import Report
from growth.controllers.disruption.requesting import GrowthMoves, by_request
from growth.controllers.disruption.returning import SETTLE_SECONDS, Returning, settled
from growth.controllers.disruption.weighing import search_options
from growth.controllers.environment import Environment
from growth.controllers.growth.purchases import Requesting
from growth.controllers.provisioning.purchases import Purchases
from growth.controllers.vain import Vain
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.telemetry.logs import logger

_log = logger("disruption")

LOOK_SECONDS: Final = 1.0
# Between two last looks, while a budget is closed or somebody else has the room.
AGAIN_SECONDS: Final = 5.0
# A claim that we bought and the cache has not shown by now is asked for.
SHOWN_SECONDS: Final = 10.0


class Execution:
    """Carries moves out, any number of them side by side."""

    def __init__(
        self,
        env: Environment,
        moves: Moves,
        looking: Looking,
        memory: Memory,
        report: Report,
        *,
        returning: Returning,
        requesting: Requesting,
    ) -> None:
        self._env = env
        self._moves = moves
        self._returning = returning
        self._looking = looking
        self._memory = memory
        self._report = report
        self._purchases = Purchases(env)
        self._vain = Vain(env)
        self._growth = GrowthMoves(env, requesting)
        self._confirming = Confirming(env, moves, looking, self._growth)

    async def carry_out(self, running: Running) -> None:
        """Until the claims are deleted or everything is taken back. A closed gate ends it where it is."""
        why, failed = "", False
        try:
            await self._through(running)
        except (GateClosed, ConfigError):
            raise
        except GaveUp as error:
            why = str(error)
            failed = error.failed
        except KubeError as error:
            why = f"the API server: {error}"
        except Exception as error:  # noqa: BLE001 - whatever it is, the nodes must get their pods back
            _log.exception("a bug in us; a move is given up")
            why = f"a bug in Growth: {type(error).__name__}: {error}"
        if why:
            self._rest(running, failed=failed)
        try:
            if why:
                await self._take_back(running, why)
        finally:
            self._moves.remove(running)

    def _rest(self, running: Running, *, failed: bool) -> None:
        """Else the same would be decided and begun, and perhaps bought, again at once. A drifted node rests for itself, and
        the next one of its pool is tried, unless nothing can be bought there.
        """
        memory, move = self._memory, running.move
        paid = self._in_vain(running)
        if failed or (paid and move.reason in VALIDATED):
            memory.failed(move.reason, move.pools)
        if running.stage is not Stage.WAITING and move.reason not in VALIDATED:
            took = self._env.clock.monotonic() - running.since
            memory.taken_back(running.targets, took=took, paid=paid)

    def _in_vain(self, running: Running) -> bool:
        """Whether all that was bought for the move came up, and none of its nodes goes."""
        return running.stage is Stage.STARTING and bool(running.coming) and all(map(self._is_up, running.coming))

    async def _through(self, running: Running) -> None:
        if running.stage is Stage.WAITING:
            if running.move.reason in VALIDATED:
                await asyncio.sleep(self._env.settings.validation)
                await self._validate(running)
            running.stage = Stage.STARTING
            await self._mark(running)
            await self._growth.spare(running.move.destinations)
            if running.move.replacements:
                await self._look_back(running)
                await (self._ask(running) if by_request(running) else self._buy(running))
                self._report.bought(running)
        await self._initialized(running)
        fresh = await self._last_look(running)
        await (self._release(running, fresh) if by_request(running) else self._delete(running, fresh))

    # Before anything is done.

    async def _validate(self, running: Running) -> None:
        """The move, decided afresh for its nodes: what is left of it, or `GaveUp`."""
        await self._synced(running)
        question = self._looking.question(self._moves.beside(running), closed=self._moves.following(running))
        nodes = frozenset(running.move.nodes)
        verdict = await self._env.compute.run(
            validated,
            question,
            running.move,
            options=search_options(self._env.settings),
            put_off=self._memory.times_put_off(nodes),
        )
        if verdict.less:
            self._memory.put_off(nodes)
        if verdict.homeless:
            self._memory.taken_back(nodes, took=self._env.clock.monotonic() - running.since)
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
        assert market is not None
        taken: set[str] = set()
        named = [self._purchases.new_name(one.planned.pool.name, taken) for one in move.replacements]
        running.coming = tuple(named)
        intent = intents.Intent(reason=move.reason, at=running.at, group=running.coming)
        going = [target.claim for target in running.targets.values()]
        pools = {}
        for one in move.replacements:
            pool = env.state.pools.store.get(one.planned.pool.name)
            if pool is None:
                raise GaveUp(f"NodePool {one.planned.pool} is gone", failed=True)
            pools[one.planned.pool] = pool
        orders = [
            ordered(
                one,
                name=name,
                pool=pools[one.planned.pool],
                market=market,
                replaces=going,
                intent=intent,
                now=env.clock.now(),
                bought_for=sorts,
            )
            for one, name, sorts in zip(move.replacements, named, self._bought_for(running), strict=True)
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

    async def _ask(self, running: Running) -> None:
        """The same by NodeRequests."""
        env = self._env
        try:
            wanted = self._growth.wanted(running, self._bought_for(running))
        except NotFound as error:
            raise GaveUp(str(error), failed=True) from None
        running.requests = tuple(each.name for each in wanted)
        running.coming = tuple(each.claim for each in wanted)
        for name in running.coming:
            env.state.nominate(name, seconds=env.settings.nomination)
        self._promise(running)
        why = await self._growth.ask(wanted)
        if why:
            raise GaveUp(f"what replaces them cannot be asked for: {why}", failed=True)

    async def _look_back(self, running: Running) -> None:
        """`GaveUp` where the last machines that were bought for these pods came in vain, or may yet turn out so."""
        env, market, catalogue = self._env, running.market, self._env.state.catalogue
        assert market is not None
        if catalogue is None:
            return
        picture = self._vain.laid(env.state.picture(env.clock.now()))
        ruling = self._vain.looked(
            picture,
            Snapshot(
                currency=market.currency,
                pools=tuple(market.views.values()),
                daemons=tuple(picture.daemons),
                volumes=picture.volumes,
            ),
            [(one.planned.pool, one.planned.pods) for one in running.move.replacements],
            {key: pod.shape for key, pod in self._moving(running).items()},
        )
        await self._vain.settle(ruling)
        if ruling:
            raise GaveUp("machines that were bought for their pods before came otherwise than planned", failed=True)

    def _bought_for(self, running: Running) -> list[dict[str, str]]:
        """What each of the claims says that are bought for the move."""
        assert running.market is not None
        pods, views = self._moving(running), running.market.views
        return [
            self._vain.annotation(
                views.get(one.planned.pool), (pods[key].shape for key in one.planned.pods if key in pods)
            )
            for one in running.move.replacements
        ]

    def _moving(self, running: Running) -> dict[str, CachedPod]:
        """The pods on the nodes of the move, by key."""
        return {key_of(pod): pod for name in running.targets for pod in self._env.state.pods.store.find("node", name)}

    def _promise(self, running: Running) -> None:
        """The pods that the plan puts on each new machine keep their room there."""
        pods = self._moving(running)
        for name, one in zip(running.coming, running.move.replacements, strict=True):
            self._env.state.promises.promise(name, [pods[key] for key in one.planned.pods if key in pods])

    async def _initialized(self, running: Running) -> None:
        """Waits until everything that was bought is up. `GaveUp` where one of them is gone, or it takes too long."""
        env = self._env
        asked = env.clock.monotonic()
        told: set[str] = set()
        while True:
            for name in (*running.coming, *running.move.destinations):
                env.state.nominate(name, seconds=env.settings.nomination)
            for name in running.coming:
                claim = env.state.claims.store.get(name)
                if claim is None and env.clock.monotonic() - asked >= SHOWN_SECONDS:
                    (claim,) = await each((name,), functools.partial(self._confirming.asked_for, running), attempts=1)
                if claim is not None and claim.metadata.deletion_timestamp is not None:
                    raise GaveUp(f"the replacement {name} was deleted", failed=True)
                if claim is not None and name not in told:
                    told.add(name)
                    self._report.launching(running, claim, up=self._is_up(name))
            if all(map(self._is_up, running.coming)):
                return
            self._check_time(running)
            await asyncio.sleep(LOOK_SECONDS)

    def _is_up(self, name: str) -> bool:
        claim = self._env.state.claims.store.get(name)
        return claim is not None and is_true(claim.status.conditions, names.INITIALIZED)

    # The last look, and the end.

    async def _last_look(self, running: Running) -> dict[str, Fresh]:
        """What the server says now of the nodes that may go. `GaveUp` where the move may not be made any more.

        While the server does not say enough, it is asked again for as long as a move may take. Empty nodes go each for
        itself: those of which it does not tell stay, and hold up no other.
        """
        await self._synced(running)
        while (found := await self._confirming.judgement(running)) is None:
            self._check_time(running)
            for name in (*running.coming, *running.move.destinations):
                self._env.state.nominate(name, seconds=self._env.settings.nomination)
            await asyncio.sleep(AGAIN_SECONDS)
            await self._synced(running)
        looked, verdict = found
        stays = [name for name in running.targets if name not in verdict.nodes]
        why = "; ".join(part for part in (*looked.wrong.values(), _untold(looked.unsure), verdict.why) if part)
        if stays and not running.coming:
            self._report.failed_validation(running, len(stays))
        if not verdict.nodes and stays:
            raise GaveUp(why)
        if stays:
            _log.info("abandoning disruption of node(s)", nodes=", ".join(stays), why=why)
            await self._unmark(running, stays, why=why)
            running.keep(verdict.nodes)
        return {name: looked.fresh[name] for name in running.targets}

    def _leave(self, running: Running) -> None:
        """From now on the pods are on their way."""
        running.stage = Stage.LEAVING
        for name in (*running.coming, *running.move.destinations):
            self._env.state.nominate(name, seconds=self._env.settings.nomination)

    async def _release(self, running: Running, fresh: dict[str, Fresh]) -> None:
        """Asks for the removal of the nodes; what a minimum needs stays after all."""
        self._leave(running)
        store = self._env.state.pods.store
        leaving = {name: self._memory.leaving(looked.pods, store) for name, looked in fresh.items()}
        released = await self._growth.release(fresh, reason=running.move.reason, until=running.sure_until)
        stays = tuple(name for name in fresh if name not in released)
        why = "its pool needs it for the minimum of its type, or what was seen of it is too old"
        if not released:
            raise GaveUp(why)
        if stays:
            await self._unmark(running, stays, why=why)
            running.keep(released)
        for name in released:
            self._report.removed(running, fresh[name])
            self._memory.remember(leaving[name])
        self._remember_success(running)
        self._report.made(running)

    async def _delete(self, running: Running, fresh: dict[str, Fresh]) -> None:
        self._leave(running)
        env = self._env

        async def one(name: str) -> str | None:
            looked = fresh[name]
            if env.clock.boot_time() > running.sure_until:
                return None
            claim = looked.claim.metadata
            leaving = self._memory.leaving(looked.pods, env.state.pods.store)
            try:
                await env.api.delete(NODE_CLAIM, claim.name, uid=claim.uid, revision=claim.resource_version)
            except NotFound as error:
                _log.info("a nodeclaim is gone already", NodeClaim=claim.name, error=str(error))
                return name
            except Conflict:  # somebody wrote it since: perhaps took its mark off
                return None
            self._report.removed(running, looked)
            self._memory.remember(leaving)
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
        self._remember_success(running)
        self._report.made(whole)

    def _remember_success(self, running: Running) -> None:
        """A move that bought nothing says nothing of purchases that failed."""
        if running.move.replacements:
            self._memory.succeeded(running.move.reason, running.move.pools)

    # Back.

    async def _take_back(self, running: Running, why: str) -> None:
        """The claims first: whoever goes on with the move in our place deletes none of them any more. Then what was bought,
        and the taints last: as long as one is there, whoever comes after us sees to the rest.
        """
        if running.stage is Stage.WAITING:
            return
        self._report.gave_up(running, why, missing=sum(not self._is_up(name) for name in running.coming))
        for name in running.coming:
            self._env.state.promises.withdraw(name)
        stay = await each(tuple(running.targets.values()), self._withdraw)
        # Then pods may be on their way to what was bought.
        begun = running.stage is Stage.LEAVING or (bool(running.coming) and False in stay)
        if not begun:
            await each(running.requests, self._growth.withdraw)
        if begun or running.requests:
            await each(running.coming, self._settle)
        else:
            await self._returning.give_back(running.coming, running=running)
        await self._unmark(running, tuple(running.targets), why=why)

    async def _withdraw(self, target: Target) -> bool:
        return await marking.withdraw(self._env, target.claim)

    async def _settle(self, name: str) -> None:
        await settled(self._env, name)

    async def _unmark(self, running: Running, nodes: Sequence[str], *, why: str) -> None:
        async def one(target: Target) -> None:
            await marking.unmark(self._env, target.node, target.claim, why=why)

        await each([running.targets[name] for name in nodes], one)


def _untold(nodes: Collection[str]) -> str:
    return f"the API server does not tell of {', '.join(sorted(nodes))}" if nodes else ""
