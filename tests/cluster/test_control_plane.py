"""The real control plane that other tests stand on."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import pytest

from tests.cluster.servers import kubectl_for
from tests.running import until
from tools.controlplane import plane as plane_module
from tools.controlplane import programs
from tools.controlplane.plane import Plane

WAIT_SECONDS = 180.0


def kubectl(
    plane: Plane, *arguments: str, given: object = None, user: str = "admin"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*kubectl_for(plane, user=user), *arguments],
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

    def verbs(user: str, name: str) -> list[str]:
        return [
            event["verb"]
            for event in plane.audit_events()
            if event["user"]["username"] == user and event.get("objectRef", {}).get("name") == name
        ]

    # A call is logged soon after its answer: when a later write is there too, nothing is still to come.
    until(lambda: verbs("growth", "written-by-growth"), what="the write in the log", seconds=WAIT_SECONDS)
    assert kubectl(plane, "create", "configmap", "written-later").returncode == 0
    until(lambda: verbs("admin", "written-later"), what="the later write in the log", seconds=WAIT_SECONDS)
    assert verbs("growth", "written-by-growth") == ["create"]


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
    until(lambda: not processes_naming(folder), what="the end of every program", seconds=WAIT_SECONDS)
    until(lambda: not pathlib.Path(folder).exists(), what="the end of the folder", seconds=WAIT_SECONDS)


def test_a_port_that_somebody_else_took_is_changed(control_plane: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each program whose port is taken between the look and the bind is started again on another."""
    honest = plane_module.free_ports
    looks: list[int] = []
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))

        def stale(count: int) -> list[int]:
            looks.append(count)
            return [taken.getsockname()[1], *honest(count)][:count] if len(looks) % 2 else honest(count)

        monkeypatch.setattr(plane_module, "free_ports", stale)
        with plane_module.plane(scheduler=True, controller_manager=True, kwok=True) as running:
            assert kubectl(running, "get", "nodes").returncode == 0
    assert looks == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1]


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
