"""`growth run --provider linode --linode-region` on a real control plane, with a fake of Linode's API and the rights that
`growth rbac` prints for instances: fifty pods up and down.
"""

import base64
import dataclasses

import yaml

from bench.owning.autoscaler import QUICK
from growth.api.kinds import Json
from growth.ports import SystemClock, SystemRandom
from growth.sim.clouds.linode import FakeSettings, LinodeFake
from growth.sim.clouds.linode.rates import Rate
from growth.sim.clouds.linode.serving import serving
from tests.cluster.test_least_rights import acting_as
from tests.cluster.test_linode_end_to_end import DEFAULT, GENERAL, MANY, QUICKLY
from tests.cluster.vendors import BATCH, WEB, prepared, running
from tests.hetzner import on_a_thread
from tests.linode import TOKEN
from tests.running import growth_alone, until
from tools.controlplane.plane import Plane

CLASS: Json = {
    "apiVersion": "karpenter.k8s.linode/v1alpha1",
    "kind": "LinodeNodeClass",
    "metadata": {"name": "default"},
    "spec": {
        "tags": ["team:web"],
        "userData": {"mode": "kubeadm", "secretRef": {"name": "join"}, "cloudProvider": "none"},
    },
}
SECRET: Json = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "join", "namespace": "growth"},
    "stringData": {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": "sha256:" + "ab" * 32},
}


def test_from_the_first_pod_to_an_empty_account(plane: Plane) -> None:
    """Each machine joins by user data with a credential of its own; nothing is left, and no token or credential anywhere."""
    server = prepared(plane, "linode-instances")
    rates = dataclasses.replace(MANY, purchases=Rate(2000, 15.0))
    settings = FakeSettings(tokens=frozenset({TOKEN}), times=QUICKLY, rates=rates)
    fake = LinodeFake(clock=SystemClock(), random=SystemRandom(), settings=settings)

    def condition() -> Json:
        (found,) = server.items("linodenodeclasses")
        return next((each for each in found.get("status", {}).get("conditions", ()) if each["type"] == "Ready"), {})

    with (
        on_a_thread(lambda: serving(fake)) as url,
        growth_alone(
            acting_as(plane, "growth"),
            *QUICK,
            *("--api-endpoint", url, "--linode-region", "us-ord", "--catalogue-period", "2s", "--validation", "2s"),
            provider="linode",
            LINODE_TOKEN=TOKEN,
        ) as growth,
    ):
        server.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([SECRET, CLASS, DEFAULT, GENERAL, WEB, BATCH]))
        until(lambda: running(server) == 50, what="fifty running pods", of=growth)
        ready = condition()
        assert (ready["status"], ready.get("message", "")) == ("True", "")
        machines = {f"linode://{each.id}": each for each in fake.machines()}
        nodes = {each["spec"]["providerID"]: each for each in server.items("nodes")}
        assert nodes.keys() <= machines.keys()
        assert all(machines[each].label == node["metadata"]["name"] for each, node in nodes.items())
        assert all("team:web" in each.tags and "kubeadm join" in each.user_data for each in machines.values())
        tokens = [each for each in server.items("secrets", "-n", "kube-system") if "bootstrap" in each["type"]]
        secrets = [base64.b64decode(each["data"]["token-secret"]).decode() for each in tokens]
        assert len(secrets) >= len(machines)
        assert all(any(each in machine.user_data for each in secrets) for machine in machines.values())
        server.kubectl("patch", "linodenodeclass", "default", "--type=merge", "-p", '{"spec":{"tags":["team:api"]}}')
        until(
            lambda: all("team:api" in each.tags and "team:web" not in each.tags for each in fake.machines()),
            what="the tags in place",
            of=growth,
        )
        assert {f"linode://{each.id}" for each in fake.machines()} <= machines.keys()

        server.kubectl("delete", "deployment", "web", "batch")
        until(lambda: not fake.machines() and not server.items("nodeclaims"), what="an empty account", of=growth)
        until(lambda: not server.items("nodes"), what="no Node", of=growth)
        assert fake.ledger.standing == ()
        assert growth.stop() == 0
        text = growth.text()
    told = server.kubectl("get", "events,nodeclaims,nodepools,growthpools,linodenodeclasses", "-A", "-o", "yaml")
    assert "orbidden" not in text
    for each in (TOKEN[:16], *secrets):
        assert each not in text
        assert each not in told
    assert "UnregisteredTaintMissing" not in told
