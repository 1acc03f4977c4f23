"""What every cloud must be able to do for Growth. Errors are those of `growth.api.clouds`; nothing else may come out.

Crash safety rests on three promises of an implementation: names and tags derive from the claim, so that a repeated
`create` finds the first machine and answers with it; `list` answers wholly or raises `CloudUnavailable`; `delete` of a
machine that is gone says `MachineNotFound`.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final, Protocol

from growth.api import names
from growth.api.clouds import CloudMachine, RepairPolicy
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind

# As Karpenter's KWOK provider: a kubelet that has been silent so long will not come back.
REPAIRS: Final = (
    RepairPolicy(names.READY, "False", dt.timedelta(minutes=10)),
    RepairPolicy(names.READY, "Unknown", dt.timedelta(minutes=10)),
)


class CloudProvider(Protocol):
    """One cloud account, seen by one cluster: machines of other clusters are never shown and never touched."""

    @property
    def name(self) -> str:
        """In one word, for metrics and messages: kwok, hetzner, linode."""

    @property
    def node_classes(self) -> Sequence[Kind[Any]]:
        """The kinds of node classes that this cloud serves."""

    @property
    def guards_nodes(self) -> bool:
        """Whether Nodes register with the taint karpenter.sh/unregistered: its absence is a fault then, and told."""

    async def create(self, claim: NodeClaim) -> CloudMachine:
        """The machine of the claim: the cheapest offering that the claim allows and that can be had.

        Called again for the same claim it answers with the machine that it made before. Returns once the cloud has
        accepted; the machine may take long to come up.
        """

    async def delete(self, claim: NodeClaim) -> None:
        """Takes the claim's machine down. Returning means accepted: ask again until `MachineNotFound`."""

    async def get(self, provider_id: str) -> CloudMachine:
        """The machine as the cloud sees it now, or `MachineNotFound`."""

    async def list(self) -> Sequence[CloudMachine]:
        """Every machine of this cluster, those whose claim is gone included. The whole list or `CloudUnavailable`.

        Capacity that never had a claim, where a cloud sells such, is the provider's own to collect and is not shown.
        """

    async def catalogue(self) -> Catalogue:
        """What is sold now, with prices and stock; types without stock are listed as unavailable."""

    async def is_drifted(self, claim: NodeClaim) -> str:
        """Why the machine is no longer as its node class asks, in one CamelCase word; empty when it is."""

    def repair_policies(self) -> Sequence[RepairPolicy]:
        """Conditions of Nodes that mean a broken machine."""
