"""Karpenter's own KWOK controller: a whole autoscaler on simulated machines, as a program to run beside a control plane.

It is `sigs.k8s.io/karpenter/kwok` of the release that `go.mod` pins, unchanged, and its own definitions of its kinds. It
creates the Nodes itself, as its own user; the kwok controller plays their kubelets.
"""

import json
import pathlib
import subprocess
from typing import Final

from bench.peers.karpenter import FLAGS, HERE
from growth.api.kinds import Json
from tools.gobuild import Build, keyed_folder

CONTROLLER: Final = "karpenter-kwok"
DEFINITIONS: Final = "karpenter-crds"


def controller() -> pathlib.Path:
    """The program, built if it is not in the cache. `tools.gobuild.BuildError` where that fails."""
    return _build().run() / CONTROLLER


def definitions() -> list[Json]:
    """Its CustomResourceDefinitions."""
    done = subprocess.run([_build().run() / DEFINITIONS], capture_output=True, check=True)
    found: list[Json] = json.loads(done.stdout)
    return found


def built() -> bool:
    """Whether the programs are in the cache."""
    return not _build().missing()


def _build() -> Build:
    sources = [HERE / "go.mod", HERE / "go.sum", HERE / "crds" / "main.go"]
    return Build(
        name="karpenter-kwok",
        module=HERE,
        programs={CONTROLLER: "sigs.k8s.io/karpenter/kwok", DEFINITIONS: "./crds"},
        target=keyed_folder(
            "peer-karpenter-kwok", [*(path.read_bytes() for path in sources), " ".join(FLAGS).encode()]
        ),
        flags=FLAGS,
        expected="once; about two minutes after the control plane, more with empty Go caches",
    )
