"""`growth crds` on a real server."""

import json
import pathlib
import subprocess
import sys

import yaml

from tests.cluster.servers import Server
from tools.controlplane.plane import Plane

BIN = pathlib.Path(sys.prefix) / "bin"
WAIT = "--timeout=180s"
TRIES = 5


def kubectl(plane: Plane, *arguments: str, given: str | None = None) -> str:
    return Server(plane).kubectl(*arguments, stdin=given or "")


def growth_crds(plane: Plane, *arguments: str, user: str = "admin") -> tuple[list[str], str, str]:
    """The names printed, the text itself, and stderr. A cluster that was too busy to answer in time is asked again."""
    command = [str(BIN / "growth"), "crds", "--kubeconfig", str(plane.kubeconfig_of(user)), *arguments]
    for _ in range(TRIES):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if "no answer in" not in done.stderr:
            break
    return [one["metadata"]["name"] for one in yaml.safe_load_all(done.stdout)], done.stdout, done.stderr


def with_field(plane: Plane, name: str, *path: str) -> None:
    """Gives the cluster's definition one property more, below the named ones."""
    steps = "".join("/items" if step == "[]" else f"/properties/{step}" for step in path)
    # A patch and no replacement: the server itself writes to definitions too.
    added = {"op": "add", "path": f"/spec/versions/0/schema/openAPIV3Schema{steps}", "value": {"type": "string"}}
    kubectl(plane, "patch", "crd", name, "--type=json", "-p", json.dumps([added]))


def test_crds_are_established_and_what_is_newer_in_the_cluster_is_left_alone(apiserver: Plane) -> None:
    """A fresh cluster gets everything; one with a newer Karpenter gets everything but the kinds that would lose fields."""
    everything, text, notes = growth_crds(apiserver)
    assert notes == ""
    kubectl(apiserver, "apply", "-f", "-", given=text)
    kubectl(apiserver, "wait", "--for=condition=Established", WAIT, *(f"crd/{name}" for name in everything))

    again, text, notes = growth_crds(apiserver)
    assert (again, notes) == (everything, "")
    assert "created" not in kubectl(apiserver, "apply", "-f", "-", given=text)

    with_field(apiserver, "nodepools.karpenter.sh", "spec", "disruption", "budgets", "[]", "mood")
    with_field(apiserver, "nodeclaims.karpenter.sh", "status", "karma")
    with_field(apiserver, "growthpools.growth.dev", "spec", "leftover")
    kept, _, notes = growth_crds(apiserver)
    assert set(everything) - set(kept) == {"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"}
    left_out = "growth: {} is left out: the cluster's own has {}, unknown to Growth; `--group all` prints it"
    assert notes.splitlines() == [
        left_out.format("nodepools.karpenter.sh", "spec.disruption.budgets[].mood"),
        left_out.format("nodeclaims.karpenter.sh", "status.karma"),
    ]
    unasked, _, notes = growth_crds(apiserver, "--group", "all")
    assert (unasked, notes) == (everything, "")


def test_a_cluster_that_does_not_let_us_look_is_no_failure(apiserver: Plane) -> None:
    """Without the right to read definitions everything is printed, with the server's reason."""
    names, _, notes = growth_crds(apiserver, user="nobody")
    assert "nodepools.karpenter.sh" in names
    assert notes.startswith("growth: every kind is printed, without a look at what the cluster has: ")
    assert "forbidden" in notes
    assert notes.count("\n") == 1
