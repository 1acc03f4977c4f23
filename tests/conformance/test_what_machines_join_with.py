"""User data of machines at Hetzner and Linode, held to the vendors' own code: cloud-init's schema, kubeadm's and Talos' validation, and
how k3s' agents and kubelets read what they are told.
"""

import dataclasses
import re
from typing import Any

import pytest
import yaml

from growth.api.nodeclasses import HetznerUserData, SecretReference
from growth.api.placement import Taint
from growth.providers.userdata import LINODE, NUMBER, Joining, render
from tools.joining import complaint
from tools.joining import k3s as vendors_k3s
from tools.joining.cloudinit import complaints

HASH = "ab" * 32
MACHINES = {
    "a plain one": Joining(
        name="default-x1",
        labels={"growth.dev/pool": "default", "node.kubernetes.io/instance-type": "cx33"},
        taints=(Taint(key="karpenter.sh/unregistered", effect="NoExecute"),),
        max_pods=110,
        values={},
        credential="abcdef.0123456789abcdef",
    ),
    "one at Linode": Joining(
        name="default-x2",
        labels={"karpenter.sh/nodepool": "default"},
        taints=(Taint(key="karpenter.sh/unregistered", effect="NoExecute"),),
        max_pods=110,
        values={},
        credential="abcdef.0123456789abcdef",
        vendor=LINODE,
    ),
    "one with a lot to say": Joining(
        name="a" * 63,
        labels={f"example.com/label-{number}": "v" * 63 for number in range(50)},
        taints=(
            Taint(key="karpenter.sh/unregistered", effect="NoExecute"),
            *(Taint(key=f"example.com/taint-{number}", value="v", effect="NoSchedule") for number in range(30)),
        ),
        max_pods=250,
        values={},
        credential="abcdef.0123456789abcdef",
    ),
}
PREPARE = "apt-get update\napt-get install -y kubeadm  # 'quoted' \"twice\" $HOME `id`"
# A worker's document as Talos' own generator makes it, with secrets that open nothing.
CERTIFICATE = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCi0tLS0tRU5EIENFUlRJRklDQVRFLS0tLS0K"
TALOS = f"""
version: v1alpha1
machine:
  type: worker
  token: 1a2b3c.0123456789abcdef
  ca: {{crt: {CERTIFICATE}, key: ""}}
  kubelet:
    image: ghcr.io/siderolabs/kubelet:v1.34.0
  install: {{disk: /dev/sda}}
cluster:
  id: 0raF93qnkMvF-FZNuvyGozXNdLiT2FOWSlyBaW4PR-w=
  secret: pofHbABZq7VXuObsdLdy/bHmz6hlMHZ3p8+6WKrv1ic=
  controlPlane: {{endpoint: "https://10.0.0.2:6443"}}
  clusterName: example
  network: {{dnsDomain: cluster.local, podSubnets: [10.244.0.0/16], serviceSubnets: [10.96.0.0/12]}}
  token: 4d5e6f.0123456789abcdef
  ca: {{crt: {CERTIFICATE}, key: ""}}
"""


def made(mode: str, machine: Joining, *, cloud_provider: str = "external", **values: str) -> str:
    asked = HetznerUserData(mode=mode, secret_ref=SecretReference(name="join"), cloud_provider=cloud_provider)
    text = render(asked, dataclasses.replace(machine, values=values))
    assert len(text.encode()) <= machine.vendor.largest
    return text


def k3s(machine: Joining, **more: Any) -> str:
    return made("k3s", machine, server="https://10.0.0.2:6443", caHash=HASH, prepare=PREPARE, **more)


def kubeadm(machine: Joining, **more: Any) -> str:
    return made("kubeadm", machine, apiServerEndpoint="10.0.0.2:6443", caCertHashes=HASH, prepare=PREPARE, **more)


def written(text: str) -> dict[str, str]:
    return {each["path"]: each["content"] for each in yaml.safe_load(text)["write_files"]}


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("cloud_provider", ["external", "none"])
def test_cloud_init_takes_the_documents(machine: Joining, cloud_provider: str) -> None:
    """Its schema has no complaint, and finds one in a document that is spoiled."""
    for text in (k3s(machine, cloud_provider=cloud_provider), kubeadm(machine, cloud_provider=cloud_provider)):
        document = yaml.safe_load(text)
        assert complaints(document) == []
        assert complaints({**document, "runcmd": 7}) != []
        spoiled = [{**document["write_files"][0], "permissions": 600}]
        assert complaints({**document, "write_files": spoiled}) != []


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("cloud_provider", ["external", "none"])
def test_kubeadm_takes_its_configuration(machine: Joining, cloud_provider: str) -> None:
    """As it is once the machine has filled in its number; kubeadm complains of one that is spoiled."""
    config = written(kubeadm(machine, cloud_provider=cloud_provider))["/etc/kubernetes/growth-join.yaml"]
    filled = config.replace(NUMBER, "4711")
    assert complaint("kubeadm", filled) == ""
    assert "token" in complaint("kubeadm", filled.replace(machine.credential, "no token"))
    assert "unknown field" in complaint("kubeadm", filled.replace("nodeRegistration:", "nodeRegistrations:"))


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_talos_takes_its_document(machine: Joining) -> None:
    """Its own validation, strictly: no field that it does not know, and a complaint about one that is spoiled."""
    text = made("talos", machine, machineConfig=TALOS)
    assert complaint("talos", text) == ""
    assert complaint("talos", text.replace("nodeLabels:", "nodeLables:")) != ""


def k3s_files(machine: Joining, cloud_provider: str) -> tuple[str, str]:
    """The agent's configuration, and the addition that the machine writes at boot once it has its number."""
    files = written(k3s(machine, cloud_provider=cloud_provider))
    script = files["/usr/local/sbin/growth-join"]
    assert "\n".join(machine.vendor.number) in script
    (added,) = re.findall(r"""printf '(.+)' "\$id" > /etc/rancher/k3s/config\.yaml\.d/""", script)
    return files["/etc/rancher/k3s/config.yaml"], added.replace("\\n", "\n").replace("%s", "4711")


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("cloud_provider", ["external", "none"])
def test_k3s_has_every_flag_that_its_configuration_names(machine: Joining, cloud_provider: str) -> None:
    """Those of its own list; an agent reads the whole, and complains of a flag or a value that is spoiled."""
    config, added = k3s_files(machine, cloud_provider)
    known = vendors_k3s.flags()
    assert yaml.safe_load(config).keys() <= known
    assert {each.removesuffix("+") for each in yaml.safe_load(added)} <= known
    assert "node-lable" not in known
    assert vendors_k3s.agent(config, added).complaint == ""
    assert "node-lable" in vendors_k3s.agent(config.replace("node-label:", "node-lable:"), added).complaint
    assert "with-node-id" in vendors_k3s.agent(config, added + "with-node-id: perhaps\n").complaint


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("cloud_provider", ["external", "none"])
def test_kubelets_below_k3s_take_their_arguments(machine: Joining, cloud_provider: str) -> None:
    """What is written at boot is added to the rest and replaces none of it; a kubelet complains of one that is spoiled."""
    told = vendors_k3s.agent(*k3s_files(machine, cloud_provider)).kubelet
    external = {"cloud-provider=external"} if cloud_provider == "external" else set()
    assert {*told} == {f"max-pods={machine.max_pods}", f"provider-id={machine.vendor.scheme}4711", *external}
    taken_by_kubelets([f"--{each}" for each in told])


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("cloud_provider", ["external", "none"])
def test_kubelets_below_kubeadm_take_their_arguments(machine: Joining, cloud_provider: str) -> None:
    """kubeadm hands them on without a look; a kubelet complains of one that is spoiled."""
    config = written(kubeadm(machine, cloud_provider=cloud_provider))["/etc/kubernetes/growth-join.yaml"]
    asked = yaml.safe_load(config.replace(NUMBER, "4711"))["nodeRegistration"]["kubeletExtraArgs"]
    taken_by_kubelets([f"--{each['name']}={each['value']}" for each in asked])


@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
def test_kubelets_of_talos_take_their_arguments(machine: Joining) -> None:
    """Talos hands them on without a look; a kubelet complains of one that is spoiled."""
    asked = yaml.safe_load(made("talos", machine, machineConfig=TALOS))["machine"]["kubelet"]["extraArgs"]
    taken_by_kubelets([f"--{name}={value}" for name, value in asked.items()])


def taken_by_kubelets(arguments: list[str]) -> None:
    assert arguments
    assert complaint("kubelet", "\n".join(arguments)) == ""
    for each in arguments:
        spoiled = each.replace("=", "s=", 1)
        assert "unknown flag" in complaint("kubelet", "\n".join([*arguments, spoiled]))
