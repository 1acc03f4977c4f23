"""What kube-controller-manager does about Nodes: silent ones become Unknown, and pods of those that are gone are removed.

A Node whose Lease was not renewed for 40 s gets Ready=Unknown and the taints `unreachable`; its pods go five minutes later,
unless they tolerate that for longer. Pods bound to a Node that does not exist are removed after 40 s, as the pod garbage
collector does. Not here: zones, and the slower pace when most of a zone is silent.
"""

import asyncio
from typing import Final

from growth.api import names
from growth.api.coordination import LEASE
from growth.api.edits import add_taint, remove_taint
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE
from growth.api.pods import POD, Pod
from growth.kube.api import Api, PatchType
from growth.kube.changes import change
from growth.kube.errors import KubeError, NotFound
from growth.kube.informer import Informers, Selection
from growth.ports import Clock, Random
from growth.providers.kwok.kubelets import LEASE_NAMESPACE
from growth.units import print_time

LOOK_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 40.0
EVICT_SECONDS: Final = 300.0
ORPHAN_SECONDS: Final = 40.0


class Nodes:
    """`run` looks every five seconds until cancelled. Nodes that never had a Lease are left alone."""

    def __init__(self, api: Api, *, clock: Clock, random: Random) -> None:
        self._api = api
        self._clock = clock
        self._informers = Informers(api, clock=clock, random=random)
        self._nodes = self._informers.watch(NODE)
        self._pods = self._informers.watch(POD)
        self._leases = self._informers.watch(LEASE, selection=Selection(namespace=LEASE_NAMESPACE))
        # By node: the renewal that was seen last, and when. By node or pod: since when it has been silent or an orphan.
        self._heard: dict[str, tuple[str, float]] = {}
        self._silent: dict[str, float] = {}
        self._orphans: dict[str, float] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            await self._informers.wait_synced()
            while True:
                await self._look()
                await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        now = self._clock.monotonic()
        for node in tuple(self._nodes.store):
            try:
                await self._judge(node, now)
            except KubeError:
                continue  # the next look tries again
        for name in [name for name in self._silent if self._nodes.store.get(name) is None]:
            del self._silent[name]
        for pod in tuple(self._pods.store):
            if pod.spec.node_name and self._late(pod, now):
                await self._remove(pod)

    async def _judge(self, node: Node, now: float) -> None:
        name = node.metadata.name
        lease = self._leases.store.get(name, LEASE_NAMESPACE)
        if lease is None:
            return
        renewal = str(lease.spec.renew_time)
        if self._heard.get(name, ("", 0.0))[0] != renewal:
            self._heard[name] = (renewal, now)
        silent = now - self._heard[name][1] >= SILENT_SECONDS
        if silent and name not in self._silent:
            await self._tell(node, ready="Unknown", reason="NodeStatusUnknown")
            self._silent[name] = now
        elif not silent and name in self._silent:
            await self._tell(node, ready="True", reason="KubeletReady")
            del self._silent[name]

    async def _tell(self, node: Node, *, ready: str, reason: str) -> None:
        name, now = node.metadata.name, print_time(self._clock.now())
        condition: Json = {
            "type": names.READY,
            "status": ready,
            "reason": reason,
            "message": "",
            "lastHeartbeatTime": now,
            "lastTransitionTime": now,
        }
        await self._api.patch(
            NODE,
            name,
            {"status": {"conditions": [condition]}},
            subresource="status",
            patch_type=PatchType.STRATEGIC,
            uid=node.metadata.uid,
        )

        def taints(draft: Json) -> None:
            for effect in (NO_SCHEDULE, NO_EXECUTE):
                if ready == "True":
                    remove_taint(draft, key=names.UNREACHABLE_TAINT, effect=effect)
                else:
                    add_taint(draft, key=names.UNREACHABLE_TAINT, effect=effect)

        await change(self._api, NODE, name, taints)

    def _late(self, pod: Pod, now: float) -> bool:
        """Whether the pod's time is up: its Node is gone, or has been silent for longer than the pod tolerates."""
        node, uid = pod.spec.node_name, pod.metadata.uid
        if self._nodes.store.get(node) is None:
            return now - self._orphans.setdefault(uid, now) >= ORPHAN_SECONDS
        self._orphans.pop(uid, None)
        since = self._silent.get(node)
        if since is None or pod.metadata.deletion_timestamp is not None:
            return False
        return now - since >= _tolerated(pod)

    async def _remove(self, pod: Pod) -> None:
        orphan = pod.metadata.uid in self._orphans
        meta = pod.metadata
        try:
            await self._api.delete(
                POD, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=0 if orphan else None
            )
            self._orphans.pop(meta.uid, None)
        except NotFound:
            self._orphans.pop(meta.uid, None)
        except KubeError:
            return  # the next look tries again


def _tolerated(pod: Pod) -> float:
    """Seconds that the pod stays on a silent node; without a word of its own five minutes, as admission would write."""
    for each in pod.spec.tolerations:
        if each.key in {names.UNREACHABLE_TAINT, ""} and each.effect in {NO_EXECUTE, ""}:
            return float("inf") if each.toleration_seconds is None else float(each.toleration_seconds)
    return EVICT_SECONDS
