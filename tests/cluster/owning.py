"""Growth on a whole real control plane, as tests of ownership see it: what to wish for, and what must then be there."""

import dataclasses
import json
import subprocess
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from bench.owning import desk
from bench.owning.audit import Write, writes
from bench.owning.autoscaler import Running
from bench.owning.desk import Desk, Late
from growth.api.kinds import Json
from tests.cluster.servers import kubectl_for
from tools.controlplane.plane import Plane

MACHINES: Final = "/api/v1/namespaces/growth/configmaps?labelSelector=growth.dev/kwok-machine"
# Nobody waits so long unless something is broken; the machine that tests run on may be busy.
PATIENCE_SECONDS: Final = 300.0


@dataclasses.dataclass(frozen=True, slots=True)
class Autoscaled:
    """A plane on which Growth runs, with the stand-in machines of its KWOK cloud and kwok's kubelets."""

    plane: Plane
    process: Running
    desk: Desk

    # What a person does.

    def kubectl(self, *arguments: str) -> str:
        command = [*kubectl_for(self.plane), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_SECONDS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def delete(self, kind: str, name: str) -> None:
        """`kubectl delete`, which returns when the object is gone."""
        self.kubectl("delete", kind, name, f"--timeout={PATIENCE_SECONDS - 10:.0f}s")

    def pool(self, name: str, **options: Any) -> None:
        self.desk.create(desk.POOLS, node_pool(name, **options))

    def deploy(self, name: str, replicas: int, *, pool: str, **options: Any) -> None:
        self.desk.create(desk.APPS, deployment(name, replicas, pool=pool, **options))

    def scale(self, name: str, replicas: int) -> None:
        self.desk.merge(f"{desk.APPS}/{name}", {"spec": {"replicas": replicas}})

    # What is there.

    def claims(self, pool: str) -> list[Json]:
        return [each for each in self.desk.items(desk.CLAIMS) if pool_of(each) == pool]

    def nodes(self, pool: str) -> list[Json]:
        return [each for each in self.desk.items(desk.NODES) if pool_of(each) == pool]

    def machines(self) -> list[Json]:
        return [each["data"] for each in self.desk.items(MACHINES)]

    def pods(self, app: str) -> list[Json]:
        return self.desk.items(f"{desk.PODS}?labelSelector=app%3D{app}")

    def running(self, app: str) -> list[Json]:
        return [
            pod
            for pod in self.pods(app)
            if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        ]

    def events(self, reason: str, *, about: str) -> list[Json]:
        """Of this reason, about an object of this name."""
        found = self.desk.items("/api/v1/events")
        return [each for each in found if each.get("reason") == reason and each["involvedObject"]["name"] == about]

    def writes_of(self, user: str) -> list[Write]:
        """Writes that the server applied for this user so far."""
        return [each for each in writes(self.plane.audit_log) if each.user == user and each.applied]

    # What must come true.

    def until(self, look: Callable[[], Any], what: str, *, seconds: float = PATIENCE_SECONDS) -> Any:
        try:
            return self.desk.until(look, seconds=seconds, what=what)
        except Late as late:
            assert self.process.alive, f"growth has ended: {self.process.log[-4000:]}"
            raise AssertionError(f"{late}\n{self.process.log[-4000:]}") from late

    def wait_running(self, app: str, count: int) -> list[Json]:
        """Every pod of the workload runs, and there are so many."""
        found: list[Json] = self.until(
            lambda: pods if len(pods := self.running(app)) == count == len(self.pods(app)) else None,
            f"{count} pods of {app} run",
        )
        return found

    def wait_matched(self, pool: str, count: int | None = None) -> list[Json]:
        """Machines = claims = Nodes of this pool, all initialised and none going; the claims."""

        def look() -> list[Json] | None:
            claims = self.claims(pool)
            if count is not None and len(claims) != count:
                return None
            if not all(is_true(each, "Initialized") and "deletionTimestamp" not in each["metadata"] for each in claims):
                return None
            wanted = {each["status"]["providerID"] for each in claims}
            nodes = [each["spec"]["providerID"] for each in self.nodes(pool)]
            machines = [each["providerID"] for each in self.machines()]
            if Counter(nodes) != Counter(wanted) or not all(machines.count(each) == 1 for each in wanted):
                return None
            return claims or [{}]

        found: list[Json] = self.until(look, f"machines = claims = Nodes of {pool}")
        return [each for each in found if each]

    def wait_counted(self, pool: str, nodes: int) -> None:
        """The pool's status says so many nodes; it is written a moment after they change."""
        self.until(
            lambda: self.desk.get(f"{desk.POOLS}/{pool}").get("status", {}).get("nodes", 0) == nodes,
            f"pool {pool} counts {nodes} nodes",
        )

    def wait_gone(self, pool: str) -> None:
        """No claim, no Node and no machine of this pool."""
        uids: set[str] = set()

        def look() -> bool:
            claims = self.claims(pool)
            uids.update(each["metadata"]["uid"] for each in claims)
            return not claims and not self.nodes(pool) and not any(each["claimUID"] in uids for each in self.machines())

        self.until(look, f"nothing is left of {pool}")

    def clear(self, *apps: str, pool: str) -> None:
        """Takes the workloads and the pool away and waits for the end of the machines."""
        for app in apps:
            self.desk.delete(f"{desk.APPS}/{app}")
        self.desk.delete(f"{desk.POOLS}/{pool}")
        self.until(lambda: not self.desk.exists(f"{desk.POOLS}/{pool}"), f"{pool} is gone")
        self.wait_gone(pool)


def pool_of(body: Json) -> str:
    return str(body["metadata"].get("labels", {}).get("karpenter.sh/nodepool", ""))


def condition(body: Json, kind: str) -> Json:
    """A condition of an object; empty where it has none of that type."""
    found: list[Json] = body.get("status", {}).get("conditions", [])
    return next((each for each in found if each["type"] == kind), {})


def is_true(body: Json, kind: str) -> bool:
    return bool(condition(body, kind).get("status") == "True")


def node_pool(
    name: str,
    *,
    sizes: tuple[str, ...] = ("4",),
    consolidate_after: str = "1s",
    limits: Json | None = None,
    annotations: dict[str, str] | None = None,
    grace: str = "",
) -> Json:
    """On-demand machines of these sizes for the pods that select this pool."""
    wanted = [
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
        {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
        {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": list(sizes)},
    ]
    template: Json = {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
        "requirements": wanted,
        "expireAfter": "Never",
        "taints": [{"key": "pool", "value": name, "effect": "NoSchedule"}],
    }
    if grace:
        template["terminationGracePeriod"] = grace
    spec: Json = {
        "template": {"spec": template},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": consolidate_after,
            "budgets": [{"nodes": "100%"}],
        },
    }
    if limits:
        spec["limits"] = limits
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
    }


def deployment(
    name: str,
    replicas: int,
    *,
    pool: str,
    cpu: str = "1",
    memory: str = "512Mi",
    annotations: dict[str, str] | None = None,
    requests: dict[str, str] | None = None,
    grace_seconds: int = 1,
) -> Json:
    """Pods that select one pool and tolerate its taint."""
    wanted = {"cpu": cpu, "memory": memory, **(requests or {})}
    extended = {key: value for key, value in wanted.items() if "/" in key}
    container = {"name": "main", "image": "example", "resources": {"requests": wanted, "limits": extended}}
    spec = {
        "containers": [container],
        "nodeSelector": {"karpenter.sh/nodepool": pool},
        "tolerations": [{"key": "pool", "value": pool, "effect": "NoSchedule"}],
        "terminationGracePeriodSeconds": grace_seconds,
    }
    meta = {"labels": {"app": name}, "annotations": annotations or {}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": meta, "spec": spec},
        },
    }


def size_of(body: Json) -> int:
    """Bytes of an object as stored, without who changed which field."""
    meta = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return len(json.dumps({**body, "metadata": meta}, separators=(",", ":")).encode())
