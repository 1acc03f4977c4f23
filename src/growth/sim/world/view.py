"""One cache of the cluster for all parts of the world that Growth does not play.

In a real cluster each of them follows the server by itself. Here they share the informers: what they would tell apart
is nothing that Growth can see, and a pod's news are read once instead of eight times.
"""

from collections.abc import Mapping
from typing import Any, Final

from growth.api.coordination import LEASE
from growth.api.core import NAMESPACE
from growth.api.nodes import NODE
from growth.api.pods import POD, Pod
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.volumes import (
    CSI_NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    VOLUME_ATTACHMENT,
)
from growth.api.workloads import DAEMON_SET, DEPLOYMENT, JOB, REPLICA_SET, STATEFUL_SET
from growth.kube.api import Api
from growth.kube.informer import Informer, Informers, Selection
from growth.kube.store import Index
from growth.ports import Clock, Random
from growth.providers.kwok.kubelets import LEASE_NAMESPACE
from growth.sim.world.templates import active_for, owner_uids, ready_for

POD_INDEXES: Final[Mapping[str, Index[Pod]]] = {
    "owner": owner_uids,
    # A ReplicaSet is looked at again with every change of one of its pods, however many it has: it only counts them.
    "active": active_for,
    "ready": ready_for,
    "node": lambda pod: (pod.spec.node_name,) if pod.spec.node_name else (),
    "namespace": lambda pod: (pod.metadata.namespace,),
}


class View:
    """`run` follows the server until cancelled; parts subscribe when they are made, and act once `synced` returns."""

    def __init__(self, api: Api, *, clock: Clock, random: Random) -> None:
        self._informers = Informers(api, clock=clock, random=random)
        watch = self._informers.watch
        self.pods = watch(POD, indexes=POD_INDEXES)
        self.nodes = watch(NODE)
        self.deployments = watch(DEPLOYMENT)
        self.replica_sets = watch(REPLICA_SET, indexes={"owner": owner_uids})
        self.stateful_sets = watch(STATEFUL_SET)
        self.daemon_sets = watch(DAEMON_SET)
        self.jobs = watch(JOB)
        self.budgets = watch(POD_DISRUPTION_BUDGET)
        self.namespaces = watch(NAMESPACE)
        self.claims = watch(PERSISTENT_VOLUME_CLAIM)
        self.volumes = watch(PERSISTENT_VOLUME)
        self.classes = watch(STORAGE_CLASS)
        self.attachments = watch(VOLUME_ATTACHMENT)
        self.csi_nodes = watch(CSI_NODE)
        self.leases = watch(LEASE, selection=Selection(namespace=LEASE_NAMESPACE))
        # Those that say how many pods there should be, by the kind of a pod's owner.
        self.scales: Mapping[str, Informer[Any, Any]] = {
            "ReplicaSet": self.replica_sets,
            "StatefulSet": self.stateful_sets,
            "Deployment": self.deployments,
        }

    async def run(self) -> None:
        await self._informers.run()

    async def synced(self) -> None:
        await self._informers.wait_synced()
