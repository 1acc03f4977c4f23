"""The real control plane that other tests stand on."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tools.controlplane import programs
from tools.controlplane.plane import Plane

KUBECTL = pathlib.Path(sys.prefix) / "bin" / "kubectl"
WAIT_SECONDS = 60.0


def kubectl(
    plane: Plane, *arguments: str, given: object = None, user: str = "admin"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(KUBECTL), "--kubeconfig", str(plane.kubeconfig_of(user)), *arguments],
        input=None if given is None else json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )


def test_server_is_the_pinned_release(apiserver: Plane) -> None:
    """The server names the release that go.mod pins."""
    version = json.loads(kubectl(apiserver, "version", "-o", "json").stdout)
    assert version["serverVersion"]["gitVersion"] == programs.kubernetes_version()


def test_users_differ_in_rights(apiserver: Plane) -> None:
    """`nobody` may read nothing, `growth` everything."""
    assert kubectl(apiserver, "get", "nodes", user="growth").returncode == 0
    refused = kubectl(apiserver, "get", "nodes", user="nobody")
    assert refused.returncode != 0
    assert "forbidden" in refused.stderr


def test_a_deployment_runs_and_a_job_completes(plane: Plane) -> None:
    """Controller-manager, scheduler and kwok play together: pods run on a kwok node and a job's pod completes."""
    room = {"cpu": "8", "memory": "8Gi", "pods": "110"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "fake", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room},
    }
    assert kubectl(plane, "create", "-f", "-", given=node).returncode == 0
    assert kubectl(plane, "create", "deployment", "web", "--image=web", "--replicas=3", user="growth").returncode == 0
    assert kubectl(plane, "create", "job", "once", "--image=once").returncode == 0
    wait = f"--timeout={WAIT_SECONDS:.0f}s"
    assert kubectl(plane, "wait", "deployment/web", "--for=condition=Available", wait).returncode == 0
    assert kubectl(plane, "wait", "job/once", "--for=condition=Complete", wait).returncode == 0
    assert kubectl(plane, "delete", "pods", "--all", wait).returncode == 0


def test_audit_log_tells_the_writers_apart(plane: Plane) -> None:
    """A write is in the audit log with the user who made it, and reads are not there at all."""
    assert kubectl(plane, "create", "configmap", "written-by-growth", user="growth").returncode == 0
    assert kubectl(plane, "get", "configmap", "written-by-growth", user="growth").returncode == 0
    mine = [
        event
        for event in plane.audit_events()
        if event["user"]["username"] == "growth" and event.get("objectRef", {}).get("name") == "written-by-growth"
    ]
    assert [event["verb"] for event in mine] == ["create"]


OWNER = """
import sys
from tools.controlplane.plane import plane
with plane() as running:
    print(running.folder, flush=True)
    sys.stdin.read()
"""


def test_killing_the_owner_ends_every_program(control_plane: None) -> None:
    """When the process that started a plane is killed, its programs end and its folder goes."""
    root = pathlib.Path(programs.HERE).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        folder = owner.stdout.readline().strip()
        assert processes_naming(folder) != []
        os.kill(owner.pid, signal.SIGKILL)
    deadline = time.monotonic() + WAIT_SECONDS
    while (processes_naming(folder) or pathlib.Path(folder).exists()) and time.monotonic() < deadline:
        os.sched_yield()
    assert processes_naming(folder) == []
    assert not pathlib.Path(folder).exists()


def processes_naming(text: str) -> list[str]:
    """Command lines of running processes that hold the text."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended while we looked
        if text in line:
            found.append(line)
    return found


def test_a_missing_control_plane_fails_in_ci_and_skips_elsewhere(tmp_path: pathlib.Path) -> None:
    """With CI=true a test that needs the plane fails when the programs are missing; elsewhere it is skipped."""
    root = pathlib.Path(programs.HERE).parents[1]
    this = "tests/cluster/test_control_plane.py::test_server_is_the_pinned_release"
    for ci, code in (("true", 1), ("", 0)):
        result = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", this],
            cwd=root,
            env=os.environ | {"CI": ci, "KUBEBUILDER_ASSETS": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == code, result.stdout
        assert "no control plane" in result.stdout


def test_a_program_that_is_not_built_is_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for a program that is not there says which one, where it was looked for and what to do."""
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(programs.MissingProgramsError, match=r"etcd is not in .*make plane"):
        programs.program("etcd")
