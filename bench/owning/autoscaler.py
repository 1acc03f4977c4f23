"""Growth or Karpenter as a process on a plane, and what the operating system says that it used."""

import contextlib
import http.client
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from bench.owning import desk
from bench.owning.desk import Desk
from bench.peers.karpenter import kwok
from growth.api.crds import all_crds
from growth.api.kinds import Json
from tools.controlplane.plane import Plane, free_ports

READY_SECONDS: Final = 180.0
STOP_SECONDS: Final = 20.0
TICKS: Final = os.sysconf("SC_CLK_TCK")
GROWTH: Final = "growth"
KARPENTER: Final = "karpenter"


class Died(Exception):
    """The process ended by itself or never became ready; the message has the end of its log."""


class Running:
    """A started autoscaler. `user` is the one that its own writes carry in the audit log."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        env: Mapping[str, str],
        *,
        log: pathlib.Path,
        port: int | None = None,
        metrics_port: int | None = None,
    ) -> None:
        """Without a port it takes a free one and logs it."""
        self.name = name
        self._port = port
        self._metrics_port = metrics_port
        self._log = log
        self._began_at = log.stat().st_size if log.exists() else 0
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                list(command), env=os.environ | dict(env), stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def holds(self, identity: str) -> bool:
        """Whether this is the process that calls itself so, by what it has logged."""
        return bool(identity) and identity in self.log

    @property
    def log(self) -> str:
        """What it has printed so far."""
        return self._log.read_text(errors="replace")

    def wait_ready(self, *, path: str = "/readyz", seconds: float = READY_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while True:
            if not self.alive:
                raise Died(f"{self.name} ended with code {self._process.returncode}; its log ends:\n{self.log[-3000:]}")
            if self._answers(path):
                return
            if time.monotonic() > deadline:
                raise Died(f"{self.name} is not ready after {seconds:.0f} s; its log ends:\n{self.log[-3000:]}")
            time.sleep(0.05)

    def port(self) -> int:
        """Where it answers; `Died` while it has not told."""
        if self._port is None:
            whole, _, _ = self._log.read_bytes()[self._began_at :].rpartition(b"\n")
            told = (json.loads(line) for line in whole.split(b"\n") if line.startswith(b"{"))
            self._port = next((int(line["port"]) for line in told if line.get("event") == "starting"), None)
        if self._port is None:
            raise Died(f"{self.name} does not listen yet; its log ends:\n{self.log[-3000:]}")
        return self._port

    def _answers(self, path: str) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port()}{path}", timeout=60) as answer:
                return bool(answer.status == 200)
        except (OSError, http.client.HTTPException, Died):
            return False

    def scrape(self) -> str:
        """Its metrics, in Prometheus' text."""
        with urllib.request.urlopen(
            f"http://127.0.0.1:{self._metrics_port or self.port()}/metrics", timeout=60
        ) as answer:
            text: str = answer.read().decode()
        return text

    def cpu_seconds(self) -> float:
        """Processor time so far, of all threads, user and system."""
        fields = pathlib.Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_bytes(self) -> int:
        """The most memory that it ever had resident."""
        for line in pathlib.Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise Died(f"{self.name} ended; its log ends:\n{self.log[-3000:]}")

    def kill(self) -> None:
        """As kill -9 does: nothing in it runs any more."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Asks it to end, and makes it where it does not; its exit code."""
        if self.alive:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
        return self._process.wait()


# Settings for those who wait for machines to go: an eye on empty nodes, and no long look before they are believed so.
QUICK: Final = ("--disruption-poll", "1s", "--nomination", "5s", "--delete-poll", "1s")


def growth(
    plane: Plane, *options: str, number: int = 0, user: str = GROWTH, kwok_user: str = "growth-kwok", log_name: str = ""
) -> Running:
    """`growth run` on simulated machines, not waited for; `number` tells replicas apart."""
    command = [str(pathlib.Path(sys.prefix) / "bin" / "growth"), "run", "--provider", "kwok"]
    command += ["--kubeconfig", str(plane.kubeconfig_of(user))]
    command += ["--kwok-kubeconfig", str(plane.kubeconfig_of(kwok_user))]
    command += ["--kwok-controller", "--listen", "127.0.0.1:0", *options]
    log = plane.folder / (log_name or f"growth-{number}.log")
    return Running(GROWTH, command, {}, log=log)


def karpenter(
    plane: Plane, *, instance_types: pathlib.Path | None = None, settings: Mapping[str, str] | None = None
) -> Running:
    """Karpenter on its simulated machines, not waited for."""
    port, metrics = free_ports(2)
    env = {
        "KUBECONFIG": str(plane.kubeconfig_of(KARPENTER)),
        "DISABLE_LEADER_ELECTION": "true",
        "SYSTEM_NAMESPACE": "kube-system",
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "HEALTH_PROBE_PORT": str(port),
        "METRICS_PORT": str(metrics),
        **(settings or {}),
    }
    if instance_types is not None:
        env["INSTANCE_TYPES_FILE_PATH"] = str(instance_types)
    return Running(
        KARPENTER,
        [str(kwok.controller())],
        env,
        log=plane.folder / "karpenter.log",
        port=port,
        metrics_port=metrics,
    )


def definitions_of(name: str) -> list[Json]:
    """The kinds that an autoscaler brings along."""
    return kwok.definitions() if name == KARPENTER else all_crds()


def prepare(server: Desk, name: str, *, node_class: Json | None = None) -> None:
    """What an autoscaler finds when it starts: its kinds, a namespace of its own, the node class `default`."""
    server.install(definitions_of(name))
    server.create(desk.NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": GROWTH}})
    server.create(
        desk.CLASSES,
        {
            "apiVersion": "karpenter.kwok.sh/v1alpha1",
            "kind": "KWOKNodeClass",
            "metadata": {"name": "default"},
            "spec": node_class or {},
        },
    )


@contextlib.contextmanager
def stopped_at_last(running: Running) -> Iterator[Running]:
    """Ends it, whatever happened."""
    try:
        yield running
    finally:
        running.stop()
