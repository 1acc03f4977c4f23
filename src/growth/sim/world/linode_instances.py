"""Linode's cloud in the simulated world where machines are instances and no nodes of LKE: each is its claim's from the start."""

import dataclasses
from typing import Final

from growth.api import names
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.providers.kwok.records import Record
from growth.sim.clouds.linode.objects import Instance
from growth.sim.world.linode import LinodeHalf

# As user data tells a kubelet to register.
UNREGISTERED: Final[Json] = {"key": names.UNREGISTERED_TAINT, "effect": "NoExecute"}


class LinodeInstancesHalf(LinodeHalf):
    """The account has an LKE cluster too, of which nobody speaks."""

    def _told(self, what: str, instance: Instance) -> None:
        """A purchase comes with its tags."""
        super()._told("tagged" if what == "bought" else what, instance)

    def _record(self, instance: Instance, claim: NodeClaim) -> Record:
        record = super()._record(instance, claim)
        return dataclasses.replace(record, taints=(UNREGISTERED, *record.taints))
