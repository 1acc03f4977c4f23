"""A cloud that does what a test says."""

import asyncio
import collections
from collections.abc import Sequence
from typing import Any

from growth.api.clouds import CloudError, CloudMachine, MachineNotFound, RepairPolicy
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.providers.catalogues import kwok

TYPE = "c-4x-amd64-linux"


class ScriptedCloud:
    """Machines by the uid of their claim, as the contract asks. `failures` are raised by the next creations, in turn."""

    name = "scripted"
    node_classes: Sequence[Kind[Any]] = (KWOK_NODE_CLASS,)
    guards_nodes = True

    def __init__(self) -> None:
        self.machines: dict[str, CloudMachine] = {}
        self.failures: list[Exception] = []
        self.always: Exception | None = None
        self.calls: collections.Counter[str] = collections.Counter()
        self.delays: dict[str, float] = {}
        self.sold: Catalogue = kwok.catalogue()
        self.drift: dict[str, str] = {}  # by the claim's name
        self.repairs: tuple[RepairPolicy, ...] = ()

    async def create(self, claim: NodeClaim) -> CloudMachine:
        self.calls["create"] += 1
        await asyncio.sleep(self.delays.get(claim.metadata.name, 0.01))
        if self.always is not None:
            raise self.always
        if self.failures:
            raise self.failures.pop(0)
        return self.machines.setdefault(claim.metadata.uid, self._machine(claim))

    def _machine(self, claim: NodeClaim) -> CloudMachine:
        (kind,) = (each for each in self.sold.types if each.name == TYPE)
        return CloudMachine(
            provider_id=f"scripted://{claim.metadata.name}",
            claim=claim.metadata.name,
            claim_uid=claim.metadata.uid,
            instance_type=TYPE,
            zone="test-zone-a",
            capacity_type="on-demand",
            image_id="image-1",
            labels={"kubernetes.io/arch": "amd64", "team": "the-provider"},
            capacity=kind.capacity,
            allocatable=kind.allocatable,
        )

    async def delete(self, claim: NodeClaim) -> None:
        if self.machines.pop(claim.metadata.uid, None) is None:
            raise MachineNotFound(f"no machine of {claim.metadata.name}")

    async def get(self, provider_id: str) -> CloudMachine:
        for machine in self.machines.values():
            if machine.provider_id == provider_id:
                return machine
        raise MachineNotFound(provider_id)

    async def list(self) -> Sequence[CloudMachine]:
        return tuple(self.machines.values())

    async def catalogue(self) -> Catalogue:
        self.calls["catalogue"] += 1
        if self.failures and isinstance(self.failures[0], CloudError):
            raise self.failures.pop(0)
        return self.sold

    async def is_drifted(self, claim: NodeClaim) -> str:
        self.calls["is_drifted"] += 1
        return self.drift.get(claim.metadata.name, "")

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return self.repairs
