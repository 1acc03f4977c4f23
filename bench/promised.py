"""What a plan promises, and what comes of it on a real control plane: the web mix, rehearsed and in the end.

Each run has a plane of its own: etcd, kube-apiserver, kube-scheduler, kube-controller-manager and the kwok controller. All
pods are there, pending, before Growth is: so one plan is for all of them. `growth plan` says what it would cost by its
rehearsal; then `growth run` is started on the same cluster and buys. `final` is the price of all Nodes when every pod runs
and every claim is initialised, by their labels and the catalogue; `second` counts pods on machines that were bought later
than the first purchase. Nothing is consolidated meanwhile. `given_up`: the machine was so busy that Growth did not wait for
its plan and bought by first fit, which was not what was promised.

It ends with 1 where the final cost is more than 1.05 times the rehearsed one.
"""

import argparse
import datetime as dt
import json
import pathlib
import subprocess
import sys
from typing import Any, Final

from bench import e2e
from bench.catalogues import kwok_types
from bench.owning import autoscaler, desk
from bench.owning.desk import Desk
from bench.owning.measured import cost_of, prices_of
from growth.api.kinds import Json
from tools.controlplane.plane import Plane, plane

MOST: Final = 1.05
RUN_SECONDS: Final = 600.0
# Purchases are further apart: pods are gathered for at least a second before a plan, and then machines have to come.
PAUSE: Final = dt.timedelta(seconds=1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--packer", choices=("cost", "first-fit"), default="cost")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows = [run(options.pods, options.packer) for _ in range(options.runs)]
    return {"pods": options.pods, "packer": options.packer, "runs": rows, "at most": MOST}


def failed(result: dict[str, Any]) -> bool:
    return any(row["final"] > MOST * row["rehearsed"] for row in result["runs"])


def run(pods: int, packer: str) -> dict[str, Any]:
    """One run on a fresh plane."""
    with plane(scheduler=True, controller_manager=True, kwok=True) as running:
        server = Desk(running)
        autoscaler.prepare(server, autoscaler.GROWTH)
        server.create(desk.POOLS, e2e.pool("web"))
        for each in e2e.deployments("web", pods):
            each["spec"]["replicas"] = int(each["metadata"]["annotations"]["replicas"])
            server.create(desk.APPS, each)
        server.until(
            lambda: len(server.items(desk.PODS)) >= pods, seconds=RUN_SECONDS, what=f"{pods} pods wait", every=1.0
        )
        promised = planned(running, packer)
        process = autoscaler.growth(running, f"--packer={packer}")
        with autoscaler.stopped_at_last(process):
            process.wait_ready()
            server.until(
                lambda: all(e2e.replicas_ready(each) for each in server.items(desk.APPS)),
                seconds=RUN_SECONDS,
                what=f"{pods} pods run",
                state=lambda: process.log[-2000:],
                every=1.0,
            )
            claims = server.until(
                lambda: e2e.initialised(server.items(desk.CLAIMS)), seconds=60.0, what="every claim is initialised"
            )
            nodes = server.items(desk.NODES)
            final = cost_of(nodes, prices_of(kwok_types()))
            rehearsed = float(promised["rehearsed"] if promised["rehearsed"] is not None else promised["hourly"])
            return {
                "planned": round(float(promised["planned"]), 4),
                "rehearsed": round(rehearsed, 4),
                "final": round(final, 4),
                "ratio": round(final / rehearsed, 4),
                "machines": len(nodes),
                "second": second(server.items(desk.PODS), claims),
                "given_up": "a plan took too long" in process.log,
            }


def planned(running: Plane, packer: str) -> Json:
    """The summary of `growth plan` for the cluster as it is."""
    command = [str(pathlib.Path(sys.prefix) / "bin" / "growth"), "plan", "--provider", "kwok", "-o", "json"]
    command += ["--kubeconfig", str(running.kubeconfig), "--packer", packer]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: Json = json.loads(done.stdout)["summary"]
    return found


def second(pods: list[Json], claims: list[Json]) -> int:
    """How many pods run on machines that were not of the first purchase: its claims were created without a pause."""
    created = sorted((each["metadata"]["creationTimestamp"], each["status"]["nodeName"]) for each in claims)
    first: set[str] = set()
    last = ""
    for at, node in created:
        if last and dt.datetime.fromisoformat(at) - dt.datetime.fromisoformat(last) > PAUSE:
            break
        first.add(node)
        last = at
    return sum(pod["spec"].get("nodeName") not in first for pod in pods)
