"""The client's half of the KWOK cloud: `CloudProvider` on the machines' ConfigMaps.

Everything that a caller hears is an error of `growth.api.clouds`, or one that ends the process: the gate is closed, the
credentials cannot be used. What the API server fails to do is `CloudUnavailable`: unknown, which is not nothing.
"""

import asyncio
import collections
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    CreateError,
    InvariantViolation,
    MachineNotFound,
    NodeClassNotReady,
    RepairPolicy,
)
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS, KWOKNodeClass
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.whole import every
from growth.ports import Clock, Random
from growth.providers.choice import Choice, none_left, to_be_had
from growth.providers.contract import REPAIRS
from growth.providers.kwok import records
from growth.providers.kwok.faults import LOOK_SECONDS, FaultBook, Faults
from growth.providers.kwok.records import Record, State, Unreadable
from growth.providers.shortages import UNAVAILABLE_SECONDS, Shortages
from growth.units import Duration

# A write that somebody else forestalled is decided anew, but not for ever.
ATTEMPTS: Final = 3


class KwokProvider:
    """One per process. `api` writes as user `growth-kwok` and stands behind the lease's gate."""

    name: Final = "kwok"
    node_classes: Final[Sequence[Kind[Any]]] = (KWOK_NODE_CLASS,)
    guards_nodes: Final = True

    def __init__(
        self,
        api: Api,
        *,
        catalogue: Catalogue,
        cluster: str,
        namespace: str,
        clock: Clock,
        random: Random,
        faults: FaultBook | None = None,
        refused_seconds: float = UNAVAILABLE_SECONDS,
    ) -> None:
        self.faults = faults or FaultBook(api, namespace=namespace, clock=clock)
        self._api = api
        self._catalogue = catalogue
        self._cluster = cluster
        self._namespace = namespace
        self._clock = clock
        self._random = random
        self._classes: dict[str, tuple[KWOKNodeClass, float]] = {}
        self._shortages = Shortages(clock, seconds=refused_seconds)
        self._reserving = asyncio.Lock()

    def sell(self, catalogue: Catalogue) -> None:
        """From now on this is sold: clouds change their prices."""
        self._catalogue = catalogue

    async def create(self, claim: NodeClaim) -> CloudMachine:
        async with self._answering() as faults:
            node_class = await self._node_class(claim)
            known = await self._existing(claim)
            if known is not None:
                return records.machine(known)
            options = to_be_had(claim, self._catalogue, self._shortages)
            for option in options:
                if faults.lacks(option.key, now=self._clock.now()):
                    self._shortages.add((option.key,))
                    continue
                if option.offering.reservation:
                    async with self._reserving:
                        if await self._taken(option.offering.reservation) >= option.offering.reservation_capacity:
                            continue
                        return await self._make(claim, option, node_class)
                return await self._make(claim, option, node_class)
            raise none_left(claim, options)

    async def delete(self, claim: NodeClaim) -> None:
        name, uid = claim.metadata.name, claim.metadata.uid
        provider_id = claim.status.provider_id
        if provider_id and provider_id != records.provider_id_of(name):
            raise InvariantViolation(
                f"claim {name} has the machine {provider_id}, which is not one that it can have here"
            )
        async with self._answering() as faults:
            for _ in range(ATTEMPTS):
                item = await self._record(name)
                if not faults.may_be_deleted(name, item.data.get("instanceType", "")):
                    raise CloudError(f"the simulated cloud was told to refuse the deletion of {name}")
                if uid and item.data.get("claimUID", uid) != uid:
                    raise MachineNotFound(
                        f"the machine of claim {name} ({uid}) is gone: another claim has its name now"
                    )
                if item.data.get("state") == State.DELETING:
                    return
                with contextlib.suppress(Conflict):
                    await self._api.patch(
                        CONFIG_MAP,
                        item.metadata.name,
                        {"data": {"state": State.DELETING.value}},
                        namespace=self._namespace,
                        uid=item.metadata.uid,
                        revision=item.metadata.resource_version,
                    )
                    return
            raise CloudUnavailable(f"the machine of claim {name} is being changed by somebody else: try again")

    async def get(self, provider_id: str) -> CloudMachine:
        claim = records.claim_of(provider_id)
        if not claim:
            raise InvariantViolation(
                f"{provider_id!r} is no machine of this cloud: its provider IDs begin with kwok://"
            )
        async with self._answering():
            return _shown(await self._record(claim))

    async def list(self) -> Sequence[CloudMachine]:
        async with self._answering():
            return tuple(_shown(item) for item in await self._records())

    async def catalogue(self) -> Catalogue:
        async with self._answering():
            catalogue = self._catalogue
            if any(offering.reservation for kind in catalogue.types for offering in kind.offerings):
                taken = collections.Counter(item.data.get("reservation", "") for item in await self._records())
                types = tuple(_with_places_left(kind, taken) for kind in catalogue.types)
                catalogue = dataclasses.replace(catalogue, types=types)
            return self._shortages.laid_over(catalogue)

    async def is_drifted(self, claim: NodeClaim) -> str:  # noqa: ARG002 - simulated machines never drift
        return ""

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return REPAIRS

    # Buying.

    async def _make(self, claim: NodeClaim, option: Choice, node_class: KWOKNodeClass) -> CloudMachine:
        delay = Duration.parse(node_class.spec.node_registration_delay or "0s").timedelta
        record = records.new_record(claim, option, registers_at=self._clock.now() + delay)
        body = records.config_map(record, cluster=self._cluster)
        try:
            made = await self._api.create(CONFIG_MAP, body, namespace=self._namespace)
        except AlreadyExists:
            # Our own earlier attempt, whose answer was lost, or another claim's machine.
            known = await self._existing(claim)
            if known is None:
                raise CloudUnavailable(f"the machine of claim {claim.metadata.name} came and went: try again") from None
            return records.machine(known)
        return records.machine(records.read(made))

    async def _existing(self, claim: NodeClaim) -> Record | None:
        """The machine that the claim has already; None when its name is free."""
        name, uid = claim.metadata.name, claim.metadata.uid
        try:
            record = records.read(await self._record(name))
        except MachineNotFound:
            return None
        except Unreadable as error:
            raise InvariantViolation(f"claim {name} has a machine that cannot be read: {error}") from error
        if record.state is State.DELETING:
            raise CreateError(
                f"the name of claim {name} is still taken by a machine that is being deleted", reason="NameTaken"
            )
        if record.claim_uid != uid:
            raise InvariantViolation(
                f"the name of claim {name} ({uid}) is taken by the machine of another claim ({record.claim_uid})"
            )
        return record

    async def _node_class(self, claim: NodeClaim) -> KWOKNodeClass:
        reference = claim.spec.node_class_ref
        if (reference.group, reference.kind) != (KWOK_NODE_CLASS.group, KWOK_NODE_CLASS.kind):
            raise NodeClassNotReady(
                f"{reference.kind} of group {reference.group} is not served by the KWOK provider: "
                f"use {KWOK_NODE_CLASS.kind} of {KWOK_NODE_CLASS.group}"
            )
        now = self._clock.monotonic()
        known = self._classes.get(reference.name)
        if known is None or known[1] <= now:
            try:
                found = await self._api.get(KWOK_NODE_CLASS, reference.name)
            except NotFound:
                self._classes.pop(reference.name, None)
                raise NodeClassNotReady(f"there is no {KWOK_NODE_CLASS.kind} {reference.name!r}") from None
            known = self._classes[reference.name] = (found, now + LOOK_SECONDS)
        node_class = known[0]
        if node_class.metadata.deletion_timestamp is not None:
            raise NodeClassNotReady(f"{KWOK_NODE_CLASS.kind} {reference.name!r} is being deleted")
        ready = next((each for each in node_class.status.conditions if each.type == names.READY), None)
        if ready is not None and ready.status != "True":
            raise NodeClassNotReady(f"{KWOK_NODE_CLASS.kind} {reference.name!r} is not ready: {ready.message}")
        return node_class

    async def _taken(self, reservation: str) -> int:
        return sum(item.data.get("reservation") == reservation for item in await self._records())

    # Records.

    async def _record(self, claim: str) -> ConfigMap:
        try:
            item = await self._api.get(CONFIG_MAP, records.record_name(claim), namespace=self._namespace)
        except NotFound:
            raise MachineNotFound(f"there is no machine {records.provider_id_of(claim)}") from None
        owner = item.metadata.labels.get(names.KWOK_MACHINE_LABEL, "")
        if owner != self._cluster:
            raise InvariantViolation(
                f"ConfigMap {self._namespace}/{item.metadata.name} is no machine of this cluster: "
                f"its label {names.KWOK_MACHINE_LABEL} is {owner!r}, not {self._cluster!r}"
            )
        return item

    async def _records(self) -> Sequence[ConfigMap]:
        mine = f"{names.KWOK_MACHINE_LABEL}={self._cluster}"
        return await every(self._api, CONFIG_MAP, namespace=self._namespace, labels=mine)

    @contextlib.asynccontextmanager
    async def _answering(self) -> AsyncIterator[Faults]:
        """One call of the cloud: its errors in our words, and what was made to go wrong with it."""
        try:
            faults = await self.faults.current()
            if faults.slow_answers:
                await asyncio.sleep(faults.slow_answers)
            if faults.unavailable:
                raise CloudUnavailable("the simulated cloud was told to be unavailable")
            yield faults
        except (GateClosed, ConfigError):
            raise
        except KubeError as error:
            raise CloudUnavailable(f"the machines' ConfigMaps cannot be used: {error}") from error
        if faults.lost_answers and self._random.uniform(0.0, 1.0) < faults.lost_answers:
            raise CloudUnavailable("the simulated cloud did what was asked and lost the answer")


def _shown(item: ConfigMap) -> CloudMachine:
    try:
        return records.machine(records.read(item))
    except Unreadable:
        return records.unreadable_machine(item)


def _with_places_left(kind: InstanceType, taken: collections.Counter[str]) -> InstanceType:
    def renewed(offering: Offering) -> Offering:
        if not offering.reservation:
            return offering
        left = max(0, offering.reservation_capacity - taken[offering.reservation])
        return dataclasses.replace(offering, reservation_capacity=left, available=offering.available and left > 0)

    return dataclasses.replace(kind, offerings=tuple(map(renewed, kind.offerings)))
