"""Gives up claims whose machines switched themselves off before they joined: nobody waits for the registration TTL.

A machine that cannot join has no way to say so but to go off (`providers.userdata`). It is looked at twice, since a machine is
off for a moment before it starts. The condition `MachineOff` says it from the first look on, also of a claim that stays because its
pool is paused.
"""

import asyncio
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError
from growth.api.conditions import TRUE, is_true, since
from growth.api.edits import remove_condition, set_condition
from growth.api.events import WARNING, regarding
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.controllers.disrupted import count_disrupted
from growth.controllers.environment import Environment
from growth.controllers.health import RegistrationHealth
from growth.controllers.lifecycle import decide
from growth.controllers.lifecycle.claims import Claims, read
from growth.controllers.ownership import pool_of, serves, why_paused
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.telemetry.logs import about, logger

_log = logger("nodeclaim.lifecycle")

LOOK_SECONDS: Final = 30.0
# Most machines have joined by then: about them the cloud is not asked.
JOINING_SECONDS: Final = 90.0
JOINING_FAILED: Final = "joining_failed"
WHY: Final = "its machine switched itself off before it joined the cluster: its console, and /var/log/growth-join.log on its disk, say why"


class Stopped:
    """Part of the lifecycle's controller; `run` with it."""

    def __init__(self, env: Environment, *, health: RegistrationHealth) -> None:
        self._env = env
        self._health = health
        self._claims = Claims(env.api)
        self._off: set[str] = set()  # UIDs of claims whose machines were off at the last look

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            state = self._env.state
            if not (state.claims.synced and state.nodes.synced):
                continue
            off: set[str] = set()
            for claim in [each for each in state.claims.store if self._joins_late(each)]:
                with about(NodeClaim=claim.metadata.name):
                    try:
                        await self._look(claim, off)
                    except (GateClosed, ConfigError):
                        raise
                    except KubeError as error:
                        _log.warning("will try again", error=str(error))
            self._off = off

    async def _look(self, claim: NodeClaim, off: set[str]) -> None:
        if await self._is_off(claim):
            off.add(claim.metadata.uid)
            await self._claims.change_status(claim, self._tell)
            if claim.metadata.uid in self._off and not why_paused(self._env, pool_of(claim)):
                await self._end(claim)
        elif is_true(claim.status.conditions, names.MACHINE_OFF):
            await self._claims.change_status(claim, lambda draft: remove_condition(draft, names.MACHINE_OFF))

    def _tell(self, draft: Json) -> None:
        now = self._env.clock.now()
        set_condition(draft, names.MACHINE_OFF, status=TRUE, reason=names.JOINING_FAILED, message=WHY, now=now)

    def _joins_late(self, claim: NodeClaim) -> bool:
        env = self._env
        if claim.metadata.deletion_timestamp is not None or not serves(env.provider, claim.spec.node_class_ref):
            return False
        if not decide.launched(claim) or is_true(claim.status.conditions, names.REGISTERED):
            return False
        if env.state.nodes.store.find("provider", claim.status.provider_id):
            return False
        launched = since(claim.status.conditions, names.LAUNCHED)
        return launched is not None and (env.clock.now() - launched).total_seconds() >= JOINING_SECONDS

    async def _is_off(self, claim: NodeClaim) -> bool:
        try:
            return (await self._env.provider.get(claim.status.provider_id)).stopped
        except CloudError:
            return False  # what the cloud does not tell is not known

    async def _end(self, cached: NodeClaim) -> None:
        raw = await self._claims.fresh(cached)
        claim = cached if raw is None else read(raw)
        if raw is None or not self._joins_late(claim) or not await self._claims.delete(claim):
            return
        _log.warning("a machine went off before it joined", provider_id=claim.status.provider_id)
        self._env.events.event(
            regarding(NODE_CLAIM, claim.metadata), names.JOINING_FAILED, f"NodeClaim is given up: {WHY}", type=WARNING
        )
        count_disrupted(self._env.metrics, claim, reason=JOINING_FAILED)
        pool = pool_of(claim)
        if pool is not None:
            self._health.record(pool, ok=False, reason=names.JOINING_FAILED, message=WHY)
