"""The reader's rights on a real API server: enough to ask everything, and to change nothing."""

import json

import pytest
import yaml

from growth.api.crds import all_crds
from growth.cli.entry import run
from growth.operator.roles import reader
from tests.cluster.servers import Server
from tests.manifests import node_pool, pod
from tools.controlplane.plane import Plane

READER = "system:serviceaccount:growth:growth-reader"


@pytest.fixture(scope="module")
def config(apiserver: Plane, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A kubeconfig of the reader, in a cluster with a pool that may buy nothing and a pod that waits."""
    server = Server(apiserver)
    server.install(all_crds())
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "growth"}}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": "default"}}
    waits = pod("web", serviceAccountName="default")
    given = [namespace, *reader(namespace="growth"), account, node_pool(limits={"nodes": "0"}), waits]
    server.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": given}))
    server.until_allowed(READER, "list", "pods")
    content = yaml.safe_load(apiserver.kubeconfig.read_text())
    content["users"][0]["user"]["as"] = READER
    path = tmp_path_factory.mktemp("reader") / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return str(path)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("plan", "Today $0.00/month, reachable $0.00/month, 0 moves."),
        ("explain pod web", "limits.nodes is reached (0)"),
        ("explain nodepool default", "NodePool default buys nothing more because limits.nodes is reached (0 of 0)."),
        ("whatif --node-limit default=1", "every pod would have a place."),
    ],
)
def test_whoever_may_read_may_ask(config: str, command: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With the rights of the manifest alone."""
    code = run([*command.split(), "--kubeconfig", config])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert told in said.out


def test_the_reader_changes_nothing(config: str, apiserver: Plane) -> None:
    """Neither what decides about machines nor what runs on them, and no Secret is read."""
    server = Server(apiserver)
    for action in ("delete nodes", "patch nodepools.karpenter.sh", "create pods/eviction", "get secrets"):
        verb, what = action.split()
        done = server._kubectl("auth", "can-i", verb, what, f"--as={READER}", "--all-namespaces")
        assert done.stdout.strip() == "no", action
