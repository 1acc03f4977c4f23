"""`growth demo` as people start it: a process, a terminal, kubectl beside it.

The terminal is tmux (`tools.terminal`): what is looked at is the screen as a person sees it.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from growth.units import parse_time
from tools.terminal import Terminal

BIN = pathlib.Path(sys.prefix) / "bin"
PATIENCE_SECONDS = 180.0  # a loaded machine starts a large program slowly


class Told:
    """A demo without a terminal, and its lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, pattern: str) -> str:
        """The next line like this; the test fails where the demo ends before."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if re.search(pattern, line):
                return line
        raise AssertionError(f"the demo ended without a line like {pattern!r}:\n{''.join(self.lines)}")


@contextlib.contextmanager
def headless(tmp_path: pathlib.Path, *arguments: str) -> Iterator[Told]:
    process = subprocess.Popen(
        [str(BIN / "growth"), "demo", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        yield Told(process)
    finally:
        process.kill()
        process.communicate()


def kubectl(config: str, *arguments: str) -> str:
    environment = {"HOME": str(pathlib.Path(config).parent), "KUBECONFIG": config, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [str(BIN / "kubectl"), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def items(config: str, *arguments: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(kubectl(config, "get", *arguments, "-o", "json"))["items"]
    return found


def eventually(look: Any, what: str) -> Any:
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = look()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError(f"never: {what}")


def ready_since(node: dict[str, Any]) -> str:
    return next(
        (each["lastTransitionTime"] for each in node["status"]["conditions"] if each["type"] == "Ready"),
        "",
    )


def test_nodes_follow_kubectl_scale_within_ten_seconds_of_the_demo(tmp_path: pathlib.Path) -> None:
    """`kubectl scale` against the running demo: all pods are bound, their nodes ready, ten demo seconds later at most.

    Time is the cluster's own. It runs at half speed, so that a busy machine does not pass for a slow autoscaler.
    """
    with headless(tmp_path, "--headless", "--speed", "0.5", "--duration", "10m") as demo:
        config = demo.until("^KUBECONFIG=").split("=")[1].split()[0]
        demo.until("growth bought")
        before = {node["metadata"]["name"] for node in items(config, "nodes")}
        assert "scaled" in kubectl(config, "scale", "deployment/yours", "--replicas", "20")

        def running() -> list[dict[str, Any]]:
            pods = items(config, "pods", "-l", "app=yours")
            return pods if len(pods) == 20 and all(pod["status"]["phase"] == "Running" for pod in pods) else []

        pods = eventually(running, "20 pods of yours run")
        scaled = min(parse_time(pod["metadata"]["creationTimestamp"]) for pod in pods)
        nodes = {node["metadata"]["name"]: node for node in items(config, "nodes")}
        used = {pod["spec"]["nodeName"] for pod in pods}
        new = used - before
        assert new, "no machine was bought for them"
        ready = max(parse_time(ready_since(nodes[name])) for name in used)
        started = max(parse_time(pod["status"]["startTime"]) for pod in pods)
        # Times in objects are whole seconds: one of them is rounding.
        assert (ready - scaled).total_seconds() <= 11.0
        assert (started - scaled).total_seconds() <= 11.0


def test_kubectl_works_on_the_demo_as_on_any_cluster(tmp_path: pathlib.Path) -> None:
    """get, describe, delete and top by its own kubeconfig; a pod that is deleted comes back."""
    with headless(tmp_path, "--headless", "--duration", "10m") as demo:
        config = demo.until("^KUBECONFIG=").split("=")[1].split()[0]
        demo.until("^ *[0-9.]+s  0 pods pending, [1-9]")
        assert "general" in kubectl(config, "get", "nodepools")
        assert "batch" in kubectl(config, "get", "gpool")
        assert "provisioning" in kubectl(config, "get", "decisions")
        node = items(config, "nodes")[0]["metadata"]["name"]
        assert "node.kubernetes.io/instance-type" in kubectl(config, "describe", "node", node)
        pod = items(config, "pods", "-l", "app=web")[0]["metadata"]["name"]
        kubectl(config, "delete", "pod", pod, "--wait=false")

        def replaced() -> bool:
            return pod not in {each["metadata"]["name"] for each in items(config, "pods", "-l", "app=web")}

        eventually(replaced, "the pod goes")
        shown = subprocess.run(
            [str(BIN / "growth"), "top", "--kubeconfig", config, "-o", "json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        seen = json.loads(shown.stdout)
        assert seen["currency"] == "EUR"
        assert seen["hourly"] > 0
        assert all(each["price"] for each in seen["machines"])


def test_without_a_terminal_it_ends_in_good_order(tmp_path: pathlib.Path) -> None:
    """After --duration the exit code is 0, and nothing is left behind."""
    with headless(tmp_path, "--duration", "20s", "--speed", "10") as demo:
        demo.until("growth bought")
        assert demo.process.wait(PATIENCE_SECONDS) == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_interrupted_it_cleans_up_too(tmp_path: pathlib.Path, number: signal.Signals, code: int) -> None:
    """Ctrl-C and SIGTERM end it as shells expect, without a traceback."""
    with headless(tmp_path) as demo:
        demo.until("growth bought")
        demo.process.send_signal(number)
        assert demo.process.wait(PATIENCE_SECONDS) == code
        assert demo.process.stdout is not None
        assert "Traceback" not in demo.process.stdout.read()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("provider", "kind", "price"), [("kwok", "cx43", "€0.0256"), ("linode-enterprise", "g6-standard-4", "$0.072")]
)
def test_on_a_terminal_it_is_a_live_view(tmp_path: pathlib.Path, provider: str, kind: str, price: str) -> None:
    """Machines and their prices appear, keys work, it fits a smaller window, q ends it with 0 and leaves nothing behind."""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    program = [str(BIN / "growth"), "demo", "--provider", provider, "--duration", "10m"]
    terminal = Terminal(program, environment=environment, patience_seconds=PATIENCE_SECONDS)
    try:
        terminal.shows(
            "KUBECONFIG=", "NODE", "general", kind, price, "provisioning: bought", "/month", "WHY IT IS KEPT"
        )
        terminal.press("s")
        terminal.shows("CPU▼")
        terminal.press("Enter")
        terminal.shows("why it is kept", "price", "POD")
        terminal.press("Enter")
        terminal.until(lambda screen: "why it is kept" not in screen and "WHY IT IS KEPT" in screen, "the page is gone")
        terminal.resize(80, 24)
        terminal.shows("KUBECONFIG=", " MEM ", f" {kind[:2]}", "LATEST DECISIONS", "Quit")
        terminal.press("q")
        assert terminal.ended() == 0
    finally:
        terminal.close()
    assert list(tmp_path.iterdir()) == []
