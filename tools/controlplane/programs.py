"""Which programs make a control plane, and where the built ones are kept.

`KUBEBUILDER_ASSETS` names a folder with ready-made programs and overrides everything. Otherwise they live in the cache
(`tools.gobuild`), in a folder keyed by the pins, the flags and the platform.
"""

import os
import pathlib
from typing import Final

from tools.gobuild import keyed_folder

HERE: Final = pathlib.Path(__file__).parent

# program → Go package. The first two are what an API server alone needs.
PACKAGES: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
    "helm": "helm.sh/helm/v4/cmd/helm",
}


class MissingProgramsError(Exception):
    """Some programs are not there; the message says which, where they were looked for, and what to do."""


def kubernetes_version() -> str:
    """The pinned release, as in `v1.36.3`."""
    for line in (HERE / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == ["k8s.io/kubernetes"]:
            return words[1]
    raise MissingProgramsError(f"{HERE / 'go.mod'} does not pin k8s.io/kubernetes; restore the file")


def go_flags() -> list[str]:
    """Flags of `go build`. Without a stamp the server would call itself v0.0.0-master, and clients would believe it."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    stamp = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    stamps = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamp.items())
    return ["-trimpath", "-buildvcs=false", "-mod=readonly", f"-ldflags=-s -w {stamps}"]


def folder() -> pathlib.Path:
    """Where the programs are, or will be once they are built."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return pathlib.Path(assets)
    pins = ((HERE / "go.mod").read_bytes(), (HERE / "go.sum").read_bytes())
    return keyed_folder("controlplane", (*pins, " ".join(go_flags()).encode()))


def missing() -> list[str]:
    """The programs that are not there yet."""
    return [name for name in PACKAGES if not (folder() / name).exists()]


def program(name: str) -> pathlib.Path:
    """The path of a built program."""
    path = folder() / name
    if not path.exists():
        raise MissingProgramsError(f"{name} is not in {folder()}; build the control plane with `make plane`")
    return path
