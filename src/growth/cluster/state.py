"""The cluster as the watches tell it: one informer a kind, what we did and have not seen yet, and pictures of it all.

Only controllers that act read it; planning is handed what is made of a `Picture`. Everything is for one event loop. A
picture costs what has changed since the last one; the rest of the work (`assemble.composed`) is pure and may be done on
another thread.
"""

import asyncio
import datetime as dt
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from growth.api import names
from growth.api.buffers import CAPACITY_BUFFER
from growth.api.core import NAMESPACE
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST, NODE_REQUEST, GrowthPool
from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim, NodeClassReference, NodePool
from growth.api.kinds import Kind
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD, Pod
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.volumes import CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, VOLUME_ATTACHMENT
from growth.api.workloads import DAEMON_SET
from growth.cluster.assemble import Assembled, Picture, composed, namespace_labels, volumes_view
from growth.cluster.attachments import Attachments
from growth.cluster.census import Census, CensusStatistics, host_of
from growth.cluster.counting import Counted
from growth.cluster.daemons import newer, newest_pods, owner_key, sample
from growth.cluster.machines import Machine, types_of
from growth.cluster.node_requests import claim_name, claims_to_come
from growth.cluster.pools import Market, NodeClassView
from growth.cluster.promises import Promises
from growth.cluster.reserved_names import ReservedNames
from growth.cluster.shapes import CachedPod, PodShape, Shapes
from growth.cluster.snapshot import Demand, VolumesView
from growth.cluster.wanting import is_done
from growth.kube.api import Api
from growth.kube.informer import DEFAULT_SETTINGS, Informer, Informers, InformerSettings, Unsynced
from growth.kube.store import Change, Deleted
from growth.ports import Clock, Random
from growth.providers.sizes import learned_sizes

# A claim that we created and that the watch has not shown after this long is worth a look at the server.
EXPECTED_SECONDS: Final = 60.0
# How often shapes that no pod has any more are forgotten.
FORGET_SECONDS: Final = 600.0


class State:
    """The informers are public: whoever needs one kind reads its `store` or subscribes to it.

    Kinds that a cluster may well not have (overlays, buffers, growth pools, node classes) count as empty where their
    definitions are not installed.
    """

    def __init__(
        self,
        api: Api,
        *,
        clock: Clock,
        random: Random,
        node_classes: Sequence[Kind[Any]] = (),
        settings: InformerSettings = DEFAULT_SETTINGS,
        any_cluster: bool = False,
    ) -> None:
        """`any_cluster`: also one without Karpenter's kinds, for those who only look on; else it is never synced there."""
        self._clock = clock
        self._informers = informers = Informers(api, clock=clock, random=random, settings=settings)
        self.shapes = Shapes()
        self.pods = informers.watch_as(
            POD, self.shapes.keep, indexes={"node": lambda pod: (pod.node_name,), "daemon set": _daemon_set_of}
        )
        self.promises = Promises(self.pods.store)
        self.nodes = informers.watch(NODE, indexes={"provider": lambda node: (node.spec.provider_id,)})
        self.claims = informers.watch(
            NODE_CLAIM,
            optional=any_cluster,
            indexes={
                "provider": lambda claim: (claim.status.provider_id,),
                "pool": lambda claim: (claim.metadata.labels.get(names.NODE_POOL_LABEL, ""),),
                "growth pool": lambda claim: (claim.metadata.labels.get(names.POOL_LABEL, ""),),
                "growth type": _growth_types,
                "host": lambda claim: (host_of(claim),),
            },
        )
        self.pools = informers.watch(NODE_POOL, optional=any_cluster)
        self.overlays = informers.watch(NODE_OVERLAY, optional=True)
        self.buffers = informers.watch(CAPACITY_BUFFER, optional=True)
        self.growth_pools = informers.watch(GROWTH_POOL, optional=True)
        self.node_requests = informers.watch(
            NODE_REQUEST,
            optional=True,
            indexes={
                "pool": lambda request: (request.spec.pool,),
                "claim": lambda request: (claim_name(request.metadata.name),),
            },
        )
        self.node_removals = informers.watch(NODE_REMOVAL_REQUEST, optional=True)
        self.daemon_sets = informers.watch(DAEMON_SET)
        self.namespaces = informers.watch(NAMESPACE)
        self.disruption_budgets = informers.watch(POD_DISRUPTION_BUDGET)
        self.volume_claims = informers.watch(PERSISTENT_VOLUME_CLAIM)
        self.volumes = informers.watch(PERSISTENT_VOLUME)
        self.storage_classes = informers.watch(STORAGE_CLASS)
        self.csi_nodes = informers.watch(CSI_NODE)
        self.attachments = informers.watch(VOLUME_ATTACHMENT, indexes={"node": lambda each: (each.spec.node_name,)})
        self.node_classes: dict[Kind[Any], Informer[Any, Any]] = {
            kind: informers.watch(kind, optional=True) for kind in node_classes
        }
        self._catalogue: Catalogue | None = None
        self._revision = 0
        self._expected: dict[str, tuple[NodeClaim, float]] = {}
        self._nominated: dict[str, float] = {}
        self._kept: frozenset[str] = frozenset()
        self.buffered: tuple[Demand, ...] = ()
        self.reserved_names = ReservedNames(clock)
        self._census = Census(nodes=self.nodes, claims=self.claims, pods=self.pods, attachments=self.attachments)
        self._newest: dict[tuple[str, str], CachedPod] = {}
        self._attachments: Attachments | None = None
        self._volumes = VolumesView()
        self._namespaces: Mapping[str, Mapping[str, str]] | None = None
        self._changes = 0
        self._watch_changes()

    # Following the server.

    async def run(self) -> None:
        """Follows the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run(), name="informers")
            group.create_task(self._forget(), name="forget shapes")

    async def _forget(self) -> None:
        while True:
            await asyncio.sleep(FORGET_SECONDS)
            self.shapes.forget_unused(self.pods.store)

    def unsynced(self) -> tuple[Unsynced, ...]:
        """What cannot be relied on and why; empty when everything can."""
        return self._informers.unsynced()

    @property
    def synced(self) -> bool:
        return not self.unsynced()

    async def wait_synced(self) -> None:
        await self._informers.wait_synced()

    @property
    def changes(self) -> int:
        """Grows with everything that could make another plan. Equal numbers: a plan would be the same."""
        return self._changes

    def statistics(self) -> CensusStatistics:
        return self._census.statistics()

    # What the cloud sells.

    @property
    def catalogue(self) -> Catalogue | None:
        """None until somebody has asked the cloud."""
        return self._catalogue

    @catalogue.setter
    def catalogue(self, catalogue: Catalogue) -> None:
        if catalogue == self._catalogue:
            return
        self._catalogue = catalogue
        self._changes += 1
        self._census.catalogue_changed(catalogue)

    # What we did and the watches have not told yet.

    def expect(self, claim: NodeClaim) -> None:
        """A claim that we just created counts from now on, whether or not the watch has shown it.

        It counts until the watch shows it or somebody has looked and says that it is not there (`unexpect`).
        """
        if self.claims.store.get(claim.metadata.name) is None:
            self._expected[claim.metadata.name] = (claim, self._clock.monotonic() + EXPECTED_SECONDS)
            self._changes += 1

    def overdue(self) -> tuple[str, ...]:
        """Claims that should have been shown long ago: ask the server, then `expect` again or `unexpect`."""
        now = self._clock.monotonic()
        return tuple(name for name, (_, until) in self._expected.items() if until <= now)

    def unexpect(self, name: str) -> None:
        """The server says that there is no such claim."""
        if self._expected.pop(name, None) is not None:
            self._changes += 1

    def nominate(self, node: str, *, seconds: float) -> None:
        """Pods are about to come to this node (or to the node of this claim): it must not be disrupted until then."""
        self._nominated[node] = self._clock.monotonic() + seconds

    def keep_for_buffers(self, nodes: Collection[str]) -> None:
        """The nodes (and claims) whose room is kept for capacity buffers, until the next call."""
        self._kept = frozenset(nodes)

    def leave_room(self, pods: Sequence[Demand]) -> None:
        """The pods that capacity buffers stand for, until the next call: what is moved must leave them their room."""
        self.buffered = tuple(pods)
        self._changes += 1

    def kept_for_buffer(self, node: str) -> bool:
        return node in self._kept

    def nominated(self, *names: str) -> bool:
        """Whether a node is wanted although no pod may be there, by its names: its own and that of its claim."""
        now = self._clock.monotonic()
        return any(name in self._kept or self._nominated.get(name, 0.0) > now for name in names)

    # Pictures.

    def assembled(self, now: dt.datetime) -> Assembled:
        """Everything that planning reads, as of now, every pod without a node included. A catalogue must be known."""
        return composed(self.picture(now))

    def picture(self, now: dt.datetime, *, held: Mapping[str, Sequence[PodShape]] | None = None) -> Picture:
        """The cluster as of now, to be handed to `assemble.composed`. A catalogue must be known."""
        if self._catalogue is None:
            raise RuntimeError("what the cloud sells is not known yet: nothing can be planned")
        self._revision += 1
        self._expect_claims()
        pods = self.pods.store
        counted = self._census.count(self._attached())
        return Picture(
            catalogue=self._catalogue,
            now=now,
            revision=self._revision,
            counted=counted,
            pending=pods.find("node", ""),
            lost=sum(
                not is_done(pod)
                for name in pods.values_of("node")
                if name and name not in counted
                for pod in pods.find("node", name)
            ),
            held=held or {},
            given_up=self.reserved_names.given_up(),
            pools=tuple(self.pools.store),
            growth_pools=tuple(self.growth_pools.store),
            node_requests=tuple(self.node_requests.store),
            node_classes=self.classes(),
            overlays=tuple(self.overlays.store),
            daemons=self._samples(),
            volumes=self._volumes,
            namespaces=self._namespace_labels(),
        )

    def corrected(self, machine: Machine, pods: Sequence[CachedPod]) -> Counted:
        """A machine as pictures would show it if these were its pods: for those who have looked afresh."""
        return self._census.corrected(machine, pods, self._attached())

    def _expect_claims(self) -> None:
        now = self._clock.monotonic()
        self._nominated = {name: until for name, until in self._nominated.items() if until > now}
        expected = {name: claim for name, (claim, _) in self._expected.items()}
        if len(self.node_requests.store):
            pools = {pool.metadata.name: pool for pool in self.growth_pools.store}
            for claim in claims_to_come(self.node_requests.store, self.claims.store, pools):
                expected.setdefault(claim.metadata.name, claim)
        self._census.expect(expected)

    def _attached(self) -> Attachments:
        if self._attachments is None:
            self._volumes = volumes_view(
                claims=self.volume_claims.store,
                volumes=self.volumes.store,
                classes=self.storage_classes.store,
                csi_nodes=self.csi_nodes.store,
            )
            self._attachments = Attachments(self._volumes, self.attachments.store)
        return self._attachments

    def types_for(self, uses: NodeClassReference | None, now: dt.datetime) -> tuple[InstanceType, ...]:
        """What machines of a node class can be, where they can be bought. A catalogue must be known."""
        assert self._catalogue is not None, "what the cloud sells is not known yet"
        return Market(self._catalogue, self.classes(), now).types_for(uses)

    def classes(self) -> dict[NodeClassReference, NodeClassView]:
        """What matters of every node class that is known."""
        return {
            NodeClassReference(group=kind.group, kind=kind.kind, name=each.metadata.name): NodeClassView(
                conditions=each.status.conditions,
                zones=each.spec.locations if kind == HETZNER_NODE_CLASS else (),
                sizes=learned_sizes(kind, each),
                generation=each.metadata.generation,
            )
            for kind, informer in self.node_classes.items()
            for each in informer.store
        }

    def _samples(self) -> tuple[Pod, ...]:
        return tuple(
            sample(each, self._newest.get((each.metadata.namespace, each.metadata.name)))
            for each in self.daemon_sets.store
            if each.metadata.deletion_timestamp is None
        )

    def _namespace_labels(self) -> Mapping[str, Mapping[str, str]]:
        if self._namespaces is None:
            self._namespaces = namespace_labels(self.namespaces.store)
        return self._namespaces

    # News.

    def _watch_changes(self) -> None:
        self.claims.subscribe(self._on_claim)
        self.pools.subscribe(self._on_pool)
        self.growth_pools.subscribe(self._on_pool)
        self.pods.subscribe(self._on_pod)
        self.attachments.subscribe(self._on_attachment)
        for volume in (self.volume_claims, self.volumes, self.storage_classes):
            volume.subscribe(self._on_volume)
        self.csi_nodes.subscribe(self._on_attachment)
        self.namespaces.subscribe(self._on_namespace)
        others: tuple[Informer[Any, Any], ...] = (
            *(self.nodes, self.pools, self.overlays, self.growth_pools, self.node_requests, self.node_removals),
            self.daemon_sets,
            *self.node_classes.values(),
        )
        for informer in others:
            informer.subscribe(self._on_other)

    def _on_other(self, _change: Change[Any]) -> None:
        self._changes += 1

    def _on_pool(self, change: Change[NodePool] | Change[GrowthPool]) -> None:
        if not isinstance(change, Deleted):
            self.reserved_names.read(change.new.metadata)

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        self._changes += 1
        self._expected.pop(change.key[1], None)

    def _on_pod(self, change: Change[CachedPod]) -> None:
        self._changes += 1
        gone = isinstance(change, Deleted)
        pod = change.old if isinstance(change, Deleted) else change.new
        key = owner_key(pod)
        if key is None:
            return
        known = self._newest.get(key)
        if gone:
            if known is not None and known.uid == pod.uid:
                self._newest.pop(key)
                self._newest.update(newest_pods(self.pods.store.find("daemon set", f"{key[0]}/{key[1]}")))
        elif newer(pod, known) or (known is not None and known.uid == pod.uid):
            self._newest[key] = pod

    def _on_volume(self, _change: Change[Any]) -> None:
        self._changes += 1
        self._attachments = None
        self._census.volumes_changed()

    def _on_attachment(self, _change: Change[Any]) -> None:
        self._changes += 1
        self._attachments = None

    def _on_namespace(self, _change: Change[Any]) -> None:
        self._changes += 1
        self._namespaces = None


def _daemon_set_of(pod: CachedPod) -> tuple[str, ...]:
    key = owner_key(pod)
    return () if key is None else (f"{key[0]}/{key[1]}",)


def _growth_types(claim: NodeClaim) -> tuple[str, ...]:
    """`pool/type` for each type that a claim of a growth pool is or may become."""
    pool = claim.metadata.labels.get(names.POOL_LABEL)
    return () if pool is None else tuple({f"{pool}/{each}" for each in types_of(claim)})
