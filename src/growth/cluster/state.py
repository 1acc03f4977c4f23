"""The cluster as the watches tell it: one informer a kind, what we wrote but have not seen yet, and snapshots of it all.

Only controllers that act read it; planning is handed an `Assembled` made here. Everything is for one event loop.
"""

import datetime as dt
from collections.abc import Sequence
from typing import Any, Final

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.core import NAMESPACE
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodeClassReference
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.volumes import CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, VOLUME_ATTACHMENT
from growth.api.workloads import DAEMON_SET
from growth.cluster.assemble import Assembled, Objects, assemble
from growth.cluster.pools import NodeClassView
from growth.cluster.shapes import Shapes
from growth.kube.api import Api
from growth.kube.informer import DEFAULT_SETTINGS, Informer, Informers, InformerSettings, Unsynced
from growth.kube.store import Change
from growth.ports import Clock, Random

# A claim that we created and that the watch has not shown after this long is no longer counted from our own memory.
EXPECTED_SECONDS: Final = 60.0


class State:
    """The informers are public: whoever needs one kind reads its `store` or subscribes to it."""

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        node_classes: Sequence[Kind[Any]] = (),
        settings: InformerSettings = DEFAULT_SETTINGS,
    ) -> None:
        self._clock = clock
        self._informers = informers = Informers(api, clock=clock, random=random, settings=settings)
        self.shapes = Shapes()
        self.pods = informers.watch_as(POD, self.shapes.keep, indexes={"node": lambda pod: (pod.node_name,)})
        self.nodes = informers.watch(NODE, indexes={"provider": lambda node: (node.spec.provider_id,)})
        self.claims = informers.watch(
            NODE_CLAIM,
            indexes={
                "provider": lambda claim: (claim.status.provider_id,),
                "pool": lambda claim: (claim.metadata.labels.get(names.NODE_POOL_LABEL, ""),),
            },
        )
        self.pools = informers.watch(NODE_POOL)
        self.overlays = informers.watch(NODE_OVERLAY)
        self.buffers = informers.watch(CAPACITY_BUFFER)
        self.growth_pools = informers.watch(GROWTH_POOL)
        self.node_requests = informers.watch(NODE_REQUEST)
        self.daemon_sets = informers.watch(DAEMON_SET)
        self.namespaces = informers.watch(NAMESPACE)
        self.disruption_budgets = informers.watch(POD_DISRUPTION_BUDGET)
        self.volume_claims = informers.watch(PERSISTENT_VOLUME_CLAIM)
        self.volumes = informers.watch(PERSISTENT_VOLUME)
        self.storage_classes = informers.watch(STORAGE_CLASS)
        self.csi_nodes = informers.watch(CSI_NODE)
        self.attachments = informers.watch(VOLUME_ATTACHMENT, indexes={"node": lambda each: (each.spec.node_name,)})
        self.node_classes: dict[Kind[Any], Informer[Any, Any]] = {kind: informers.watch(kind) for kind in node_classes}
        self.catalogue: Catalogue | None = None
        self._revision = 0
        self._expected: dict[str, tuple[NodeClaim, float]] = {}
        self._nominated: dict[str, float] = {}
        self.claims.subscribe(self._on_claim)

    async def run(self) -> None:
        """Follows the server until cancelled."""
        await self._informers.run()

    def unsynced(self) -> tuple[Unsynced, ...]:
        """What cannot be relied on and why; empty when everything can."""
        return self._informers.unsynced()

    @property
    def synced(self) -> bool:
        return not self.unsynced()

    async def wait_synced(self) -> None:
        await self._informers.wait_synced()

    # What we did and the watches have not told yet.

    def expect(self, claim: NodeClaim) -> None:
        """A claim that we just created counts from now on, whether or not the watch has shown it."""
        if self.claims.store.get(claim.metadata.name) is None:
            self._expected[claim.metadata.name] = (claim, self._clock.monotonic() + EXPECTED_SECONDS)

    def nominate(self, node: str, *, seconds: float) -> None:
        """Pods are about to come to this node (or to the node of this claim): it must not be disrupted until then."""
        self._nominated[node] = self._clock.monotonic() + seconds

    def nominated(self, node: str) -> bool:
        return self._nominated.get(node, 0.0) > self._clock.monotonic()

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        self._expected.pop(change.key[1], None)

    # Snapshots.

    def assembled(self, now: dt.datetime) -> Assembled:
        """Everything that planning reads, as of now. A catalogue must be known."""
        if self.catalogue is None:
            raise RuntimeError("what the cloud sells is not known yet: nothing can be planned")
        self._revision += 1
        return assemble(self.objects(), self.catalogue, now=now, revision=self._revision)

    def objects(self) -> Objects:
        now = self._clock.monotonic()
        self._expected = {name: told for name, told in self._expected.items() if told[1] > now}
        classes = {
            NodeClassReference(group=kind.group, kind=kind.kind, name=each.metadata.name): NodeClassView(
                conditions=each.status.conditions
            )
            for kind, informer in self.node_classes.items()
            for each in informer.store
        }
        return Objects(
            pods=tuple(self.pods.store),
            nodes=tuple(self.nodes.store),
            claims=(*self.claims.store, *(claim for claim, _ in self._expected.values())),
            pools=tuple(self.pools.store),
            growth_pools=tuple(self.growth_pools.store),
            node_requests=tuple(self.node_requests.store),
            node_classes=classes,
            daemon_sets=tuple(self.daemon_sets.store),
            namespaces=tuple(self.namespaces.store),
            volume_claims=tuple(self.volume_claims.store),
            volumes=tuple(self.volumes.store),
            storage_classes=tuple(self.storage_classes.store),
            csi_nodes=tuple(self.csi_nodes.store),
            attachments=tuple(self.attachments.store),
        )
