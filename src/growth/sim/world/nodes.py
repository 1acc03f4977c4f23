"""What kube-controller-manager does about Nodes: silent ones become Unknown, and pods of those that are gone are removed.

A Node that is silent for 40 s gets Ready=Unknown. One that is not Ready or Unknown is tainted `not-ready` or
`unreachable`, and its pods go five minutes later, unless they say otherwise; every other NoExecute taint drives out at
once who does not tolerate it. The taint of something that starts on every Node (`AGENT_TAINT`) goes when the Node is ready,
which is its agent's doing and no controller's. Pods bound to a Node that does not exist are removed after 40 s, as the pod garbage
collector does. Not here: zones, and the slower pace when most of a zone is silent.
"""

import asyncio
from typing import Final

from growth.api import names
from growth.api.edits import add_taint, remove_taint
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.placement import NO_EXECUTE, NO_SCHEDULE, Taint
from growth.api.pods import POD, Pod
from growth.kube.api import Api, PatchType
from growth.kube.changes import change
from growth.kube.errors import KubeError, NotFound
from growth.kube.store import Change, Deleted
from growth.ports import Clock
from growth.providers.kwok.kubelets import LEASE_NAMESPACE, Kubelets
from growth.sim.world.view import View
from growth.units import print_time

LOOK_SECONDS: Final = 5.0
SILENT_SECONDS: Final = 40.0
EVICT_SECONDS: Final = 300.0
ORPHAN_SECONDS: Final = 40.0
# A Node with this taint loses it when it is ready: what runs on every Node has started there.
AGENT_TAINT: Final = "simulated.dev/agent-not-ready"
# On a Node where it does not start.
AGENT_AWAY_ANNOTATION: Final = "simulated.dev/agent-away"
# The taint of a Node by its condition Ready.
TROUBLE: Final = {"False": names.NOT_READY_TAINT, "Unknown": names.UNREACHABLE_TAINT}


class Nodes:
    """`run` looks every five seconds until cancelled. Nodes that never had a Lease are left alone.

    With `kubelets` no Lease is looked at: whether a kubelet is silent is asked of those who play it.
    """

    def __init__(self, api: Api, view: View, *, clock: Clock, kubelets: Kubelets | None = None) -> None:
        self._api = api
        self._view = view
        self._clock = clock
        self._kubelets = kubelets
        self._nodes = view.nodes
        self._pods = view.pods
        self._leases = view.leases
        # By node: the renewal that was seen last, and when; since when it is silent; since when it has which taints.
        self._heard: dict[str, tuple[str, float]] = {}
        self._silent: dict[str, float] = {}
        self._tainted: dict[str, dict[str, float]] = {}
        self._orphans: dict[str, float] = {}
        self._absent: dict[str, None] = {}
        """Names of Nodes that pods are bound to and that are not there."""
        self._nodes.subscribe(self._on_node)
        self._pods.subscribe(self._on_pod)

    def _on_node(self, news: Change[Node]) -> None:
        if isinstance(news, Deleted):
            self._absent[news.key[1]] = None
            self._heard.pop(news.key[1], None)
            self._silent.pop(news.key[1], None)
            self._tainted.pop(news.key[1], None)
        else:
            self._absent.pop(news.key[1], None)

    def _on_pod(self, news: Change[Pod]) -> None:
        if isinstance(news, Deleted):
            self._orphans.pop(news.old.metadata.uid, None)
        elif news.new.spec.node_name and self._nodes.store.get(news.new.spec.node_name) is None:
            self._absent[news.new.spec.node_name] = None

    async def run(self) -> None:
        await self._view.synced()
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
            await self._drive_out(node, now)
        for name in tuple(self._absent):
            pods = self._pods.store.find("node", name)
            if not pods:
                del self._absent[name]
            for pod in pods:
                if now - self._orphans.setdefault(pod.metadata.uid, now) >= ORPHAN_SECONDS:
                    await self._remove(pod, grace=0)

    async def _judge(self, node: Node, now: float) -> None:
        name = node.metadata.name
        silent = self._is_silent(name, now)
        if silent and name not in self._silent:
            await self._tell(node, ready="Unknown", reason="NodeStatusUnknown")
            self._silent[name] = now
        elif not silent and name in self._silent:
            await self._tell(node, ready="True", reason="KubeletReady")
            del self._silent[name]
        ready = next((each.status for each in node.status.conditions if each.type == names.READY), None)
        if ready is not None:
            await self._taint(node, TROUBLE.get(ready, ""))
        starts = AGENT_AWAY_ANNOTATION not in node.metadata.annotations
        if ready == "True" and starts and any(taint.key == AGENT_TAINT for taint in node.spec.taints):
            await change(self._api, NODE, name, _start_agent)

    def _is_silent(self, name: str, now: float) -> bool:
        if self._kubelets is not None:
            renewal = "" if self._kubelets.is_silent(name) else str(now)
        else:
            lease = self._leases.store.get(name, LEASE_NAMESPACE)
            if lease is None:
                return False
            renewal = str(lease.spec.renew_time)
        known = self._heard.get(name)
        if known is None or (renewal and known[0] != renewal):
            self._heard[name] = (renewal, now)
        return now - self._heard[name][1] >= SILENT_SECONDS

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

    async def _taint(self, node: Node, wanted: str) -> None:
        """Puts the taint of the Node's trouble in place, and takes the others away."""
        have = {taint.key for taint in node.spec.taints if taint.key in TROUBLE.values()}
        if have == ({wanted} if wanted else set()):
            return

        def taints(draft: Json) -> None:
            for key in TROUBLE.values():
                for effect in (NO_SCHEDULE, NO_EXECUTE):
                    if key == wanted:
                        add_taint(draft, key=key, effect=effect)
                    else:
                        remove_taint(draft, key=key, effect=effect)

        await change(self._api, NODE, node.metadata.name, taints)

    async def _drive_out(self, node: Node, now: float) -> None:
        taints = [taint for taint in node.spec.taints if taint.effect == NO_EXECUTE]
        known = self._tainted.pop(node.metadata.name, {})
        if not taints:
            return
        since = self._tainted[node.metadata.name] = {taint.key: known.get(taint.key, now) for taint in taints}
        for pod in self._pods.store.find("node", node.metadata.name):
            created = pod.metadata.creation_timestamp
            # A pod that came later has its whole time.
            age = (self._clock.now() - created).total_seconds() if created is not None else float("inf")
            late = any(min(age, now - since[taint.key]) >= _tolerated(pod, taint) for taint in taints)
            if late and pod.metadata.deletion_timestamp is None:
                await self._remove(pod)

    async def _remove(self, pod: Pod, *, grace: int | None = None) -> None:
        meta = pod.metadata
        try:
            await self._api.delete(POD, meta.name, namespace=meta.namespace, uid=meta.uid, grace_seconds=grace)
        except NotFound:
            return
        except KubeError:
            return  # the next look tries again


def _start_agent(draft: Json) -> None:
    for effect in (NO_SCHEDULE, NO_EXECUTE):
        remove_taint(draft, key=AGENT_TAINT, effect=effect)


def _tolerated(pod: Pod, taint: Taint) -> float:
    """Seconds that the pod stays; on a node in trouble five minutes without a word of its own, as admission would write."""
    for each in pod.spec.tolerations:
        value = each.operator == "Exists" or each.value == taint.value
        if each.key in {taint.key, ""} and each.effect in {NO_EXECUTE, ""} and value:
            return float("inf") if each.toleration_seconds is None else float(each.toleration_seconds)
    return EVICT_SECONDS if taint.key in TROUBLE.values() else 0.0
