"""The sweep: list machines, then claims; judge; look again at each one; remove."""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Sequence
from typing import Final

from growth.api import names
from growth.api.clouds import CloudError, CloudMachine, CloudUnavailable, MachineNotFound
from growth.api.conditions import is_true
from growth.api.karpenter import (
    NODE_CLAIM,
    NodeClaim,
    NodeClaimSpec,
    NodeClaimStatus,
    NodeClassReference,
)
from growth.api.meta import ObjectMeta
from growth.api.nodes import NODE, Node
from growth.controllers import disrupted, fresh
from growth.controllers.collection.held import HeldBack
from growth.controllers.denials import Denials
from growth.controllers.environment import Environment
from growth.controllers.ownership import serves
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.whole import every
from growth.planning import collecting
from growth.planning.collecting import Sweep
from growth.providers.contract import CloudProvider
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Counter, Declaration, Gauge

_log = logger("collection")

HELD: Final = Gauge(
    "growth_collection_held",
    "Machines and NodeClaims that look like leaks and wait for people to confirm.",
    labels=("kind",),
)
UNREADABLE: Final = Gauge(
    "growth_collection_unreadable_machines", "Machines of this cluster of which nobody can tell whose they were."
)
COLLECTED: Final = Counter(
    "growth_collected_total",
    "Machines without a NodeClaim and NodeClaims without a machine that were removed.",
    labels=("kind",),
)
FAILED: Final = Counter(
    "growth_collection_failures_total", "Sweeps that ended early because something could not be listed or asked."
)
METRICS: Final[tuple[Declaration, ...]] = (HELD, UNREADABLE, COLLECTED, FAILED)

# How soon to look again while Nodes cannot be seen.
UNSYNCED_SECONDS: Final = 30.0

MACHINES: Final = "machine"
CLAIMS: Final = "nodeclaim"


class Collection:
    """Sweeps until cancelled, or until the gate is closed."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._held = HeldBack(env)
        # By provider ID: since when (monotonic) a machine has been known to have no claim.
        self._unclaimed: dict[str, float] = {}
        self._denials = Denials(env.clock, confirm=env.settings.collection_confirm)  # by the claim's UID
        # By the claim's UID: when (monotonic) the server first said that its Node is gone.
        self._nodeless: dict[str, float] = {}
        self._unreadable: tuple[str, ...] = ()

    async def run(self) -> None:
        state = self._env.state
        await state.nodes.wait_synced()
        while True:
            again = self._env.settings.collection_period
            try:
                again = await self._sweep()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CloudError) as error:
                # What cannot be listed is unknown, which is not nothing.
                self._env.metrics.add(FAILED)
                _log.warning("nothing is collected", error=str(error), again=again)
            except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                self._env.metrics.add(FAILED)
                _log.exception("a bug in us; collection waits", again=again)
            await asyncio.sleep(again)

    async def _sweep(self) -> float:
        """One sweep; in how many seconds the next one is due."""
        env, settings = self._env, self._env.settings
        if not env.state.nodes.synced:
            # Whether a machine has a Node that must be drained first is not known: see `_remove_machine`.
            _log.info("nothing is collected while Nodes cannot be seen", again=UNSYNCED_SECONDS)
            return UNSYNCED_SECONDS
        machines = await env.provider.list()
        claims = [each for each in await every(env.api, NODE_CLAIM) if serves(env.provider, each.spec.node_class_ref)]
        orphans = self._orphans(machines, claims)
        gone = [*await self._gone(collecting.without_machine(claims, machines)), *await self._without_node(claims)]
        gone = list({claim.metadata.uid: claim for claim in gone}.values())
        alive = sum(not machine.deleting for machine in machines)
        strange = sum(not env.launches.has_ended(machine.claim_uid) for machine in orphans)
        sweep = collecting.sweep(orphans, gone, machines=alive, claims=len(claims), strange=strange)
        why = sweep.why_held(few=settings.collection_few, share=settings.collection_share)
        held = bool(why) and not await self._held.confirmed(sweep)
        self._count_held(sweep if held else None)
        if held:
            await self._held.hold(sweep, why)
        elif sweep.empty:
            await self._held.nothing()
        else:
            for machine in orphans:
                await self._alone(self._remove_machine(machine), about=machine.provider_id)
            for claim in gone:
                await self._alone(self._remove_claim(claim), about=claim.metadata.name)
        if self._denials or self._nodeless:
            return min(settings.collection_period, settings.collection_confirm)
        return settings.collection_period

    async def _alone(self, removal: Awaitable[None], *, about: str) -> None:
        """One that fails harms only itself; the next sweep tries again."""
        try:
            await removal
        except (GateClosed, ConfigError):
            raise
        except (KubeError, CloudError) as error:
            self._env.metrics.add(FAILED)
            _log.warning("could not collect", about=about, error=str(error))

    def _count_held(self, sweep: Sweep | None) -> None:
        self._env.metrics.set(HELD, 0 if sweep is None else len(sweep.machines), kind=MACHINES)
        self._env.metrics.set(HELD, 0 if sweep is None else len(sweep.claims), kind=CLAIMS)

    # Machines without a claim.

    def _orphans(self, machines: Sequence[CloudMachine], claims: Sequence[NodeClaim]) -> Sequence[CloudMachine]:
        env = self._env
        now = env.clock.monotonic()
        found = collecting.unclaimed(
            machines,
            claims,
            now=env.clock.now(),
            grace=dt.timedelta(seconds=env.settings.collection_grace),
            seen_for={provider_id: now - since for provider_id, since in self._unclaimed.items()},
        )
        self._unclaimed = {
            each.provider_id: self._unclaimed.get(each.provider_id, now)
            for each in (*found.orphans, *found.young, *found.disputed, *found.nameless)
        }
        for each in found.disputed:
            _log.warning(
                "a machine without nodeclaim is left alone",
                machine=each.provider_id,
                claim=each.claim,
                why=each.disputed,
            )
        unreadable = tuple(each.provider_id for each in found.nameless)
        if unreadable and unreadable != self._unreadable:
            _log.warning("machines of unknown origin are left alone", machines=", ".join(unreadable))
        self._unreadable = unreadable
        env.metrics.set(UNREADABLE, len(unreadable))
        return found.orphans

    async def _remove_machine(self, machine: CloudMachine) -> None:
        """After a look at its claim. A machine whose Node is ours loses that first, so that its pods can leave in order."""
        env = self._env
        try:
            claim = await env.api.get(NODE_CLAIM, machine.claim)
            if machine.claim_uid in {"", claim.metadata.uid} or claim.status.provider_id == machine.provider_id:
                return
        except NotFound:
            pass
        for node in env.state.nodes.store.find("provider", machine.provider_id):
            if names.TERMINATION_FINALIZER in node.metadata.finalizers:
                await self._delete_node(node)
                return
        try:
            await env.provider.delete(stand_in(machine, env.provider))
        except MachineNotFound:
            return
        env.metrics.add(COLLECTED, kind=MACHINES)
        _log.info("collected machine without nodeclaim", provider_id=machine.provider_id, NodeClaim=machine.claim)

    async def _delete_node(self, node: Node) -> None:
        """Its end is `termination`'s work, and is waited for."""
        if node.metadata.deletion_timestamp is None:
            try:
                await self._env.api.delete(NODE, node.metadata.name, uid=node.metadata.uid)
            except (NotFound, Conflict):
                return

    # Claims without a machine.

    async def _gone(self, suspects: Sequence[NodeClaim]) -> Sequence[NodeClaim]:
        """Those of which the cloud has said twice, long enough apart, that there is no machine, and whose Node is not ready."""
        env = self._env
        found = []
        self._denials.keep(claim.metadata.uid for claim in suspects)
        for claim in suspects:
            uid = claim.metadata.uid
            try:
                await env.provider.get(claim.status.provider_id)
                self._denials.forget(uid)
            except MachineNotFound:
                if self._denials.deny(uid) and not await self._has_ready_node(claim):
                    found.append(claim)
            except CloudError as error:  # no answer: neither the first nor the second, nor a reason to forget
                if not isinstance(error, CloudUnavailable):
                    _log.warning("the cloud cannot tell of a machine", NodeClaim=claim.metadata.name, error=str(error))
        return found

    async def _has_ready_node(self, claim: NodeClaim) -> bool:
        """A kubelet that reports is a machine, whatever the cloud says."""
        return any(node.is_ready for node in await fresh.nodes_of(self._env, claim))

    # Claims without a Node.

    async def _without_node(self, claims: Sequence[NodeClaim]) -> Sequence[NodeClaim]:
        """Those whose Node was there and has been gone for long: somebody took it away, finalizer and all.

        No pod can come to such a machine any more, and nobody would ever find it empty.
        """
        env = self._env
        found = []
        nodeless: dict[str, float] = {}
        for claim in claims:
            uid, now = claim.metadata.uid, env.clock.monotonic()
            if claim.metadata.deletion_timestamp is not None or not claim.status.provider_id:
                continue
            if not is_true(claim.status.conditions, names.REGISTERED) or not claim.status.node_name:
                continue
            if env.state.nodes.store.find("provider", claim.status.provider_id) or await fresh.nodes_of(env, claim):
                continue
            nodeless[uid] = self._nodeless.get(uid, now)
            if now - nodeless[uid] >= env.settings.collection_confirm:
                found.append(claim)
        self._nodeless = nodeless
        return found

    async def _remove_claim(self, claim: NodeClaim) -> None:
        env = self._env
        try:
            found = await env.api.get(NODE_CLAIM, claim.metadata.name)
            if found.metadata.uid != claim.metadata.uid or found.metadata.deletion_timestamp is not None:
                return
            if found.status.provider_id != claim.status.provider_id:
                return
            nodes = await fresh.nodes_of(env, found)
            if any(node.is_ready for node in nodes) or (nodes and claim.metadata.uid not in self._denials):
                return
            await env.api.delete(NODE_CLAIM, claim.metadata.name, uid=claim.metadata.uid)
        except (NotFound, Conflict):
            return
        self._denials.forget(claim.metadata.uid)
        self._nodeless.pop(claim.metadata.uid, None)
        env.metrics.add(COLLECTED, kind=CLAIMS)
        disrupted.count_disrupted(env.metrics, claim, reason="garbage_collected")
        _log.info(
            "collected nodeclaim without machine or node",
            NodeClaim=claim.metadata.name,
            Node=claim.status.node_name,
            provider_id=claim.status.provider_id,
        )


def stand_in(machine: CloudMachine, provider: CloudProvider) -> NodeClaim:
    """A claim as the machine's own must have been: enough for the cloud to find it by name, UID and provider ID."""
    kind = provider.node_classes[0]
    return NodeClaim(
        metadata=ObjectMeta(name=machine.claim, uid=machine.claim_uid),
        spec=NodeClaimSpec(
            node_class_ref=NodeClassReference(group=kind.group, kind=kind.kind, name="default"), requirements=()
        ),
        status=NodeClaimStatus(provider_id=machine.provider_id),
    )
