"""The scripts by which machines join, run in a shell with stubs in place of what they call."""

import dataclasses
import os
import pathlib
import subprocess

import pytest
import yaml

from growth.api.nodeclasses import HetznerUserData, SecretReference
from growth.providers.userdata import JOIN_LOG, JOIN_SCRIPT, LINODE, Joining, Vendor, render

VALUES = {
    "k3s": {"server": "https://10.0.0.2:6443", "caHash": "ab" * 32},
    "kubeadm": {"apiServerEndpoint": "10.0.0.2:6443", "caCertHashes": "ab" * 32},
}
# Each stub writes down that it was called, with what; a stub fails as often as its counter says.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> {root}/calls
left=$(cat {root}/fails-$(basename "$0") 2>/dev/null || echo 0)
if [ "$left" -gt 0 ]; then echo $((left - 1)) > {root}/fails-$(basename "$0"); echo "stub: no luck" >&2; exit 22; fi
{does}
"""
INSTALLER = 'echo "installer $INSTALL_K3S_EXEC" >> {root}/calls'
DOES = {
    "curl": """case "$*" in
*get.k3s.io*) echo '{installer}';;
*token*) echo secret;;
*instance-id*) echo 4711;;
*) echo "id: 4711";;
esac""",
    "kubeadm": "",
    "sleep": "",
    "poweroff": "",
}


@dataclasses.dataclass
class Machine:
    root: pathlib.Path
    script: pathlib.Path
    shell: str

    def run(self, **fails: int) -> int:
        for name, times in fails.items():
            (self.root / f"fails-{name}").write_text(str(times))
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        done = subprocess.run(
            [self.shell, self.script], env={"PATH": path}, capture_output=True, text=True, check=False
        )
        self.console = done.stderr
        return done.returncode

    def calls(self, start: str) -> list[str]:
        return [each for each in (self.root / "calls").read_text().splitlines() if each.startswith(start)]

    @property
    def log(self) -> str:
        return pathlib.Path(f"{self.root}{JOIN_LOG}").read_text()


def machine(
    root: pathlib.Path, mode: str, *, shell: str = "sh", vendor: Vendor | None = None, prepare: str = ""
) -> Machine:
    """Its files below `root`, and stubs of all that leaves the script."""
    plain = Joining(name="default-x1", labels={}, taints=(), max_pods=110, values={**VALUES[mode], "prepare": prepare})
    told = dataclasses.replace(plain, credential="abcdef.0123456789abcdef", vendor=vendor or plain.vendor)
    document = yaml.safe_load(render(HetznerUserData(mode=mode, secret_ref=SecretReference(name="join")), told))
    places = ("/etc/", "/var/log/")
    for each in document["write_files"]:
        path = pathlib.Path(f"{root}{each['path']}")
        path.parent.mkdir(parents=True, exist_ok=True)
        text = each["content"]
        for place in places:
            text = text.replace(f" {place}", f" {root}{place}").replace(f"={place}", f"={root}{place}")
        path.write_text(text)
    (root / "var/log").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "calls").write_text("")
    for name, does in DOES.items():
        stub = root / "bin" / name
        inner = does.replace("{installer}", INSTALLER.format(root=root))
        stub.write_text(STUB.format(root=root, does=inner))
        stub.chmod(0o755)
    return Machine(root, pathlib.Path(f"{root}{JOIN_SCRIPT}"), shell)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("mode", VALUES)
@pytest.mark.parametrize("vendor", [None, LINODE], ids=["hetzner", "linode"])
def test_a_machine_joins_at_once_where_nothing_fails(
    tmp_path: pathlib.Path, mode: str, shell: str, vendor: Vendor | None
) -> None:
    """One attempt, with its own number as provider ID, and the machine stays on."""
    one = machine(tmp_path, mode, shell=shell, vendor=vendor)
    assert one.run() == 0
    assert len(one.calls("installer agent" if mode == "k3s" else "kubeadm join")) == 1
    assert one.calls("poweroff") == one.calls("sleep") == []
    if mode == "k3s":
        told = (tmp_path / "etc/rancher/k3s/config.yaml.d/50-provider-id.yaml").read_text()
        assert told.strip().endswith("://4711")


@pytest.mark.parametrize(("mode", "fails"), [("k3s", "curl"), ("kubeadm", "curl"), ("kubeadm", "kubeadm")])
def test_what_fails_is_tried_again(tmp_path: pathlib.Path, mode: str, fails: str) -> None:
    """Later and later, and the machine joins."""
    one = machine(tmp_path, mode)
    assert one.run(**{fails: 3}) == 0
    assert one.calls("sleep")[:1] == ["sleep 10"]
    assert one.calls("poweroff") == []
    assert "stub: no luck" in one.log


@pytest.mark.parametrize(("mode", "fails"), [("k3s", "curl"), ("kubeadm", "curl"), ("kubeadm", "kubeadm")])
def test_a_machine_that_cannot_join_says_so_and_goes_off(tmp_path: pathlib.Path, mode: str, fails: str) -> None:
    """The script fails, its log and the console have the last words, and the machine is off."""
    one = machine(tmp_path, mode)
    assert one.run(**{fails: 1000}) != 0
    assert one.calls("poweroff") == ["poweroff "]
    assert one.calls("installer") == []
    assert "stub: no luck" in one.log
    assert "stub: no luck" in one.console
    assert "could not join the cluster" in one.console
    assert one.calls("sleep") == [f"sleep {seconds}" for seconds in (10, 30, 60, 120, 0)]


def test_an_empty_download_is_no_installer(tmp_path: pathlib.Path) -> None:
    """A proxy that answers with nothing is a failure."""
    one = machine(tmp_path, "k3s")
    stub = tmp_path / "bin" / "curl"
    stub.write_text(stub.read_text().replace(INSTALLER.format(root=tmp_path), "").replace("echo ''", ":"))
    assert one.run() != 0
    assert one.calls("poweroff") == ["poweroff "]


def test_what_fails_in_preparation_ends_the_attempt(tmp_path: pathlib.Path) -> None:
    """The shell commands of the Secret are part of an attempt."""
    one = machine(tmp_path, "k3s", prepare="kubeadm prepare")
    assert one.run(kubeadm=2) == 0
    assert len(one.calls("kubeadm prepare")) == 3
    assert len(one.calls("installer")) == 1
