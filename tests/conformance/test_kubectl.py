"""kubectl works on the server in process: the verbs that people use, through the program itself."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.kube.memory import MemoryServer
from growth.kube.memory.serve import serving, write_kubeconfig
from growth.ports import SystemClock, SystemRandom

KUBECTL = Path(sys.executable).parent / "kubectl"
PATIENCE_SECONDS = 180.0  # a loaded machine starts a large program slowly

NODE: Json = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n1", "labels": {"node-role.kubernetes.io/worker": ""}},
    "status": {
        "capacity": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
        "nodeInfo": {"kubeletVersion": "v1.36.3"},
    },
}
WIDGETS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.kubectl.test"},
    "spec": {
        "group": "kubectl.test",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "maximum": 9, "description": "How large it is."},
                                    "colour": {"type": "string", "default": "green"},
                                },
                            }
                        },
                    }
                },
            }
        ],
    },
}


def pod(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "img"}], **spec},
    }


def widget(**spec: Any) -> Json:
    return {"apiVersion": "kubectl.test/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec}


class Failed(AssertionError):
    """kubectl ended with an error."""


class Kubectl:
    """The program with its own home and its own server."""

    def __init__(self, server: MemoryServer, home: Path) -> None:
        self.server = server
        self.home = home
        self._environment = {"HOME": str(home), "KUBECONFIG": str(home / "config"), "PATH": "/usr/bin:/bin"}

    async def start(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            str(KUBECTL),
            *arguments,
            env={**self._environment, **environment},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *arguments: str, given: Json | None = None, **environment: str) -> str:
        """What it prints; `given` is its standard input. `Failed` with its complaint."""
        process = await self.start(*arguments, **environment)
        body = json.dumps(given).encode() if given is not None else None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, err = await process.communicate(body)
        except TimeoutError:
            process.kill()
            await process.communicate()
            raise
        if process.returncode:
            raise Failed(f"kubectl {' '.join(arguments)}: {err.decode()}")
        return out.decode()

    async def read(self, *arguments: str) -> Json:
        """An object as JSON."""
        found: Json = json.loads(await self("get", *arguments, "-o", "json"))
        return found

    async def refused(self, *arguments: str, given: Json | None = None) -> str:
        """The complaint of a call that must fail."""
        with pytest.raises(Failed) as failed:
            await self(*arguments, given=given)
        return str(failed.value)


def run(tmp_path: Path, law: Callable[[Kubectl], Awaitable[None]]) -> None:
    @contextlib.asynccontextmanager
    async def ready() -> AsyncIterator[Kubectl]:
        server = MemoryServer(SystemClock(), SystemRandom())
        async with serving(server) as url:
            write_kubeconfig(tmp_path / "config", url)
            yield Kubectl(server, tmp_path)

    async def whole() -> None:
        async with ready() as kubectl:
            await law(kubectl)

    asyncio.run(whole())


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.strip().splitlines()]


def test_get_prints_the_real_columns(tmp_path: Path) -> None:
    """get prints the columns of a kind, and more of them with -o wide."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", given=NODE)
        await kubectl("create", "-f", "-", given=pod("p", nodeName="n1"))
        heading, line = table(await kubectl("get", "pods"))
        assert heading == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert line[:4] == ["p", "0/1", "Pending", "0"]
        wide = table(await kubectl("get", "pods", "-o", "wide"))
        assert wide[0][5:] == ["IP", "NODE", "NOMINATED", "NODE", "READINESS", "GATES"]
        assert wide[1][6] == "n1"
        nodes = table(await kubectl("get", "nodes", "-o", "wide"))
        assert nodes[1][:3] == ["n1", "Ready", "worker"]
        assert nodes[1][4:6] == ["v1.36.3", "10.1.2.3"]
        assert table(await kubectl("get", "namespaces"))[1][:2] == ["default", "Active"]

    run(tmp_path, law)


def test_get_watches(tmp_path: Path) -> None:
    """get -w prints what is there, and then each change as it happens."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", given=pod("first"))
        process = await kubectl.start("get", "pods", "--watch", "--output-watch-events", "--no-headers")
        assert process.stdout is not None

        async def line() -> list[str]:
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE_SECONDS):
                return (await process.stdout.readline()).decode().split()

        try:
            assert (await line())[:4] == ["ADDED", "first", "0/1", "Pending"]
            pods = kubectl.server.resource("", "v1", "pods")
            kubectl.server.create(pods, pod("second"), namespace="default")
            assert (await line())[:4] == ["ADDED", "second", "0/1", "Pending"]
            change = {"status": {"phase": "Running"}}
            kubectl.server.patch(pods, "second", change, namespace="default", subresource="status")
            assert (await line())[:4] == ["MODIFIED", "second", "0/1", "Running"]
            kubectl.server.delete(pods, "first", namespace="default")
            assert (await line())[:2] == ["MODIFIED", "first"]
            assert (await line())[:2] == ["DELETED", "first"]
        finally:
            process.terminate()
            await process.communicate()

    run(tmp_path, law)


def test_describe_tells_of_an_object_and_its_events(tmp_path: Path) -> None:
    """describe shows an object with the events about it."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", given=NODE)
        await kubectl("create", "-f", "-", given=pod("p", nodeName="n1"))
        made = await kubectl.read("pod", "p")
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "p.1", "namespace": "default"},
            "involvedObject": {
                "kind": "Pod",
                "name": "p",
                "namespace": "default",
                "uid": made["metadata"]["uid"],
                "apiVersion": "v1",
            },
            "reason": "Nominated",
            "message": "should schedule on n1",
            "type": "Normal",
            "source": {"component": "growth"},
        }
        await kubectl("create", "-f", "-", given=event)
        told = await kubectl("describe", "pod", "p")
        assert "Node:" in told
        assert "QoS Class:        BestEffort" in told
        assert "should schedule on n1" in told
        node = await kubectl("describe", "node", "n1")
        assert "Non-terminated Pods:          (1 in total)" in node
        assert "node.kubernetes.io/not-ready:NoSchedule" in node

    run(tmp_path, law)


def test_create_makes_objects_by_file_and_by_name(tmp_path: Path) -> None:
    """create works from a file and from arguments, which travel as protobuf."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "namespace", "shop")
        await kubectl("create", "deployment", "web", "--image=nginx:1", "--replicas=0", "-n", "shop")
        made = await kubectl.read("deployment", "web", "-n", "shop")
        assert made["spec"]["replicas"] == 0
        assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1"
        assert made["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}
        await kubectl("create", "configmap", "c", "--from-literal=a=b")
        assert (await kubectl.read("configmap", "c"))["data"] == {"a": "b"}
        await kubectl("create", "pdb", "guard", "--selector=app=web", "--min-available=50%")
        assert (await kubectl.read("pdb", "guard"))["spec"]["minAvailable"] == "50%"
        await kubectl("create", "cronjob", "tick", "--image=i", "--schedule=*/5 * * * *")
        again = await kubectl.refused("create", "configmap", "c")
        assert 'configmaps "c" already exists' in again
        wrong = await kubectl.refused("create", "-f", "-", given=pod("p", restartPolicy="Sometimes"))
        assert "spec.restartPolicy" in wrong
        unknown = await kubectl.refused("create", "-f", "-", given=pod("p", restartPolice="Always"))
        assert 'unknown field "spec.restartPolice"' in unknown

    run(tmp_path, law)


def test_apply_changes_what_the_file_changes(tmp_path: Path) -> None:
    """apply creates, leaves alone, changes and removes fields, of built-in kinds and of custom ones."""

    async def law(kubectl: Kubectl) -> None:
        first = pod("p")
        first["metadata"]["labels"]["old"] = "1"
        assert "created" in await kubectl("apply", "-f", "-", given=first)
        assert "unchanged" in await kubectl("apply", "-f", "-", given=first)
        del first["metadata"]["labels"]["old"]
        first["metadata"]["labels"]["new"] = "2"
        assert "configured" in await kubectl("apply", "-f", "-", given=first)
        assert (await kubectl.read("pod", "p"))["metadata"]["labels"] == {"app": "p", "new": "2"}

        assert "created" in await kubectl("apply", "-f", "-", given=WIDGETS)
        await kubectl("wait", "--for=condition=Established", "crd/widgets.kubectl.test")
        assert "created" in await kubectl("apply", "-f", "-", given=widget(size=3, colour="red"))
        assert "configured" in await kubectl("apply", "-f", "-", given=widget(size=4))
        assert (await kubectl.read("widget", "w"))["spec"] == {"size": 4, "colour": "green"}
        assert table(await kubectl("get", "wd")) == [["NAME", "SIZE"], ["w", "4"]]
        wrong = await kubectl.refused("apply", "-f", "-", given=widget(size=10))
        assert "spec.size in body should be less than or equal to 9" in wrong
        unknown = await kubectl.refused("apply", "-f", "-", given=widget(sise=1))
        assert 'unknown field "spec.sise"' in unknown
        assert "How large it is." in await kubectl("explain", "widget.spec")

    run(tmp_path, law)


def test_what_is_not_supported_is_refused_with_a_sentence(tmp_path: Path) -> None:
    """Server-side apply, a dry run on the server and foreground deletion are refused, saying what to do instead."""

    async def law(kubectl: Kubectl) -> None:
        applied = await kubectl.refused("apply", "--server-side", "-f", "-", given=pod("p"))
        assert "server-side apply is not supported by this server" in applied
        dry = await kubectl.refused("create", "--dry-run=server", "-f", "-", given=pod("p"))
        assert "dry-run is not supported by this server" in dry
        await kubectl("create", "-f", "-", given=pod("p"))
        deleted = await kubectl.refused("delete", "pod", "p", "--cascade=foreground")
        assert "foreground deletion is not supported by this server" in deleted

    run(tmp_path, law)


def test_scale_edit_and_label_change_objects(tmp_path: Path) -> None:
    """scale, edit, label and annotate do what they say."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "deployment", "web", "--image=nginx")
        await kubectl("scale", "deployment", "web", "--replicas=5")
        made = await kubectl.read("deployment", "web")
        assert (made["spec"]["replicas"], made["metadata"]["generation"]) == (5, 2)
        await kubectl("edit", "deployment", "web", EDITOR="sed -i s/replicas:.5/replicas:\\ 6/")
        assert (await kubectl.read("deployment", "web"))["spec"]["replicas"] == 6
        await kubectl("label", "deployment", "web", "tier=front")
        await kubectl("annotate", "deployment", "web", "note=x")
        listed = await kubectl.read("deployments", "-l", "tier in (front,back),!gone")
        assert [one["metadata"]["annotations"]["note"] for one in listed["items"]] == ["x"]
        await kubectl("label", "deployment", "web", "tier-")
        assert "tier" not in (await kubectl.read("deployment", "web"))["metadata"]["labels"]

    run(tmp_path, law)


def test_nodes_are_tainted_cordoned_and_drained(tmp_path: Path) -> None:
    """taint, cordon, uncordon and drain work; drain obeys disruption budgets."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", given=NODE)
        await kubectl("taint", "node", "n1", "team=a:NoSchedule")
        taints = (await kubectl.read("node", "n1"))["spec"]["taints"]
        assert {"key": "team", "value": "a", "effect": "NoSchedule"} in taints
        await kubectl("taint", "node", "n1", "team-", "node.kubernetes.io/not-ready-")
        assert "taints" not in (await kubectl.read("node", "n1"))["spec"]
        await kubectl("cordon", "n1")
        assert table(await kubectl("get", "nodes"))[1][1] == "Ready,SchedulingDisabled"
        await kubectl("uncordon", "n1")
        assert "unschedulable" not in (await kubectl.read("node", "n1"))["spec"]

        await kubectl("create", "-f", "-", given=pod("free", nodeName="n1"))
        await kubectl("create", "-f", "-", given=pod("kept", nodeName="n1"))
        pods = kubectl.server.resource("", "v1", "pods")
        ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        kubectl.server.patch(pods, "kept", ready, namespace="default", subresource="status")
        await kubectl("create", "pdb", "guard", "--selector=app=kept", "--min-available=1")
        budgets = kubectl.server.resource("policy", "v1", "poddisruptionbudgets")
        seen = {"status": {"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 1}}
        kubectl.server.patch(budgets, "guard", seen, namespace="default", subresource="status")
        drain = ("drain", "n1", "--force", "--grace-period=0")
        blocked = await kubectl.refused(*drain, "--timeout=5s")
        assert "Cannot evict pod as it would violate the pod's disruption budget" in blocked
        assert [one["metadata"]["name"] for one in (await kubectl.read("pods"))["items"]] == ["kept"]
        await kubectl("delete", "pdb", "guard")
        assert "node/n1 drained" in await kubectl(*drain)
        assert (await kubectl.read("pods"))["items"] == []

    run(tmp_path, law)


def test_delete_removes_objects_and_what_they_own(tmp_path: Path) -> None:
    """delete works by name, by selector, for namespaces with all that is in them, and for definitions."""

    async def law(kubectl: Kubectl) -> None:
        for name in ("a", "b", "c"):
            await kubectl("create", "-f", "-", given=pod(name))
        await kubectl("delete", "pod", "a")
        await kubectl("delete", "pods", "-l", "app=b")
        assert [one["metadata"]["name"] for one in (await kubectl.read("pods"))["items"]] == ["c"]
        await kubectl("delete", "pods", "--all")
        await kubectl("create", "namespace", "shop")
        await kubectl("create", "configmap", "c", "-n", "shop")
        await kubectl("delete", "namespace", "shop")
        assert 'namespaces "shop" not found' in await kubectl.refused("get", "namespace", "shop")
        await kubectl("create", "-f", "-", given=WIDGETS)
        await kubectl("create", "-f", "-", given=widget(size=1))
        await kubectl("delete", "crd", "widgets.kubectl.test")
        assert "the server could not find the requested resource" in await kubectl.refused("get", "widgets")

    run(tmp_path, law)


def test_api_resources_lists_what_is_served(tmp_path: Path) -> None:
    """api-resources knows built-in and custom kinds with their short names; version and can-i answer."""

    async def law(kubectl: Kubectl) -> None:
        await kubectl("create", "-f", "-", given=WIDGETS)
        served = table(await kubectl("api-resources"))
        assert ["pods", "po", "v1", "true", "Pod"] in served
        assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in served
        assert ["widgets", "wd", "kubectl.test/v1", "true", "Widget"] in served
        assert "Server Version: v1.36.3" in await kubectl("version")
        assert await kubectl("auth", "can-i", "create", "pods") == "yes\n"

    run(tmp_path, law)
