"""The wired autoscaler in simulated processes: who leads, what ends a process, and when it refuses to start."""

import asyncio
import contextlib
import datetime as dt
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, TypeVar

import pytest
from structlog.testing import capture_logs

from growth.api import names
from growth.api.coordination import LEASE
from growth.api.core import NAMESPACE
from growth.api.crds import all_crds
from growth.api.decisions import DECISION
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import KWOK_NODE_CLASS
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.kube.api import Api
from growth.kube.errors import (
    Forbidden,
    KubeError,
    OutcomeUnknown,
    ServerError,
    TooManyRequests,
    Unauthorized,
    Unreachable,
    Untrusted,
)
from growth.kube.lease import LeaseLost
from growth.kube.memory import MemoryApi, MemoryServer
from growth.operator.checks import Refused, identity_of
from growth.operator.observing import ObservingApi
from growth.operator.watchdog import SYNCED, UNSYNCED_SECONDS
from growth.operator.wiring import LEADING, Role
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom
from growth.sim.process import Fate
from growth.sim.replica import Replica, settings_of
from growth.sim.world.cluster import SimCluster
from growth.units import print_micro_time

R = TypeVar("R")

_CRD: Kind[Json] = Kind(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, dict
)


def prepared(
    body: Callable[[Kernel, SimCluster], Coroutine[Any, Any, R]], *, namespace: str = "growth", crds: bool = True
) -> R:
    """Runs `body` in a cluster with our definitions and our namespace."""

    async def main(kernel: Kernel) -> R:
        cluster = SimCluster(kernel)
        cluster.start()
        for definition in all_crds() if crds else ():
            await cluster.admin.create(_CRD, definition)
        await cluster.admin.create(NAMESPACE, {"metadata": {"name": namespace}})
        await asyncio.sleep(1)
        return await body(kernel, cluster)

    return sim.run(main, seed=1, limit_seconds=100_000).value


def node_pool(kind: str = "KWOKNodeClass", group: str = names.KWOK_CLASS_GROUP) -> Json:
    reference = {"group": group, "kind": kind, "name": "default"}
    return {
        "metadata": {"name": "default"},
        "spec": {"template": {"spec": {"nodeClassRef": reference, "requirements": []}}},
    }


async def holder(cluster: SimCluster) -> str:
    return (await cluster.admin.get(LEASE, names.LEADER_LEASE, namespace="growth")).spec.holder_identity


def test_one_of_two_leads_and_the_other_takes_over_within_20_s() -> None:
    """The leader is killed at any moment between two renewals; the standby, warm since its start, leads 20 s later."""

    async def body(kernel: Kernel, cluster: SimCluster) -> int:
        replicas = {name: Replica(kernel, cluster.server, name=name) for name in ("a", "b")}
        for replica in replicas.values():
            replica.start()
        await asyncio.sleep(30)
        takeovers = 0
        for _ in range(25):
            leader = await holder(cluster)
            first = replicas[leader.split("-")[0]]
            (other,) = [one for one in replicas.values() if one is not first]
            assert other.autoscaler is not None
            assert other.autoscaler.unready() == ()
            assert not other.autoscaler.leading
            assert first.process is not None
            first.process.crash()
            await asyncio.sleep(20)
            assert (await holder(cluster)).startswith(f"{other.name}-")
            assert other.metrics is not None
            assert other.metrics.value(LEADING) == 1
            takeovers += 1
            first.start()
            await asyncio.sleep(20.13)
        return takeovers

    assert prepared(body) == 25


def test_a_leader_that_cannot_renew_ends_by_itself() -> None:
    """Cut off from the Lease it raises `LeaseLost` at the renew deadline, before another may lead."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        replica = Replica(kernel, cluster.server)
        process = replica.start()
        await asyncio.sleep(30)
        cut = kernel.time()
        replica.networks[Role.ELECTOR].partition()
        ended = await process.wait()
        assert ended.fate is Fate.FAILED
        assert isinstance(ended.error, LeaseLost)
        assert ended.at - cut <= 10

    prepared(body)


def test_a_part_that_ends_ends_the_process() -> None:
    """When the caches cannot follow any more because of a defect, nothing goes on as if they could."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        replica = Replica(kernel, cluster.server)
        process = replica.start()
        await asyncio.sleep(30)
        assert replica.autoscaler is not None
        assert replica.autoscaler._watchdog is not None
        state = replica.autoscaler._watchdog._state

        def broken(_: object) -> None:
            raise ZeroDivisionError

        state.nodes._subscribers.append(broken)
        await cluster.add_node("one")
        ended = await process.wait()
        assert isinstance(ended.error, ZeroDivisionError)
        assert await holder(cluster) == ""

    prepared(body)


def test_what_is_not_synced_is_named() -> None:
    """Before the first answer, and while a watch is broken for long, it says what is missing and why."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        replica = Replica(kernel, cluster.server)
        replica.start()
        assert replica.autoscaler is None or replica.autoscaler.unready() == ("the API server has not answered yet",)
        await asyncio.sleep(30)
        assert replica.autoscaler is not None
        assert replica.autoscaler.unready() == ()
        replica.networks[Role.GROWTH].partition()
        replica.networks[Role.GROWTH].cut_watches()
        with capture_logs() as lines:
            await asyncio.sleep(120)
        named = replica.autoscaler.unready()
        assert any(line.startswith("nodes: Disconnected for ") for line in named), named
        told = [line["kind"] for line in lines if line["event"] == "not synced"]
        assert told.count("nodes") == 1
        assert replica.metrics is not None
        assert replica.metrics.value(SYNCED) == 0
        assert replica.metrics.value(UNSYNCED_SECONDS) >= 60
        replica.networks[Role.GROWTH].heal()
        await asyncio.sleep(120)
        assert replica.autoscaler.unready() == ()
        assert replica.metrics.value(SYNCED) == 1
        assert replica.metrics.value(UNSYNCED_SECONDS) == 0

    prepared(body)


@pytest.mark.parametrize(
    ("age", "class_kind", "refused"),
    [(5, "KWOKNodeClass", True), (59, "KWOKNodeClass", True), (61, "KWOKNodeClass", False), (5, "EC2NodeClass", False)],
)
def test_it_refuses_beside_a_karpenter_that_renews_its_lease(age: int, class_kind: str, *, refused: bool) -> None:
    """A Lease renewed in the last minute and a NodePool of a kind that we serve: one line and no start."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        renewed = print_micro_time(cluster.clock.now() - dt.timedelta(seconds=age))
        lease: Json = {
            "metadata": {"name": names.KARPENTER_LEADER_LEASE},
            "spec": {"holderIdentity": "k", "renewTime": renewed},
        }
        await cluster.admin.create(LEASE, lease, namespace="kube-system")
        group = names.KWOK_CLASS_GROUP if class_kind == "KWOKNodeClass" else "karpenter.k8s.aws"
        await cluster.admin.create(NODE_POOL, node_pool(class_kind, group))
        process = Replica(kernel, cluster.server).start()
        await asyncio.sleep(30)
        assert process.dead == refused
        if refused:
            error = (await process.wait()).error
            assert isinstance(error, Refused)
            assert f"kube-system/{names.KARPENTER_LEADER_LEASE} was renewed {age} s ago" in str(error)
            assert "NodePool default is of KWOKNodeClass, which --provider kwok serves" in str(error)
            assert "--observe" in str(error)
            assert "\n" not in str(error)

    prepared(body)


def test_it_refuses_beside_a_running_karpenter_pod() -> None:
    """A Running pod with Karpenter's label counts as one, a Pending one does not."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        await cluster.admin.create(NODE_POOL, node_pool())
        pod: Json = {
            "metadata": {"name": "k", "labels": {names.APP_NAME_LABEL: "karpenter"}},
            "spec": {"containers": [{"name": "main", "image": "example"}]},
        }
        await cluster.admin.create(POD, pod, namespace="default")
        fine = Replica(kernel, cluster.server, name="fine").start()
        await asyncio.sleep(30)
        assert not fine.dead
        fine.crash()
        await cluster.add_node("one")
        await asyncio.sleep(30)
        error = (await Replica(kernel, cluster.server, name="late").start().wait()).error
        assert isinstance(error, Refused)
        assert "Pod default/k is Running" in str(error)

    prepared(body)


def test_a_karpenter_that_comes_while_we_wait_for_the_lease_is_seen() -> None:
    """The check is made again when the Lease is taken."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        await cluster.admin.create(NODE_POOL, node_pool())
        first, second = (Replica(kernel, cluster.server, name=name) for name in ("a", "b"))
        leading = first.start()
        await asyncio.sleep(20)
        waiting = second.start()
        await asyncio.sleep(20)
        renewed = print_micro_time(cluster.clock.now() + dt.timedelta(seconds=20))
        lease: Json = {"metadata": {"name": names.KARPENTER_LEADER_LEASE}, "spec": {"renewTime": renewed}}
        await cluster.admin.create(LEASE, lease, namespace="kube-system")
        leading.crash()
        assert isinstance((await waiting.wait()).error, Refused)

    prepared(body)


def test_a_server_in_trouble_at_the_takeover_is_waited_for() -> None:
    """A leader that cannot learn whether it is alone neither acts nor gives up: it asks again, and then leads."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        first, second = (Replica(kernel, cluster.server, name=name) for name in ("a", "b"))
        leading, waiting = first.start(), second.start()
        await asyncio.sleep(30)
        if await holder(cluster) != "a-1":
            first, second, leading, waiting = second, first, waiting, leading
        api = second.networks[Role.ELECTOR]
        listing, failures = api.list, [ServerError("away"), ServerError("away")]

        async def list_pods(kind: Kind[Any], **options: Any) -> Any:
            if kind is POD and failures:
                raise failures.pop()
            return await listing(kind, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(api, "list", list_pods)
            leading.crash()
            await asyncio.sleep(30)
            assert failures == []
            assert not waiting.dead
            assert second.metrics is not None
            assert second.metrics.value(LEADING) == 1

    prepared(body)


@pytest.mark.parametrize(
    "error",
    [
        Unreachable("https://server cannot be reached: connection refused"),
        ServerError("etcd is away", code=503),
        TooManyRequests("slow down", retry_after_seconds=20),
        OutcomeUnknown("no whole answer came"),
    ],
)
@pytest.mark.parametrize("role", [Role.ELECTOR, Role.CLOUD])
def test_a_server_in_trouble_at_the_start_is_waited_for(error: KubeError, role: Role) -> None:
    """It says what it waits for, asks less and less often, and leads soon after the first answer."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        replica = Troubled(kernel, cluster.server, role=role, error=error)
        with capture_logs() as lines:
            process = replica.start()
            await asyncio.sleep(300)
            assert not process.dead
            assert replica.autoscaler is not None
            (named,) = replica.autoscaler.unready()
            assert str(error) in named
            assert 10 <= replica.asked <= 60
            replica.healed = True
            await asyncio.sleep(25)
        assert replica.autoscaler.leading
        assert replica.autoscaler.unready() == ()
        told = [line for line in lines if line["event"] == "waiting for the API server"]
        assert len(told) == replica.asked
        assert str(error) in told[0]["error"]

    prepared(body)


@pytest.mark.parametrize(
    "error",
    [
        Unauthorized("who are you"),
        Forbidden("you may not"),
        Untrusted("a certificate of somebody else"),
        ServerError("answered 404 by something that is no Kubernetes API server", code=404),
    ],
)
def test_a_server_that_refuses_us_is_not_waited_for(error: KubeError) -> None:
    """What only a person can correct ends the process at once."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        replica = Troubled(kernel, cluster.server, role=Role.ELECTOR, error=error)
        ended = await replica.start().wait()
        assert ended.error is error
        assert replica.asked == 1

    prepared(body)


class Troubled(Replica):
    """Whose calls over one of its connections fail until it is healed."""

    def __init__(self, kernel: Kernel, server: MemoryServer, *, role: Role, error: KubeError) -> None:
        super().__init__(kernel, server)
        self.role, self.error = role, error
        self.healed = False
        self.asked = 0

    @contextlib.asynccontextmanager
    async def _connected(self, *given: Any) -> AsyncIterator[Api]:
        async with super()._connected(*given) as api:
            if given[2] is self.role:
                self._break(api)
            yield api

    def _break(self, api: Any) -> None:
        get = api.get

        async def broken(*args: Any, **options: Any) -> Any:
            if self.healed:
                return await get(*args, **options)
            self.asked += 1
            raise self.error

        api.get = broken


def test_a_cluster_without_namespace_or_definitions_is_refused() -> None:
    """Each says what is missing and the command that makes it."""

    async def body(kernel: Kernel, cluster: SimCluster) -> str:
        return str((await Replica(kernel, cluster.server).start().wait()).error)

    assert "kubectl create namespace growth" in prepared(body, namespace="other")
    assert "growth crds | kubectl apply -f -" in prepared(body, crds=False)


def test_a_cloud_in_another_cluster_is_refused() -> None:
    """A kubeconfig of the cloud that leads elsewhere is told, before a machine is made there."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        elsewhere = MemoryApi(MemoryServer(cluster.clock, SimRandom(2, "elsewhere")), user="growth-kwok")

        class Astray(Replica):
            """Its cloud is connected to the other cluster."""

            @contextlib.asynccontextmanager
            async def _connected(self, *given: Any) -> AsyncIterator[Api]:
                async with super()._connected(*given) as api:
                    yield elsewhere if given[2] is Role.CLOUD else api

        error = (await Astray(kernel, cluster.server).start().wait()).error
        assert isinstance(error, Refused)
        assert "correct --kwok-kubeconfig" in str(error)

    prepared(body)


def test_observing_takes_no_lease_and_writes_decisions_only() -> None:
    """Beside a Karpenter at work it says what it would buy, and neither takes the Lease nor writes anything else."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        renewed = print_micro_time(cluster.clock.now())
        lease: Json = {"metadata": {"name": names.KARPENTER_LEADER_LEASE}, "spec": {"renewTime": renewed}}
        await cluster.admin.create(LEASE, lease, namespace="kube-system")
        await cluster.admin.create(NODE_POOL, node_pool())
        await cluster.admin.create(KWOK_NODE_CLASS, {"metadata": {"name": "default"}, "spec": {}})
        replica = Replica(kernel, cluster.server, settings=settings_of(observe="true"))
        process = replica.start()
        await cluster.add_replica_set("web", 5)
        await asyncio.sleep(120)
        assert not process.dead
        assert replica.autoscaler is not None
        assert replica.autoscaler.unready() == ()
        assert (await cluster.admin.list(LEASE, namespace="growth")).items == ()
        assert (await cluster.admin.list(NODE_CLAIM)).items == ()
        decisions = (await cluster.admin.list(DECISION)).items
        assert "WouldAct" in {each.spec.outcome for each in decisions}
        assert cluster.server.statistics().writes["growth"] == len(decisions)
        assert "growth-kwok" not in cluster.server.statistics().writes

    prepared(body)


def test_the_lock_on_observing_lets_decisions_through_and_nothing_else() -> None:
    """Whatever a controller tries, only Decisions are written."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        api = ObservingApi(MemoryApi(cluster.server, user="growth"))
        await cluster.add_node("one")
        for attempt in (
            api.create(NAMESPACE, {"metadata": {"name": "x"}}),
            api.patch(NODE, "one", {"metadata": {"labels": {"a": "b"}}}),
            api.update(NODE, "one", {}),
            api.delete(NODE, "one"),
            api.evict("p", namespace="default"),
            api.bind("p", namespace="default", node="one"),
        ):
            with pytest.raises(Forbidden, match="only observes"):
                await attempt
        spec = {"at": "2030-01-01T00:00:00Z", "controller": "provisioning", "outcome": "Nothing", "summary": "x"}
        made = await api.create(DECISION, {"metadata": {"name": "d"}, "spec": spec})
        await api.delete(DECISION, made.metadata.name)
        assert cluster.server.statistics().writes["growth"] == 2

    prepared(body)


def test_the_clusters_identity_is_its_own() -> None:
    """It follows from the UID of kube-system: the same for every replica, short enough for a label."""

    async def body(kernel: Kernel, cluster: SimCluster) -> None:
        first, again = await identity_of(cluster.admin), await identity_of(cluster.admin)
        assert first == again
        assert len(first) == 10

    prepared(body)
