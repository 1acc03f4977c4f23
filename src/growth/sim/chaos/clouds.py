"""A cloud that lies: lists that are stale, partial or empty, machines that it says are gone, answers that get lost.

Its promises of `providers.contract` are kept in one point only: what it was asked to buy or delete it does. `list` is not
to be trusted here, and whoever deletes on its word alone loses machines.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from growth.api.clouds import CloudMachine, CloudUnavailable, MachineNotFound, RepairPolicy
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind
from growth.providers.contract import CloudProvider
from growth.sim.ports import SimRandom

# How old a stale list is at least.
STALE_SECONDS: Final = 60.0
SHARE_MISSING: Final = 0.3

Strike = Callable[[str], bool]
"""Whether a kind of fault strikes now; it is counted then."""


class LyingCloud:
    """A provider behind a bad cloud API. `strike` says what goes wrong; `denied` hears of machines that it denies."""

    def __init__(
        self,
        real: CloudProvider,
        *,
        strike: Strike,
        random: SimRandom,
        now: Callable[[], float],
        denied: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._real = real
        self._denied = denied
        self._strike = strike
        self._random = random
        self._now = now
        self._seen: list[tuple[float, Sequence[CloudMachine]]] = []

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def node_classes(self) -> Sequence[Kind[Any]]:
        return self._real.node_classes

    @property
    def guards_nodes(self) -> bool:
        return self._real.guards_nodes

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return self._real.repair_policies()

    async def is_drifted(self, claim: NodeClaim) -> str:
        return await self._real.is_drifted(claim)

    async def create(self, claim: NodeClaim) -> CloudMachine:
        if self._strike("cloud-error"):
            raise CloudUnavailable("503: the cloud is busy")
        machine = await self._real.create(claim)
        if self._strike("cloud-answer-lost"):
            raise CloudUnavailable("the connection broke before the answer was read")
        return machine

    async def delete(self, claim: NodeClaim) -> None:
        await self._real.delete(claim)
        if self._strike("cloud-answer-lost"):
            raise CloudUnavailable("the connection broke before the answer was read")

    async def get(self, provider_id: str) -> CloudMachine:
        machine = await self._real.get(provider_id)
        if self._strike("not-found"):
            self._denied(provider_id)
            raise MachineNotFound(f"404: there is no machine {provider_id}")
        return machine

    async def list(self) -> Sequence[CloudMachine]:
        machines = await self._real.list()
        now = self._now()
        self._seen = [(at, seen) for at, seen in self._seen if now - at < 10 * STALE_SECONDS] + [(now, machines)]
        old = next((seen for at, seen in self._seen if now - at >= STALE_SECONDS), None)
        if machines and self._strike("list-empty"):
            return ()
        if old is not None and self._strike("list-stale"):
            return old
        if machines and self._strike("list-partial"):
            return tuple(each for each in machines if not self._random.chance(SHARE_MISSING))
        return machines

    async def catalogue(self) -> Catalogue:
        return await self._real.catalogue()


def repriced(catalogue: Catalogue, factors: Mapping[str, float]) -> Catalogue:
    """The catalogue with other prices: factors by the type's name."""

    def priced(kind: InstanceType) -> InstanceType:
        factor = factors.get(kind.name, 1.0)
        offerings = tuple(
            each if each.price is None else dataclasses.replace(each, price=int(each.price * factor))
            for each in kind.offerings
        )
        return dataclasses.replace(kind, offerings=offerings)

    return dataclasses.replace(catalogue, types=tuple(map(priced, catalogue.types))) if factors else catalogue
