"""Plays a plan on a real kube-scheduler: nodes as planned, pods in the recorded order, one node open at a time.

All nodes but the planned one are cordoned, so that the scheduler has one question to answer: may this pod run there?
(Free to choose it would spread where a plan packs.) The plane needs an API server and a scheduler; a
controller-manager would taint nodes that no kubelet keeps alive, and bind the claims of volumes by its own rules.

Left out, because no server accepts it from a client or something else would have to run: priorities (no preemption is
wanted here), overhead without a RuntimeClass (`cluster(seed, overhead=False)`), host ports of DaemonSets, and claims
that wait for a provisioner. Clusters with such pods among the placed ones, or with pods that tolerate a cordon, are not
played (`playable`).
"""

import dataclasses
import json
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from bench.clusters import Cluster
from growth.api.pods import Pod, PodSpec
from growth.planning.plan import Plan
from growth.sim.judge.replay import planned_host
from growth.sim.judge.stage import Stage
from growth.sim.predicates import Host, refusals, requests
from growth.sim.predicates.on_one_node import UNSCHEDULABLE, tolerated
from growth.units.resources import add, quantities, subtract

BIND_SECONDS = 120.0
# What the scheduler's caches usually need to see a change. A pod that was faster is played again, each time after twice
# as long: an answer that stays wrong is the scheduler's own.
SETTLE_SECONDS = 0.15
TRIES = 7
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


@dataclasses.dataclass(frozen=True, slots=True)
class Refused:
    """A pod that the scheduler did not bind where the plan has it, and what it said."""

    pod: str
    node: str
    said: str


def playable(made: Cluster, plan: Plan) -> bool:
    """Whether none of the placed pods waits for a provisioner or tolerates that nodes are cordoned."""
    shapes = {demand.key: demand.shape for demand in made.demands}
    for key, _ in plan.order:
        shape = shapes[key]
        if tolerated(UNSCHEDULABLE, shape.spec.tolerations):
            return False
        for volume in shape.spec.volumes:
            if volume.persistent_volume_claim is None:
                return False
            claim = made.snapshot.volumes.claims[shape.namespace, volume.persistent_volume_claim.claim_name]
            if not claim.spec.volume_name:
                return False
    return bool(plan.order)


class Player:
    """A server and a scheduler to play on."""

    def __init__(self, url: str, ca: str, token: str) -> None:
        self._url = url
        self._token = token
        self._opened = ""
        self._context = ssl.create_default_context(cafile=ca)

    def play(self, made: Cluster, plan: Plan, *, doubts: random.Random | None = None) -> list[Refused]:
        """Plays the plan; afterwards the server is as empty as before.

        With `doubts` each pod is first tried on some node drawn from there, and what the scheduler says is compared with
        what `growth.sim.predicates` say: a difference is an entry too.
        """
        stage = Stage(made.snapshot, made.demands)
        hosts = stage.existing() + [planned_host(stage, claim, number) for number, claim in enumerate(plan.claims)]
        places: dict[str | int, Host] = {host.name: host for host in hosts}
        places.update({number: places[f"planned-{number}"] for number in range(len(plan.claims))})
        try:
            self._set_up(made, hosts)
            return list(self._bind(stage, plan, places, doubts))
        finally:
            self._clear()

    def _bind(
        self, stage: Stage, plan: Plan, places: Mapping[str | int, Host], doubts: random.Random | None
    ) -> Iterator[Refused]:
        hosts = [host for place, host in places.items() if isinstance(place, str)]
        scene = stage.scene(hosts)
        for key, place in plan.order:
            pod, host = stage.pods[key], places[place]
            if doubts is not None:
                other = doubts.choice(hosts)
                wrong = refusals(pod, other, scene)
                said = self._tried(pod, other.name, refused=bool(wrong))
                if bool(wrong) != bool(said):
                    yield Refused(
                        key, other.name, f"the scheduler says {said or 'yes'}, the predicates {wrong or 'yes'}"
                    )
                if not said:
                    self._delete(pod)
            said = self._tried(pod, host.name, refused=False)
            if said:
                yield Refused(key, host.name, said)
            host.pods.append(pod)

    def _tried(self, pod: Pod, node: str, *, refused: bool) -> str:
        """Opens the node alone and tries the pod there; empty if it is bound, else what the scheduler said. `refused`
        is what is expected.
        """
        if node != self._opened:
            if self._opened:
                self._cordon(self._opened, closed=True)
            self._cordon(node, closed=False)
            self._opened = node
            time.sleep(SETTLE_SECONDS)
        return self._bound(pod, node, refused=refused)

    def _delete(self, pod: Pod) -> None:
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods/{pod.metadata.name}"
        self.call("DELETE", path, {"gracePeriodSeconds": 0})
        time.sleep(SETTLE_SECONDS)

    def _bound(self, pod: Pod, node: str, *, refused: bool) -> str:
        """Creates the pod and waits until it is bound to the node; what the scheduler said if it is not.

        An answer that is not the expected one may be that of a scheduler that has not seen the last change, of this
        node, the one that was open before or a pod that is gone: it is asked again.
        """
        path = f"/api/v1/namespaces/{pod.metadata.namespace}/pods"
        said = ""
        for attempt in range(TRIES):
            if attempt:
                self._delete(pod)
                time.sleep(SETTLE_SECONDS * 2**attempt)
            self.call("POST", path, pod_object(pod))
            deadline = time.monotonic() + BIND_SECONDS
            bound = ""
            while time.monotonic() < deadline:
                found = self.call("GET", f"{path}/{pod.metadata.name}")
                bound = found["spec"].get("nodeName", "")
                conditions = found.get("status", {}).get("conditions", [])
                reasons = [each.get("message", "") for each in conditions if each.get("reason") == "Unschedulable"]
                if bound or reasons:
                    said = f"bound to {bound}" if bound else reasons[0]
                    break
                time.sleep(0.01)
            else:
                said = "nothing within the time"
            if (bound == node and not refused) or (not bound and refused):
                break
        if bound == node:
            return ""
        self._delete(pod)
        return said

    # -- setting up and clearing ------------------------------------------------------------------------------------------

    def _set_up(self, made: Cluster, hosts: list[Host]) -> None:
        for name, labels in made.snapshot.namespaces.items():
            body = {"metadata": {"name": name, "labels": dict(labels)}}
            if self.call("GET", f"/api/v1/namespaces/{name}", missing={}) == {}:
                self.call("POST", "/api/v1/namespaces", body)
            else:
                self.call("PATCH", f"/api/v1/namespaces/{name}", {"metadata": {"labels": dict(labels)}})
        self._volumes(made)
        for host in hosts:
            self._node(host)
        for host in hosts:
            for pod in host.pods:
                self.call("POST", f"/api/v1/namespaces/{pod.metadata.namespace}/pods", pod_object(pod, node=host.name))
        time.sleep(SETTLE_SECONDS)

    def _node(self, host: Host) -> None:
        held = add(*(requests(pod.spec) for pod in host.uncounted))
        room = quantities({name: max(0, amount) for name, amount in subtract(host.allocatable, held).items()})
        self.call(
            "POST",
            "/api/v1/nodes",
            {
                "metadata": {"name": host.name, "labels": dict(host.labels)},
                "spec": {"unschedulable": True},
                "status": {"capacity": room, "allocatable": room, "conditions": [{"type": "Ready", "status": "True"}]},
            },
        )
        # Admission taints a new node as not ready; nobody but we would take that off again.
        taints = msgspec.to_builtins(host.taints)
        self.call("PATCH", f"/api/v1/nodes/{host.name}", {"spec": {"taints": taints or None}})
        if host.volume_limits:
            drivers = [
                {"name": driver, "nodeID": host.name, "allocatable": {"count": count}}
                for driver, count in host.volume_limits.items()
            ]
            self.call(
                "POST",
                "/apis/storage.k8s.io/v1/csinodes",
                {"metadata": {"name": host.name}, "spec": {"drivers": drivers}},
            )

    def _volumes(self, made: Cluster) -> None:
        view = made.snapshot.volumes
        room = {"storage": "1Gi"}
        for (namespace, name), claim in view.claims.items():
            if not claim.spec.volume_name:
                continue
            modes = list(claim.spec.access_modes)
            volume = view.volumes[claim.spec.volume_name]
            spec: dict[str, Any] = {
                "capacity": room,
                "accessModes": modes,
                "storageClassName": claim.spec.storage_class_name,
                "claimRef": {"namespace": namespace, "name": name},
            }
            if volume.spec.csi is not None:
                spec["csi"] = {"driver": volume.spec.csi.driver, "volumeHandle": volume.spec.csi.volume_handle}
            else:
                spec["nfs"] = {"server": "nowhere", "path": "/"}
            if volume.spec.node_affinity is not None:
                spec["nodeAffinity"] = msgspec.to_builtins(volume.spec.node_affinity)
            self.call(
                "POST",
                "/api/v1/persistentvolumes",
                {"metadata": {"name": volume.metadata.name, "labels": volume.metadata.labels}, "spec": spec},
            )
            path = f"/api/v1/namespaces/{namespace}/persistentvolumeclaims"
            self.call(
                "POST",
                path,
                {
                    "metadata": {"name": name, "annotations": {BIND_COMPLETED: "yes"}},
                    "spec": {
                        "accessModes": modes,
                        "storageClassName": claim.spec.storage_class_name,
                        "volumeName": claim.spec.volume_name,
                        "resources": {"requests": room},
                    },
                },
            )
            self.call("PATCH", f"{path}/{name}/status", {"status": {"phase": "Bound"}})

    def _cordon(self, node: str, *, closed: bool) -> None:
        self.call("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": closed or None}})

    def _clear(self) -> None:
        self._opened = ""
        now = {"gracePeriodSeconds": 0}
        for pod in self.call("GET", "/api/v1/pods")["items"]:
            meta = pod["metadata"]
            self.call("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", now, missing={})
        for kind in ("persistentvolumeclaims", "persistentvolumes"):
            for each in self.call("GET", f"/api/v1/{kind}")["items"]:
                meta = each["metadata"]
                space = f"namespaces/{meta['namespace']}/" if "namespace" in meta else ""
                path = f"/api/v1/{space}{kind}/{meta['name']}"
                self.call("PATCH", path, {"metadata": {"finalizers": None}})
                self.call("DELETE", path, now, missing={})
        for path in ("/apis/storage.k8s.io/v1/csinodes", "/api/v1/nodes"):
            for each in self.call("GET", path)["items"]:
                self.call("DELETE", f"{path}/{each['metadata']['name']}", now, missing={})
        time.sleep(SETTLE_SECONDS)

    def call(self, method: str, path: str, body: object = None, *, missing: Any = None) -> Any:
        """One call; an error carries what the server said. `missing` is the answer where there is no such object."""
        request = urllib.request.Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self._token}",
                "Content-Type": "application/merge-patch+json" if method == "PATCH" else "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404 and missing is not None:
                return missing
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode(errors='replace')}") from error


def pod_object(pod: Pod, *, node: str = "") -> dict[str, Any]:
    """The pod as a client may create it."""
    spec: PodSpec = msgspec.structs.replace(pod.spec, priority=None, overhead={}, node_name=node)
    body: dict[str, Any] = msgspec.to_builtins(spec)
    for field in ("containers", "initContainers"):
        for container in body.get(field, ()):
            container["image"] = "none"
            container.setdefault("name", "main")
    for rule in body.get("topologySpreadConstraints", ()):  # what is left out here has no default there
        rule.setdefault("maxSkew", 1)
        rule.setdefault("whenUnsatisfiable", "DoNotSchedule")
    return {
        "metadata": {"name": pod.metadata.name, "labels": pod.metadata.labels},
        "spec": body,
    }
