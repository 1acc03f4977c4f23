"""`growth run` on a real API server: how it starts, stops, hands over and refuses."""

import asyncio
import datetime as dt
import json
import pathlib
import signal

import pytest
import yaml

from growth.api import names
from growth.api.crds import all_crds
from growth.units import print_micro_time
from tests.cluster.lossy import LossyProxy
from tests.cluster.servers import Server
from tests.good_objects import KWOK_CLASS, need, node_pool
from tests.running import PATIENCE_SECONDS, growth_run, until
from tools.controlplane.plane import Plane

# Quicker than the default, and yet long enough that a busy machine renews it in time.
QUICK_LEASE = ("--lease-duration", "10s", "--renew-deadline", "9s", "--retry-period", "1s")


@pytest.fixture(scope="module")
def home(apiserver: Plane) -> Plane:
    """A server with our definitions and our namespace."""
    server = Server(apiserver)
    server.install(all_crds())
    server.kubectl("create", "namespace", "growth")
    return apiserver


def holder(plane: Plane) -> str:
    found = Server(plane).kubectl(
        "get", "lease", "-n", "growth", names.LEADER_LEASE, "-o", "json", "--ignore-not-found"
    )
    return str(json.loads(found)["spec"].get("holderIdentity", "")) if found else ""


def test_it_leads_answers_probes_and_gives_the_lease_back(home: Plane) -> None:
    """Ready and leading soon after its start; SIGTERM ends it with 0 and the Lease is free."""
    with growth_run(home) as growth:
        growth.wait_for("leading")
        until(lambda: growth.get("/readyz")[0] == 200, what="ready", of=growth)
        assert growth.get("/healthz") == (200, "ok\n")
        status, text = growth.get("/metrics")
        assert status == 200
        assert "growth_leading 1.0" in text
        assert "growth_build_info{" in text
        assert growth.stop() == 0
        assert holder(home) == ""
        assert growth.lines("stopped")


def test_the_second_replica_takes_over_at_once_when_the_first_stops(home: Plane) -> None:
    """One of two leads; the other is ready all the while, and leads within a few retries when the Lease is given back."""
    with growth_run(home, *QUICK_LEASE) as first:
        first.wait_for("leading")
        with growth_run(home, *QUICK_LEASE) as second:
            until(lambda: second.get("/readyz")[0] == 200, what="a warm standby", of=second)
            assert not second.lines("leading")
            assert first.stop(signal.SIGINT) == 0
            second.wait_for("leading")
            assert second.stop() == 0


def test_the_second_replica_takes_over_when_the_first_is_killed(home: Plane) -> None:
    """After `kill -9` the Lease runs out and the other leads: within 20 s with the default times, here quicker."""
    with growth_run(home, *QUICK_LEASE) as first:
        first.wait_for("leading")
        with growth_run(home, *QUICK_LEASE) as second:
            second.wait_for("waiting for the lease")
            first.stop(signal.SIGKILL)
            second.wait_for("leading")


def test_a_lost_lease_ends_the_process_with_1(home: Plane) -> None:
    """When another holds the Lease the process is gone within its deadline, with a line that says why."""
    with growth_run(home, *QUICK_LEASE) as growth:
        growth.wait_for("leading")
        taken = {
            "spec": {
                "holderIdentity": "thief",
                "leaseDurationSeconds": 10,
                "renewTime": print_micro_time(dt.datetime.now(dt.UTC)),
            }
        }
        Server(home).kubectl(
            "patch", "lease", "-n", "growth", names.LEADER_LEASE, "--type=merge", "-p", json.dumps(taken)
        )
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        (line,) = growth.lines("lease lost")
        assert "thief holds the lease" in line["error"]


def test_a_server_that_is_away_at_the_start_is_waited_for(home: Plane, tmp_path: pathlib.Path) -> None:
    """Nobody lets it in at first: it says so, is not ready, and leads soon after the door is open."""

    async def law() -> None:
        async with LossyProxy.before(home.url) as proxy:
            proxy.block()
            config = json.loads(home.kubeconfig_of("growth").read_text())
            config["clusters"][0]["cluster"]["server"] = proxy.url
            path = tmp_path / "kubeconfig"
            path.write_text(json.dumps(config))
            with growth_run(home, *QUICK_LEASE, kubeconfig=path) as growth:
                told = await asyncio.to_thread(growth.wait_for, "waiting for the API server")
                assert told["unknown"] == "which cluster this is"
                assert (await asyncio.to_thread(growth.get, "/readyz"))[0] == 503
                proxy.unblock()
                await asyncio.to_thread(growth.wait_for, "leading")
                assert await asyncio.to_thread(growth.stop) == 0

    asyncio.run(law())


def test_a_server_whose_certificate_nobody_vouches_for_is_refused_with_1(home: Plane, tmp_path: pathlib.Path) -> None:
    """Waiting would not help: one line names the server and what is wrong with its certificate."""
    config = json.loads(home.kubeconfig_of("growth").read_text())
    for key in ("certificate-authority", "certificate-authority-data"):
        config["clusters"][0]["cluster"].pop(key, None)
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    with growth_run(home, kubeconfig=path) as growth:
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        last = growth.text().splitlines()[-1]
        assert last.startswith(f"growth: {home.url} shows a certificate that"), last
        assert not growth.lines("waiting for the API server")


def test_a_cluster_that_is_not_prepared_is_refused_with_1(home: Plane) -> None:
    """A missing namespace is named, with the command that makes it."""
    with growth_run(home, "--namespace", "nowhere") as growth:
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        last = growth.text().splitlines()[-1]
        assert last.startswith("growth: there is no namespace nowhere")
        assert "kubectl create namespace nowhere" in last


def test_a_user_without_rights_is_told_which_and_where_to_get_them(home: Plane) -> None:
    """The user, what it may not do, and the command that prints the roles; exit code 1."""
    with growth_run(home, kubeconfig=home.kubeconfig_of("nobody")) as growth:
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        last = growth.text().splitlines()[-1]
        assert last.startswith("growth: user 'nobody' may not get namespaces")
        assert "growth rbac" in last


def test_it_refuses_beside_karpenter_and_only_looks_on_when_asked_to(home: Plane) -> None:
    """While Karpenter renews its Lease and a pool is ours: one line and exit code 1; with --observe it starts."""
    server = Server(home)
    pool = node_pool(need("kubernetes.io/arch", "In", "amd64"), node_class=KWOK_CLASS)
    # It goes on renewing: until the end of this test the Lease is never old, however long a start takes.
    renewed = print_micro_time(dt.datetime.now(dt.UTC) + dt.timedelta(hours=1))
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": names.KARPENTER_LEADER_LEASE, "namespace": "kube-system"},
        "spec": {"holderIdentity": "karpenter", "renewTime": renewed, "leaseDurationSeconds": 15},
    }
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([pool, lease]))
    with growth_run(home) as growth:
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        last = growth.text().splitlines()[-1]
        assert last.startswith(
            "growth: Karpenter is at work in this cluster (Lease kube-system/karpenter-leader-election"
        )
        assert "NodePool example is of KWOKNodeClass" in last
    with growth_run(home, "--observe") as growth:
        growth.wait_for("observing")
        until(lambda: growth.get("/readyz")[0] == 200, what="ready", of=growth)
        assert growth.stop() == 0
    server.kubectl("delete", "lease", "-n", "kube-system", names.KARPENTER_LEADER_LEASE)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "karpenter-0", "namespace": "default", "labels": {names.APP_NAME_LABEL: "karpenter"}},
        "spec": {"containers": [{"name": "main", "image": "example"}]},
    }
    server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(pod))
    running = json.dumps({"status": {"phase": "Running"}})
    server.kubectl("patch", "pod", "karpenter-0", "--subresource=status", "--type=merge", "-p", running)
    with growth_run(home) as growth:
        assert growth.process.wait(PATIENCE_SECONDS) == 1
        assert "(Pod default/karpenter-0 is Running)" in growth.text()
