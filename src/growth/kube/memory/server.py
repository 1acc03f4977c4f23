"""The API server in process: every verb on one synchronous, deterministic object.

It keeps the real server's semantics (`tests/conformance` holds both to the same laws) and does of itself what the
controller-manager does with owners, namespaces and the protection of volumes. Time comes from the given clock, names and uids from the given
randomness; nothing depends on the hash seed. Not supported, and refused with a sentence: server-side apply, dry-run,
foreground deletion. There is no authentication and no authorisation: `user` only says who is counted.

What it hands out (`Stored`) is shared with the store and not to be changed; `MemoryApi` copies at the edge.
"""

import collections
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.kube.api import PatchType
from growth.kube.errors import BadRequest, UnsupportedMediaType
from growth.kube.memory import (
    binding,
    deletion,
    eviction,
    failures,
    garbage,
    patches,
    protection,
    reads,
    scale,
    strategic,
    writes,
)
from growth.kube.memory.builtin import RESOURCES
from growth.kube.memory.builtin.core import SYSTEM_PRIORITIES
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.custom import definitions, establish
from growth.kube.memory.deletion import DeleteOptions
from growth.kube.memory.fields import Undecodable
from growth.kube.memory.resources import Catalogue, Resource
from growth.kube.memory.store import RING, Change, Store, Stored, Watch
from growth.ports import Clock, Random

FIRST_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
IMMORTAL: Final = frozenset({"default", "kube-public", "kube-system"})


@dataclasses.dataclass(frozen=True, slots=True)
class Statistics:
    """What the server holds and has done; `writes` counts successful writing requests by user."""

    revision: int
    objects: int
    watches: int
    writes: Mapping[str, int]


class MemoryServer:
    """The server. `ring` is how many changes per kind a watch may lag behind before it gets 410."""

    def __init__(self, clock: Clock, random: Random, *, ring: int = RING) -> None:
        self.clock = clock
        self._cluster = Cluster(
            clock=clock,
            random=random,
            catalogue=Catalogue((*RESOURCES, *definitions.RESOURCES)),
            store=Store(ring=ring),
        )
        self._writes: collections.Counter[str] = collections.Counter()
        namespaces = self.resource("", "v1", "namespaces")
        for name in FIRST_NAMESPACES:
            writes.create(self._cluster, namespaces, {"metadata": {"name": name}}, namespace="")
        classes = self.resource("scheduling.k8s.io", "v1", "priorityclasses")
        for name, value in SYSTEM_PRIORITIES.items():
            writes.create(self._cluster, classes, {"metadata": {"name": name}, "value": value}, namespace="")

    @property
    def catalogue(self) -> Catalogue:
        return self._cluster.catalogue

    @property
    def revision(self) -> int:
        return self._cluster.store.revision

    def statistics(self) -> Statistics:
        kept = self._cluster.store.collections.values()
        return Statistics(
            revision=self.revision,
            objects=sum(len(collection.objects) for collection in kept),
            watches=sum(len(collection.watches) for collection in kept),
            writes=dict(self._writes),
        )

    def follow(self, follower: Callable[[tuple[str, str], Change], None]) -> None:
        """`follower` is called with (group, plural) and every change from now on, of every kind, as it happens."""
        self._cluster.store.followers.append(follower)

    def resource(self, group: str, version: str, plural: str) -> Resource:
        """What is served at a path; `NotFound` where nothing is."""
        found = self.catalogue.find(group, version, plural)
        if found is None:
            raise failures.no_resource()
        return found

    # Reading

    def get(self, resource: Resource, name: str, *, namespace: str = "") -> Stored:
        stored = self._cluster.store.get(resource.id, (namespace if resource.namespaced else "", name))
        if stored is None:
            raise failures.not_found(resource, name)
        return stored

    def has(self, resource: Resource, name: str, *, namespace: str = "") -> bool:
        return self._cluster.store.get(resource.id, (namespace if resource.namespaced else "", name)) is not None

    def scale_of(self, resource: Resource, stored: Stored) -> Json:
        """The Scale of a workload, as it is shown."""
        return scale.shown(scale.scale_of(resource, stored.object))

    def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = 0,
        page: str = "",
        revision: str = "",
        exact: bool = False,
    ) -> reads.Listing:
        return reads.page_of(
            self._cluster,
            resource,
            namespace=namespace if resource.namespaced else "",
            matches=reads.selection(resource, labels=labels, fields=fields),
            limit=limit,
            page=page,
            revision=revision,
            exact=exact,
        )

    def watch(
        self, resource: Resource, *, revision: str = "", namespace: str = "", labels: str = "", fields: str = ""
    ) -> Watch:
        """Changes after a revision; without one or with "0", the state now first. Ends with `unwatch`."""
        return self._cluster.store.watch(
            resource.id,
            revision=reads.parse_revision(revision) or None,
            namespace=namespace if resource.namespaced else "",
            matches=reads.selection(resource, labels=labels, fields=fields),
        )

    def unwatch(self, resource: Resource, watch: Watch) -> None:
        self._cluster.store.unwatch(resource.id, watch)

    def compact(self) -> None:
        """Forgets history: whoever asks for an earlier revision gets 410, as after an etcd compaction."""
        self._cluster.store.compact()

    def cut_watches(self) -> None:
        """Closes every stream, as a restarting server does."""
        for collection in self._cluster.store.collections.values():
            for watch in tuple(collection.watches):
                watch.close()

    # Writing

    def create(
        self, resource: Resource, body: Any, *, namespace: str = "", user: str = "", strict: bool = False
    ) -> Stored:
        """`strict` refuses fields that the kind does not have; otherwise they are dropped."""
        if resource.namespaced and not namespace:
            raise failures.method_not_allowed()
        try:
            stored = writes.create(self._cluster, resource, an_object(body), namespace=namespace, strict=strict)
        except Undecodable as error:
            raise BadRequest(str(error)) from error
        self._wrote(user)
        return stored

    def update(
        self,
        resource: Resource,
        name: str,
        body: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        user: str = "",
        strict: bool = False,
    ) -> Stored:
        """Replaces an object. Of a few kinds, leases among them, one that is not there is created."""
        self.check_subresource(resource, subresource)
        new = an_object(body)
        if resource.strategy.create_on_update and not subresource and not self.has(resource, name, namespace=namespace):
            return self.create(resource, new, namespace=namespace, user=user, strict=strict)
        old = self.get(resource, name, namespace=namespace)
        if subresource == "scale":
            new = scale.scaled(resource, old.object, new)
        try:
            stored = writes.change(
                self._cluster,
                resource,
                old,
                new,
                subresource=subresource,
                replaces=subresource != "scale",
                strict=strict,
            )
        except Undecodable as error:
            raise BadRequest(str(error)) from error
        self._wrote(user)
        return stored

    def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        *,
        namespace: str = "",
        subresource: str = "",
        patch_type: str = PatchType.MERGE,
        user: str = "",
        strict: bool = False,
    ) -> Stored:
        check_patch_type(resource, patch_type)
        old = self.get(resource, name, namespace=namespace)
        self.check_subresource(resource, subresource)
        if subresource == "scale":
            before = scale.scale_of(resource, old.object)
            new = scale.scaled(resource, old.object, patched(resource, before, fresh(patch), patch_type))
        else:
            new = patched(resource, old.object, fresh(patch), patch_type)
        new = own_copy(new, old.object)
        try:
            stored = writes.change(self._cluster, resource, old, new, subresource=subresource, strict=strict)
        except Undecodable as error:
            raise failures.bad_patch(str(error)) from error
        self._wrote(user)
        return stored

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        options: DeleteOptions | None = None,
        user: str = "",
    ) -> tuple[Stored, bool]:
        """The last state, and whether the object is gone."""
        key = (namespace if resource.namespaced else "", name)
        if resource.id == ("", "namespaces") and name in IMMORTAL:
            raise failures.forbidden(resource, name, "this namespace may not be deleted")
        stored, gone = deletion.delete(self._cluster, resource, key, options or DeleteOptions())
        if resource.id == ("", "namespaces") and not gone:
            garbage.empty(self._cluster, name)
            left = self._cluster.store.get(resource.id, key)
            stored, gone = (stored, True) if left is None else (left, False)
        self._wrote(user)
        return stored, gone

    def evict(self, name: str, *, namespace: str, options: DeleteOptions | None = None, user: str = "") -> None:
        """Evicts a pod; `TooManyRequests` when its disruption budget forbids it."""
        pods = self.resource("", "v1", "pods")
        budgets = self.resource("policy", "v1", "poddisruptionbudgets")
        eviction.evict(self._cluster, pods, budgets, (namespace, name), options or DeleteOptions())
        self._wrote(user)

    def bind(self, name: str, *, namespace: str, node: str, uid: str = "", user: str = "") -> None:
        """Binds a pod to a node."""
        self.bind_as(name, {"metadata": {"uid": uid}, "target": {"kind": "Node", "name": node}}, namespace, user)

    def bind_as(self, name: str, body: Json, namespace: str, user: str) -> None:
        """Binds a pod by a Binding object."""
        binding.bind(self._cluster, self.resource("", "v1", "pods"), (namespace, name), body)
        self._wrote(user)

    def check_subresource(self, resource: Resource, subresource: str) -> None:
        """`NotFound` where the kind has no such subresource."""
        if subresource == "scale":
            scale.paths(resource)
        elif (subresource == "status" and not resource.strategy.status) or subresource not in {"", "status"}:
            raise failures.no_resource()

    def _wrote(self, user: str) -> None:
        self._writes[user] += 1
        cluster = self._cluster
        if cluster.guarded:
            protection.settle(cluster)
        while cluster.definitions or cluster.orphans or cluster.emptying:
            if cluster.definitions:
                establish.settle(cluster, cluster.definitions.popleft())
            garbage.settle(cluster)
            if cluster.guarded:
                protection.settle(cluster)


def fresh(body: Any) -> Any:
    """The caller's own copy of a JSON value; structs become dicts, tuples lists, times text."""
    try:
        return msgspec.json.decode(msgspec.json.encode(body))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"the object is no JSON: {error}") from error


def an_object(body: Any) -> Json:
    """The caller's own copy of a whole object; 400 for any other JSON."""
    whole = fresh(body)
    if not isinstance(whole, dict):
        raise BadRequest(f"an object is expected here, not {type(whole).__name__}")
    return whole


def own_copy(new: Json, old: Json) -> Json:
    """The object with everything that differs from the old one copied, so that it can be changed in place."""
    return {
        field: value if field != "metadata" and value is old.get(field) else fresh(value)
        for field, value in new.items()
    }


def check_patch_type(resource: Resource, patch_type: str) -> None:
    """Refuses kinds of patches that are not offered, or not for custom kinds."""
    if patch_type == "application/apply-patch+yaml":
        raise UnsupportedMediaType(
            "server-side apply is not supported by this server: use a merge patch, or `kubectl apply` without "
            "--server-side"
        )
    accepted = [PatchType.JSON, PatchType.MERGE, *([] if resource.custom else [PatchType.STRATEGIC])]
    if patch_type not in accepted:
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )


def patched(resource: Resource, old: Json, patch: Any, patch_type: str) -> Json:
    """The object with the patch applied; nothing is stored."""
    if patch_type == PatchType.JSON:
        return patches.apply_operations(old, patch)
    if not isinstance(patch, dict):
        raise BadRequest("a merge patch is an object")
    if patch_type == PatchType.STRATEGIC:
        return strategic.merge(resource.kind, old, patch)
    return dict(patches.merge(old, patch))
