"""Every machine of the cluster, counted; only what changed is counted again.

Nodes and claims are one machine when they share a provider ID, or for a while a name (`cluster.machines`). A change of
one of them is a question about those that share an ID or a name with it, and about no other: so a change costs the same
in a cluster of five nodes and of five thousand. Pods change the machine that they are bound to, volumes the machines
whose pods use some, and the catalogue the machines of the types that it changed.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from growth.api.instance_types import Catalogue, InstanceType
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.volumes import VolumeAttachment
from growth.cluster.attachments import Attachments
from growth.cluster.counting import Books, Counted
from growth.cluster.machines import Machine, machines
from growth.cluster.pricing import by_name, type_of
from growth.cluster.shapes import CachedPod
from growth.kube.informer import Informer
from growth.kube.store import Added, Change, Changed, Deleted

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CensusStatistics:
    """How often machines were matched and counted since the start."""

    machines: int
    matched: int
    counted: int


class Census:
    """Follows the informers that it is given. The stores need the indexes `provider` and `host` (nodes: `provider`).

    `host` of a claim is the name of the Node that it would be matched with by name.
    """

    def __init__(
        self,
        *,
        nodes: Informer[Node, Node],
        claims: Informer[NodeClaim, NodeClaim],
        pods: Informer[Pod, CachedPod],
        attachments: Informer[VolumeAttachment, VolumeAttachment],
    ) -> None:
        self._nodes, self._claims, self._pods = nodes.store, claims.store, pods.store
        self._books = Books()
        self._types: Mapping[str, InstanceType] = {}
        self._extra: dict[str, NodeClaim] = {}
        self._counted: dict[str, Counted] = {}
        self._of_node: dict[str, str] = {}  # name of the machine, by the name of its Node
        self._of_claim: dict[str, str] = {}
        self._with_volumes: set[str] = set()  # machines whose pods use volumes
        # What is to be matched anew, and which Nodes' pods are to be counted anew.
        self._hosts: set[str] = set()
        self._providers: set[str] = set()
        self._claim_names: set[str] = set()
        self._recount: set[str] = set()
        self._matches = self._counts = 0
        nodes.subscribe(self._on_node)
        claims.subscribe(self._on_claim)
        pods.subscribe(self._on_pod)
        attachments.subscribe(self._on_attachment)

    def statistics(self) -> CensusStatistics:
        return CensusStatistics(machines=len(self._counted), matched=self._matches, counted=self._counts)

    # News.

    def _on_node(self, change: Change[Node]) -> None:
        self._hosts.add(change.key[1])
        for node in _both(change):
            if node.spec.provider_id:
                self._providers.add(node.spec.provider_id)

    def _on_claim(self, change: Change[NodeClaim]) -> None:
        self._touch(change.key[1], _both(change))

    def _on_pod(self, change: Change[CachedPod]) -> None:
        if isinstance(change, Changed) and _holds_the_same(change.old, change.new):
            return
        for pod in _both(change):
            if pod.node_name:
                self._recount.add(pod.node_name)

    def _on_attachment(self, change: Change[VolumeAttachment]) -> None:
        for attachment in _both(change):
            self._recount.add(attachment.spec.node_name)

    def volumes_changed(self) -> None:
        """Volumes, claims of volumes or storage classes are others now."""
        self._recount |= self._with_volumes

    def catalogue_changed(self, catalogue: Catalogue) -> None:
        """The machines whose type changed, and those that are not bought yet, are counted anew."""
        before, self._types = self._types, by_name(catalogue.types)
        changed = {
            name
            for name in before.keys() | self._types.keys()
            if not _same_machine(before.get(name), self._types.get(name))
        }
        for name, counted in self._counted.items():
            machine = counted.machine
            if machine.claim is not None and not machine.claim.status.capacity:
                self._claim_names.add(machine.claim.metadata.name)
            elif changed:
                kind = type_of(machine.labels, before) or type_of(machine.labels, self._types)
                if kind is not None and kind.name.lower() in changed:
                    self._recount.add(name)

    def expect(self, claims: Mapping[str, NodeClaim]) -> None:
        """Claims that count although no watch has shown them, by name; those given before and not now are dropped."""
        for name in self._extra.keys() | claims.keys():
            if self._extra.get(name) is not claims.get(name):
                self._touch(name, [each for each in (self._extra.get(name), claims.get(name)) if each is not None])
        self._extra = dict(claims)

    def _touch(self, name: str, claims: Iterable[NodeClaim]) -> None:
        self._claim_names.add(name)
        for claim in claims:
            self._hosts.add(host_of(claim))
            if claim.status.provider_id:
                self._providers.add(claim.status.provider_id)

    # The count.

    def count(self, attachments: Attachments) -> dict[str, Counted]:
        """Every machine by its name, as of now. The mapping is the caller's own."""
        if self._hosts or self._claim_names or self._providers:
            self._match()
        for name in self._recount:
            machine = self._of_node.get(name, name)
            if machine in self._counted:
                self._enter(self._counted[machine].machine, attachments)
        self._recount.clear()
        return self._counted.copy()

    def corrected(self, machine: Machine, pods: Sequence[CachedPod], attachments: Attachments) -> Counted:
        """The machine as it would be counted with these pods on it; nothing is remembered of it."""
        return self._books.count(machine, pods, attachments=attachments, types=self._types)

    def _match(self) -> None:
        """Matches what was touched anew, with everything that shares a name or an ID with it."""
        nodes, claims = self._related()
        gone = {self._of_node.pop(name, "") for name in self._hosts}
        gone |= {self._of_claim.pop(name, "") for name in self._claim_names}
        for name in gone:
            self._counted.pop(name, None)
            self._with_volumes.discard(name)
        for machine in machines(nodes, claims, self._types):
            self._matches += 1
            if machine.node is not None:
                self._of_node[machine.node.metadata.name] = machine.name
            if machine.claim is not None:
                self._of_claim[machine.claim.metadata.name] = machine.name
            self._counted[machine.name] = Counted(machine, None)
            self._recount.add(machine.name)
        for touched in (self._hosts, self._claim_names, self._providers):
            touched.clear()

    def _related(self) -> tuple[list[Node], list[NodeClaim]]:
        """The Nodes and claims that are touched, and all that could be matched with one of them now or before."""
        hosts, names, providers = list(self._hosts), list(self._claim_names), list(self._providers)

        def host(name: str) -> None:
            if name and name not in self._hosts:
                self._hosts.add(name)
                hosts.append(name)

        def claimed(name: str) -> None:
            if name and name not in self._claim_names:
                self._claim_names.add(name)
                names.append(name)

        def provider(identity: str) -> None:
            if identity and identity not in self._providers:
                self._providers.add(identity)
                providers.append(identity)

        nodes: list[Node] = []
        claims: list[NodeClaim] = []
        while hosts or names or providers:
            while hosts:
                name = hosts.pop()
                node = self._nodes.get(name)
                if node is not None:
                    nodes.append(node)
                    provider(node.spec.provider_id)
                claimed(self._former_claim(self._of_node.get(name)))
                for claim in self._claims.find("host", name):
                    claimed(claim.metadata.name)
                claimed(name)  # a claim of that name is called otherwise where the Node is another machine's
            while names:
                name = names.pop()
                held = self._claims.get(name) or self._extra.get(name)
                if held is not None:
                    claims.append(held)
                    host(host_of(held))
                    provider(held.status.provider_id)
                host(name)
                host(self._former_node(self._of_claim.get(name)))
            while providers:
                identity = providers.pop()
                for found in self._nodes.find("provider", identity):
                    host(found.metadata.name)
                for claim in self._claims.find("provider", identity):
                    claimed(claim.metadata.name)
        return nodes, claims

    def _former_claim(self, machine: str | None) -> str:
        counted = self._counted.get(machine) if machine is not None else None
        claim = counted.machine.claim if counted is not None else None
        return claim.metadata.name if claim is not None else ""

    def _former_node(self, machine: str | None) -> str:
        counted = self._counted.get(machine) if machine is not None else None
        node = counted.machine.node if counted is not None else None
        return node.metadata.name if node is not None else ""

    def _enter(self, machine: Machine, attachments: Attachments) -> None:
        pods = self._pods.find("node", machine.name)
        self._counts += 1
        self._counted[machine.name] = self._books.count(machine, pods, attachments=attachments, types=self._types)
        if any(pod.shape.spec.volumes for pod in pods):
            self._with_volumes.add(machine.name)
        else:
            self._with_volumes.discard(machine.name)


def host_of(claim: NodeClaim) -> str:
    """The name of the Node that the claim is matched with while a provider ID is missing."""
    return claim.status.node_name or claim.metadata.name


def _both(change: Change[T]) -> tuple[T, ...]:
    """What the object was and what it is, as far as there is one."""
    if isinstance(change, Added):
        return (change.new,)
    if isinstance(change, Deleted):
        return (change.old,)
    return (change.old, change.new)


def _holds_the_same(old: CachedPod, new: CachedPod) -> bool:
    """Whether the pod takes the same room at the same place as before: most news of pods is about readiness."""
    return (
        old.node_name == new.node_name
        and old.shape is new.shape
        and old.phase == new.phase
        and old.deleting == new.deleting
        and old.resized == new.resized
    )


def _same_machine(old: InstanceType | None, new: InstanceType | None) -> bool:
    """Whether a machine of the type is and costs the same; what can be bought now does not matter for it."""
    if old is None or new is None:
        return old is new
    return (
        old.capacity == new.capacity
        and old.overhead == new.overhead
        and old.labels == new.labels
        and [(each.zone, each.capacity_type, each.price) for each in old.offerings]
        == [(each.zone, each.capacity_type, each.price) for each in new.offerings]
    )
