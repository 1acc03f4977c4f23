"""User data of Hetzner machines: what each distribution is told, and what is refused before a machine is bought."""

from typing import Any

import pytest
import yaml

from growth.api.nodeclasses import HetznerUserData, SecretReference
from growth.api.placement import Taint
from growth.providers.userdata import (
    LARGEST,
    Joining,
    UserDataError,
    kubelets_labels,
    own_credential,
    render,
)
from growth.telemetry.redaction import redacted_text

TAINTS = (
    Taint(key="karpenter.sh/unregistered", effect="NoExecute"),
    Taint(key="team", value="a", effect="NoSchedule"),
)
HASH = "ab" * 32
MACHINE = """
version: v1alpha1
machine:
  type: worker
  token: shared.token
  kubelet: {extraArgs: {rotate-server-certificates: "true"}}
cluster:
  controlPlane: {endpoint: "https://10.0.0.2:6443"}
---
apiVersion: v1alpha1
kind: WatchdogTimerConfig
device: /dev/watchdog0
"""


def asked(mode: str, *, cloud_provider: str = "external") -> HetznerUserData:
    return HetznerUserData(mode=mode, secret_ref=SecretReference(name="join-token"), cloud_provider=cloud_provider)


def joining(credential: str = "abcdef.0123456789abcdef", **values: str) -> Joining:
    return Joining(
        name="default-x1",
        labels={"growth.dev/pool": "default", "node.kubernetes.io/instance-type": "cx33"},
        taints=TAINTS,
        max_pods=110,
        values=values,
        credential=credential,
    )


def files(text: str) -> dict[str, Any]:
    assert text.startswith("#cloud-config\n")
    document = yaml.safe_load(text)
    assert document["runcmd"] == [["/usr/local/sbin/growth-join"]]
    assert all(each["permissions"] in {"0600", "0700"} for each in document["write_files"])
    return {each["path"]: each["content"] for each in document["write_files"]}


def test_k3s_agents_are_told_server_token_labels_and_taints() -> None:
    """With the CA's hash the token trusts that server only; the provider ID is the machine's own number."""
    made = files(render(asked("k3s"), joining(server="https://10.0.0.2:6443", caHash=HASH, version="v1.35.1+k3s1")))
    config = yaml.safe_load(made["/etc/rancher/k3s/config.yaml"])
    assert config == {
        "server": "https://10.0.0.2:6443",
        "token": f"K10{HASH}::abcdef.0123456789abcdef",
        "node-name": "default-x1",
        "node-label": ["growth.dev/pool=default", "node.kubernetes.io/instance-type=cx33"],
        "node-taint": ["karpenter.sh/unregistered:NoExecute", "team=a:NoSchedule"],
        "kubelet-arg": ["max-pods=110", "cloud-provider=external"],
    }
    script = made["/usr/local/sbin/growth-join"]
    assert "provider-id=hcloud://" in script
    assert "INSTALL_K3S_EXEC=agent INSTALL_K3S_VERSION=v1.35.1+k3s1 sh -" in script


def test_a_shared_token_is_used_where_the_secret_has_one() -> None:
    """Then no token of the machine's own is made."""
    values = {"server": "https://10.0.0.2:6443", "token": "K10aa::server:secret"}
    assert own_credential(asked("k3s"), values) == ""
    assert own_credential(asked("k3s"), {}).startswith("system:bootstrappers:")
    assert own_credential(asked("talos"), {}) == ""
    config = yaml.safe_load(files(render(asked("k3s"), joining("", **values)))["/etc/rancher/k3s/config.yaml"])
    assert config["token"] == "K10aa::server:secret"


def test_without_a_cloud_controller_the_kubelet_is_not_told_of_one() -> None:
    """Otherwise its Node would wait for ever to be initialised."""
    for mode, values in (
        ("k3s", {"server": "https://10.0.0.2:6443"}),
        ("kubeadm", {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": HASH}),
    ):
        assert "cloud-provider" in render(asked(mode), joining(**values))
        assert "cloud-provider" not in render(asked(mode, cloud_provider="none"), joining(**values))


def test_kubeadm_joins_by_a_configuration_with_its_number_filled_in() -> None:
    """CA hashes are pinned, whatever way they are listed; the file with the token does not stay."""
    values = {
        "apiServerEndpoint": "10.0.0.2:6443",
        "caCertHashes": f"sha256:{HASH}\n{HASH}",
        "prepare": "apt-get -y update",
    }
    made = files(render(asked("kubeadm"), joining(**values)))
    config = yaml.safe_load(made["/etc/kubernetes/growth-join.yaml"])
    assert config["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "10.0.0.2:6443",
        "token": "abcdef.0123456789abcdef",
        "caCertHashes": [f"sha256:{HASH}", f"sha256:{HASH}"],
    }
    assert config["nodeRegistration"]["taints"][1] == {"key": "team", "value": "a", "effect": "NoSchedule"}
    arguments = {each["name"]: each["value"] for each in config["nodeRegistration"]["kubeletExtraArgs"]}
    assert arguments["provider-id"] == "hcloud://@INSTANCE_ID@"
    script = made["/usr/local/sbin/growth-join"].splitlines()
    assert script.index("apt-get -y update") < next(
        at
        for at, line in enumerate(script)
        if line.startswith("kubeadm join --config /etc/kubernetes/growth-join.yaml ")
    )
    assert script[-1] == "rm -f /etc/kubernetes/growth-join.yaml"


def test_talos_gets_its_own_document_with_this_machine_in_it() -> None:
    """What the document says stays, further documents too; hostname, labels, taints and pods are added."""
    machine, watchdog = yaml.safe_load_all(render(asked("talos"), joining(machineConfig=MACHINE)))
    assert machine["machine"]["network"] == {"hostname": "default-x1"}
    assert machine["machine"]["kubelet"]["extraArgs"] == {
        "rotate-server-certificates": "true",
        "cloud-provider": "external",
    }
    assert machine["machine"]["kubelet"]["extraConfig"]["maxPods"] == 110
    assert len(machine["machine"]["kubelet"]["extraConfig"]["registerWithTaints"]) == 2
    assert machine["machine"]["token"] == "shared.token"
    assert watchdog["kind"] == "WatchdogTimerConfig"


def test_raw_is_passed_on_to_the_letter() -> None:
    """Nothing is read into it."""
    text = "#!/bin/sh\necho {{ name }} @INSTANCE_ID@\n"
    assert render(asked("raw"), joining(userData=text)) == text


@pytest.mark.parametrize(
    ("mode", "values", "word"),
    [
        ("k3s", {}, "no key server"),
        ("k3s", {"server": "10.9.9.9:6443"}, "https://"),
        ("k3s", {"server": "https://10.0.0.2:6443", "caHash": "xyz"}, "64 hexadecimal digits"),
        ("k3s", {"server": "https://a", "sever": "x"}, "has key sever"),
        ("kubeadm", {"apiServerEndpoint": "https://10.0.0.2"}, "HOST:PORT"),
        ("kubeadm", {"apiServerEndpoint": "10.0.0.2:6443"}, "no key caCertHashes"),
        ("kubeadm", {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": "secret"}, "sha256:"),
        ("talos", {"machineConfig": "}{"}, "no machine configuration"),
        ("talos", {"machineConfig": "machine: {type: controlplane}"}, "of a worker"),
        ("talos", {"machineConfig": "machine: {type: worker, kubelet: 7}"}, "kubelet is no mapping"),
        ("raw", {"userData": ""}, "no key userData"),
        ("raw", {"userData": "x" * (LARGEST + 1)}, "32769 bytes"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(mode: str, values: dict[str, str], word: str) -> None:
    """The message names the Secret and the key, holds no value of it, and stays whole in logs and events."""
    with pytest.raises(UserDataError, match=word) as told:
        render(asked(mode), joining(**values))
    assert "join" in str(told.value)
    assert not any(len(value) > 5 and value in str(told.value) for value in values.values())
    assert redacted_text(str(told.value)) == str(told.value)


def test_talos_without_a_cloud_controller_is_refused() -> None:
    """Its kubelet could not know the machine's number."""
    with pytest.raises(UserDataError, match="cloud controller manager"):
        render(asked("talos", cloud_provider="none"), joining(machineConfig=MACHINE))


def test_a_kubelet_gives_itself_only_labels_that_it_may() -> None:
    """Others make kubelets end at their start, or are refused by the server."""
    assert kubelets_labels(
        {
            "growth.dev/pool": "a",
            "karpenter.sh/nodepool": "b",
            "topology.kubernetes.io/zone": "fsn1",
            "node.kubernetes.io/instance-type": "cx33",
            "node-role.kubernetes.io/worker": "",
            "kubernetes.io/hostname": "x",
            "example.k8s.io/a": "b",
            "myk8s.io/a": "b",
            "plain": "c",
        }
    ) == {
        "growth.dev/pool": "a",
        "karpenter.sh/nodepool": "b",
        "topology.kubernetes.io/zone": "fsn1",
        "node.kubernetes.io/instance-type": "cx33",
        "myk8s.io/a": "b",
        "plain": "c",
    }


def test_values_cannot_break_out_of_the_document() -> None:
    """What stands in labels, taints and versions is data, in YAML and in the shell."""
    odd = joining(server="https://10.0.0.2:6443", version="v1; rm -rf / #", token="a'b\n\"c: {}")
    made = files(render(asked("k3s"), odd))
    assert "INSTALL_K3S_VERSION='v1; rm -rf / #' sh -" in made["/usr/local/sbin/growth-join"]
    assert yaml.safe_load(made["/etc/rancher/k3s/config.yaml"])["token"] == "a'b\n\"c: {}"


def test_nothing_of_a_secret_is_in_a_repr() -> None:
    """Whoever logs a value by accident shows none."""
    assert "hush" not in repr(joining("hush", token="hush"))
