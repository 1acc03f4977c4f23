"""Starts and stops a control plane on free loopback ports.

    with plane(scheduler=True) as running:
        kubectl --kubeconfig running.kubeconfig …

Users (bearer token = `<name>-token`): `admin` may do everything; `growth`, `growth-kwok` and `karpenter` are what their
names say and have the rights of an administrator too, so that the audit log tells them apart; `nobody` has no right at
all. Service accounts are not enforced (no kubelet here needs their tokens).
"""

import contextlib
import dataclasses
import http.client
import json
import os
import pathlib
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from tools.controlplane.keys import service_account_key
from tools.controlplane.programs import HERE, program

# Nobody waits so long unless something is broken; a busy machine takes many times the usual two seconds.
START_SECONDS: Final = 180.0
# Two starters may pick the same free port between the look and the bind.
PORT_TRIES: Final = 5
# One question; a server that is starting may hold it back.
ASK_SECONDS: Final = 15.0
PORT_TAKEN: Final = "address already in use"
# Made by the server itself soon after it calls itself ready.
NAMESPACES: Final = ("default", "kube-system", "kube-public", "kube-node-lease")
USERS: Final = {
    "admin": "system:masters",
    "growth": "system:masters",
    "growth-kwok": "system:masters",
    "karpenter": "system:masters",
    "kwok": "system:masters",
    "system:kube-scheduler": "",
    "system:kube-controller-manager": "system:masters",
    "nobody": "",
}
# Everything but reads, and who did it; the bodies stay out so that no Secret lands in the log.
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "None", "verbs": ["get", "list", "watch"]}, {"level": "Metadata"}],
}


class StartError(Exception):
    """A program did not come up; the message has the end of its log."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plane:
    """A running control plane. Valid inside the `with` that made it."""

    folder: pathlib.Path
    url: str
    ca: pathlib.Path
    etcd_url: str
    audit_log: pathlib.Path

    @property
    def token(self) -> str:
        """The administrator's bearer token."""
        return token_of("admin")

    @property
    def kubeconfig(self) -> pathlib.Path:
        """The administrator's kubeconfig."""
        return self.kubeconfig_of("admin")

    def kubeconfig_of(self, user: str) -> pathlib.Path:
        """A kubeconfig for one of `USERS`."""
        return _write_kubeconfig(self.folder, url=self.url, ca=self.ca, user=user)

    def log_of(self, name: str) -> str:
        """What a program has printed so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def audit_events(self) -> list[dict[str, Any]]:
        """Every write so far, with its user; empty unless the plane was started with `audit=True`.

        A write is told after its answer was sent: whoever was answered may have to look again.
        """
        if not self.audit_log.exists():
            return []
        whole, _, _ = self.audit_log.read_text().rpartition("\n")  # the last line may still be written
        return [json.loads(line) for line in whole.split("\n") if line]


@contextlib.contextmanager
def plane(
    *,
    scheduler: bool = False,
    controller_manager: bool = False,
    kwok: bool = False,
    audit: bool = False,
    apiserver_flags: tuple[str, ...] = (),
    etcd_flags: tuple[str, ...] = (),
) -> Iterator[Plane]:
    """An API server with its etcd, and what else is asked for; stopped on leaving, and when this process dies."""
    # A plane writes much and keeps nothing: memory where there is some.
    memory = pathlib.Path("/dev/shm")
    parent = str(memory) if memory.is_dir() and os.access(memory, os.W_OK) else None
    folder = pathlib.Path(tempfile.mkdtemp(prefix="growth-plane-", dir=parent))
    with contextlib.ExitStack() as stack:
        keepers = _Keepers(folder)
        stack.callback(keepers.stop)
        etcd_url = _start_etcd(keepers, etcd_flags)
        url = _start_apiserver(keepers, etcd_url, audit=audit, flags=apiserver_flags)
        running = Plane(
            folder=folder,
            url=url,
            ca=folder / "certs" / "apiserver.crt",
            etcd_url=etcd_url,
            audit_log=folder / "audit.log",
        )
        if controller_manager:
            _start_controller_manager(keepers, running)
        if scheduler:
            _start_scheduler(keepers, running)
        if kwok:
            _start_kwok(keepers, running)
        yield running


def token_of(user: str) -> str:
    """The bearer token of one of `USERS`."""
    return f"{user.replace(':', '-')}-token"


class _Keepers:
    """The programs of one plane, each under its keeper; ended in the reverse order of their start."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._running: list[tuple[str, subprocess.Popen[bytes]]] = []

    def start(self, name: str, flags: list[str]) -> subprocess.Popen[bytes]:
        # etcd is started first and ended last: its keeper removes the folder.
        remove = ["--remove", str(self.folder)] if not self._running else []
        with (self.folder / f"{name}.log").open("ab") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-S", str(HERE / "keeper.py"), *remove, "--", str(program(name)), *flags],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )
        self._running.append((name, keeper))
        return keeper

    def drop(self, keeper: subprocess.Popen[bytes]) -> None:
        """Forgets a program that ended by itself."""
        assert keeper.stdin is not None
        keeper.stdin.close()
        self._running = [entry for entry in self._running if entry[1] is not keeper]

    def stop(self) -> None:
        for _, keeper in reversed(self._running):
            assert keeper.stdin is not None
            keeper.stdin.close()
            keeper.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def wait(self, name: str, ready: "_Ready", port: int) -> None:
        """Returns when the program, the last one started, answers; `StartError` when it ended or takes too long."""
        keeper = next(keeper for started, keeper in reversed(self._running) if started == name)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and keeper.poll() is None:
            if _answers(ready, port):
                return
            time.sleep(0.05)
        raise self._failure(name, keeper)

    def _failure(self, name: str, keeper: subprocess.Popen[bytes]) -> StartError:
        log = (self.folder / f"{name}.log").read_text(errors="replace")
        how = f"ended with code {keeper.poll()}" if keeper.poll() is not None else f"not ready after {START_SECONDS} s"
        return StartError(f"{name} {how}; the end of its log:\n{log[-3000:]}")


def _start_etcd(keepers: _Keepers, flags: tuple[str, ...]) -> str:
    (keepers.folder / "etcd").mkdir(mode=0o700)

    def options(port: int, peer_port: int) -> list[str]:
        client, peer = (f"http://127.0.0.1:{each}" for each in (port, peer_port))
        return [
            f"--data-dir={keepers.folder / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync=true",
            "--log-level=warn",
            *flags,
        ]

    port = _start(keepers, "etcd", options, ports=2, ready=_Ready("http", "/readyz"))
    return f"http://127.0.0.1:{port}"


def _start_apiserver(keepers: _Keepers, etcd_url: str, *, audit: bool, flags: tuple[str, ...]) -> str:
    folder = keepers.folder
    key = folder / "service-accounts.pem"
    key.write_text(service_account_key())
    tokens = folder / "tokens.csv"
    tokens.write_text("".join(f'{token_of(user)},{user},{user},"{group}"\n' for user, group in USERS.items()))
    if audit:
        (folder / "audit-policy.json").write_text(json.dumps(AUDIT_POLICY))
        flags = (
            f"--audit-policy-file={folder / 'audit-policy.json'}",
            f"--audit-log-path={folder / 'audit.log'}",
            *flags,
        )

    def options(port: int) -> list[str]:
        return [
            f"--etcd-servers={etcd_url}",
            f"--cert-dir={folder / 'certs'}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",  # otherwise it looks for a route, and a machine offline has none
            f"--secure-port={port}",
            f"--token-auth-file={tokens}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://growth.invalid",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            "--disable-admission-plugins=ServiceAccount",
            "--max-requests-inflight=2000",
            "--max-mutating-requests-inflight=1000",
            *flags,
        ]

    def ready(path: str) -> _Ready:
        return _Ready("https", path, ca=folder / "certs" / "apiserver.crt", user="admin")

    port = _start(keepers, "kube-apiserver", options, ready=ready("/readyz"))
    for name in NAMESPACES:
        keepers.wait("kube-apiserver", ready(f"/api/v1/namespaces/{name}"), port)
    return f"https://127.0.0.1:{port}"


def _start_controller_manager(keepers: _Keepers, running: Plane) -> None:
    def options(port: int) -> list[str]:
        return [
            f"--kubeconfig={running.kubeconfig_of('system:kube-controller-manager')}",
            f"--service-account-private-key-file={running.folder / 'service-accounts.pem'}",
            f"--cert-dir={running.folder / 'controller-manager-certs'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            "--leader-elect=false",
            "--kube-api-qps=2000",
            "--kube-api-burst=4000",
            "--concurrent-gc-syncs=20",
        ]

    _start(keepers, "kube-controller-manager", options, ready=_Ready("https", "/healthz"))


def _start_scheduler(keepers: _Keepers, running: Plane) -> None:
    configuration = running.folder / "scheduler.json"
    configuration.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {
                    "kubeconfig": str(running.kubeconfig_of("system:kube-scheduler")),
                    "qps": 2000,
                    "burst": 4000,
                },
            }
        )
    )

    def options(port: int) -> list[str]:
        return [
            f"--config={configuration}",
            f"--cert-dir={running.folder / 'scheduler-certs'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--authentication-kubeconfig={running.kubeconfig}",
            f"--authorization-kubeconfig={running.kubeconfig}",
        ]

    _start(keepers, "kube-scheduler", options, ready=_Ready("https", "/readyz"))


def _start_kwok(keepers: _Keepers, running: Plane) -> None:
    def options(port: int) -> list[str]:
        return [
            f"--kubeconfig={running.kubeconfig_of('kwok')}",
            f"--config={HERE / 'stages.yaml'}",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
            "--node-lease-duration-seconds=40",
            "--cidr=10.0.0.1/8",
            "--node-ip=127.0.0.1",
            f"--server-address=127.0.0.1:{port}",
        ]

    _start(keepers, "kwok", options, ready=_Ready("http", "/healthz"))


@dataclasses.dataclass(frozen=True, slots=True)
class _Ready:
    """Where a program says that it is ready; without a CA its certificate is not looked at."""

    scheme: str
    path: str
    ca: pathlib.Path | None = None
    user: str = ""


def _start(keepers: _Keepers, name: str, options: Callable[..., list[str]], *, ready: _Ready, ports: int = 1) -> int:
    """Starts a program on free ports, which are given to `options`, and waits for it; the first port."""
    for attempt in range(PORT_TRIES):
        chosen = free_ports(ports)
        keeper = keepers.start(name, options(*chosen))
        try:
            keepers.wait(name, ready, chosen[0])
        except StartError as error:
            if keeper.poll() is None or attempt == PORT_TRIES - 1 or PORT_TAKEN not in str(error):
                raise
            keepers.drop(keeper)
        else:
            return chosen[0]
    raise AssertionError("unreachable")


def _answers(ready: _Ready, port: int) -> bool:
    """Whether the program answers 200 there now."""
    headers = {"Authorization": f"Bearer {token_of(ready.user)}"} if ready.user else {}
    with contextlib.suppress(OSError, http.client.HTTPException):
        context = None
        if ready.scheme == "https":
            context = ssl.create_default_context(cafile=str(ready.ca) if ready.ca else None)
            if not ready.ca:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
        request = urllib.request.Request(f"{ready.scheme}://127.0.0.1:{port}{ready.path}", headers=headers)
        with urllib.request.urlopen(request, timeout=ASK_SECONDS, context=context) as answer:
            return bool(answer.status == 200)
    return False


def free_ports(count: int) -> list[int]:
    """Different ports on which nobody listens now; somebody may in a moment."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _write_kubeconfig(folder: pathlib.Path, *, url: str, ca: pathlib.Path, user: str) -> pathlib.Path:
    path = folder / f"kubeconfig-{user.replace(':', '-')}"
    if path.exists():
        return path  # somebody may be reading it
    body: Mapping[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plane",
        "clusters": [{"name": "plane", "cluster": {"server": url, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": {"token": token_of(user)}}],
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": user}}],
    }
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(body))
    draft.chmod(0o600)
    return draft.rename(path)
