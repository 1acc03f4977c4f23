"""Buys the machine of a claim, once: the claim is read afresh, can no longer vanish, and its pool still wants it."""

import dataclasses
from typing import Any, Final

from growth.api import names
from growth.api.clouds import CloudError, CloudMachine, CloudUnavailable, InvariantViolation
from growth.api.conditions import find
from growth.api.edits import add_finalizer, set_labels
from growth.api.events import WARNING, regarding
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json, Kind
from growth.api.zones import DATACENTERS, is_zone, named_zones, zone_of
from growth.cluster.zone_names import preferred, zone_on
from growth.controllers.catalogue import CatalogueReader
from growth.controllers.disrupted import count_disrupted
from growth.controllers.environment import Environment
from growth.controllers.lifecycle import edits
from growth.controllers.lifecycle.claims import Claims, read
from growth.controllers.lifecycle.contradictions import Contradictions
from growth.controllers.lifecycle.failures import Failure, Then, delay_before_end, failure_of
from growth.controllers.lifecycle.memory import Memory
from growth.kube.errors import NotFound
from growth.kube.informer import Informer
from growth.providers.choice import meets
from growth.telemetry.logs import logger
from growth.units.resources import quantities

_log = logger("nodeclaim.lifecycle")

# A claim whose pool is gone is about to be collected; until then, or until its time is over, it is looked at now and then.
ORPHAN_SECONDS: Final = 30.0
# A claim of a NodeRequest that has no stock is ended by its request; where nobody does it is tried again after so long.
UNMET_SECONDS: Final = 60.0


class Launcher:
    """What the lifecycle does with a claim that has no machine."""

    def __init__(
        self, env: Environment, *, memory: Memory, contradictions: Contradictions, catalogue: CatalogueReader | None
    ) -> None:
        self._env = env
        self._claims = Claims(env.api)
        self._memory = memory
        self._contradictions = contradictions
        self._catalogue = catalogue

    async def launch(self, raw: Json) -> float | None:
        """`raw` is the claim as the server just gave it. When to look again; None for when something changes."""
        claim = read(raw)
        self._memory.trying(claim)
        if not await self._has_owner(claim):
            return ORPHAN_SECONDS
        doomed = self._memory.doomed(claim)
        if doomed is not None:
            await self._end(claim, doomed)
            return None
        if names.TERMINATION_FINALIZER not in claim.metadata.finalizers:
            # Made by hand. A machine is bought only for a claim that cannot vanish without giving it back.
            raw = await self._claims.change(
                claim, lambda draft: add_finalizer(draft, names.TERMINATION_FINALIZER), known=raw
            )
            claim = read(raw)
        machine = self._memory.machine(claim)
        if machine is None:
            try:
                machine = await self._env.provider.create(claim)
            except CloudError as error:
                if isinstance(error, CloudUnavailable):
                    self._env.launches.unanswered(claim.metadata.uid, self._env.clock.monotonic())
                if isinstance(error, InvariantViolation):
                    self._contradictions.stops(claim, error)
                else:
                    self._contradictions.forget(claim.metadata.uid)
                return await self._failed(claim, failure_of(error))
            self._contradictions.forget(claim.metadata.uid)
            self._memory.bought(claim, machine)
            self._env.launches.forget(claim.metadata.uid)
            _log.info(
                "launched nodeclaim",
                provider_id=machine.provider_id,
                instance_type=machine.instance_type,
                zone=machine.zone,
                capacity_type=machine.capacity_type,
                allocatable=quantities(machine.allocatable),
            )
        await self._tell(claim, machine, known=raw)
        return None

    async def _tell(self, claim: NodeClaim, machine: CloudMachine, *, known: Json) -> None:
        """Labels first: a crash between the two writes leaves a claim that is launched again and finds its machine."""
        labels = edits.launch_labels(claim, self._placed(claim, machine))

        def label(draft: Json) -> None:
            set_labels(draft, {**labels, **(draft["metadata"].get("labels") or {})})

        labelled = await self._claims.change(claim, label, known=known)
        now = self._env.clock.now()
        launched = await self._claims.change_status(
            claim, lambda draft: edits.tell_launched(draft, claim, machine, now=now), known=labelled
        )
        self._memory.wrote(claim, launched)

    def _placed(self, claim: NodeClaim, machine: CloudMachine) -> CloudMachine:
        """The machine with its zone called as the claim asks, else as the cluster's other Nodes call it."""
        if machine.zone not in DATACENTERS:
            return machine
        state = self._env.state
        others = {
            zone_on(node.metadata.labels)
            for node in state.nodes.store
            if not (node.spec.provider_id and state.claims.store.find("provider", node.spec.provider_id))
        }
        pools = {name for pool in state.pools.store for name in named_zones(pool.spec.template.spec.requirements)}
        asked = [each for each in claim.spec.requirements if is_zone(each.key)]
        candidates = (preferred(machine.zone, others - {""}, pools), machine.zone, *named_zones(asked))
        for name in candidates:
            if zone_of(name) == machine.zone and all(meets(each, name) for each in asked):
                labels = {**machine.labels, names.ZONE_LABEL: name}
                return dataclasses.replace(machine, zone=name, labels=labels)
        return machine

    async def _failed(self, claim: NodeClaim, failure: Failure) -> float | None:
        _log.warning("failed launching nodeclaim", reason=failure.reason, error=failure.message)
        self._env.events.event(
            regarding(NODE_CLAIM, claim.metadata),
            failure.reason,
            f"NodeClaim {claim.metadata.name} event: {failure.message}",
            type=WARNING,
        )
        short = failure.then is Then.END and self._catalogue is not None and self._catalogue.refused(claim)
        if failure.then is Then.END and names.NODE_REQUEST_ANNOTATION in claim.metadata.annotations:
            # Its NodeRequest says first that the cloud has none, and ends it then.
            seconds = self._memory.postpone(claim, seconds=UNMET_SECONDS)
        elif short:
            await self._end(claim, failure)
            return None
        elif failure.then in {Then.END, Then.END_LATER}:
            seconds = delay_before_end(self._memory.refused(claim))
            if not seconds:
                await self._end(claim, failure)
                return None
            self._memory.doom(claim, failure, seconds=seconds)
        else:
            seconds = self._memory.postpone(claim, seconds=failure.seconds)
        told = find(claim.status.conditions, names.LAUNCHED)
        new = told is None or (told.status, told.reason) != (failure.status, failure.reason)
        if new or (
            failure.reason == names.INVARIANT_VIOLATION and told is not None and told.message != failure.message
        ):
            now = self._env.clock.now()
            await self._claims.change_status(
                claim,
                lambda draft: edits.tell_launch_failure(
                    draft, status=failure.status, reason=failure.reason, message=failure.message, now=now
                ),
            )
        return seconds

    async def _end(self, claim: NodeClaim, failure: Failure) -> None:
        """The claim goes: there is no machine, and there will be none."""
        if await self._claims.delete(claim):
            count_disrupted(self._env.metrics, claim, reason=failure.word)

    async def _has_owner(self, claim: NodeClaim) -> bool:
        """Whether the pool that owns the claim is still there. Otherwise the claim is about to be collected."""
        state = self._env.state
        pools: dict[tuple[str, str], tuple[Kind[Any], Informer[Any, Any]]] = {
            (NODE_POOL.api_version, NODE_POOL.kind): (NODE_POOL, state.pools),
            (GROWTH_POOL.api_version, GROWTH_POOL.kind): (GROWTH_POOL, state.growth_pools),
        }
        for owner in claim.metadata.owner_references:
            if (owner.api_version, owner.kind) not in pools:
                continue
            kind, informer = pools[owner.api_version, owner.kind]
            if _stays(informer.store.get(owner.name), owner.uid):
                continue
            try:
                if not _stays(await self._env.api.get(kind, owner.name), owner.uid):
                    return False
            except NotFound:
                return False
        return True


def _stays(pool: Any, uid: str) -> bool:
    return pool is not None and pool.metadata.uid == uid and pool.metadata.deletion_timestamp is None
