"""Growth and Karpenter side by side on a real control plane: from the wish for 1,000 pods to the last one running.

Each run has a plane of its own: etcd, kube-apiserver, kube-scheduler, kube-controller-manager, and the kwok controller that
plays the kubelets on both sides. Karpenter is its own KWOK controller, unchanged, without leader election; Growth is
`growth run --provider kwok` with its lease. Both have their defaults and the same NodePool, and nothing is consolidated
meanwhile. Runs alternate; medians are over the runs of a side.

Timed on both sides by the API server's audit log: from its answer to the last write that scales a Deployment up, to its
answer to the last claim created, the last Node first ready, the last pod bound, the last pod first running. Writes are
counted from the same log in that span and until every claim is initialised; those that stand for the machines
themselves (Karpenter's creations of Nodes, the books and registrations of Growth's KWOK cloud) are in a column of their
own. Writes per machine leave out events, and count the renewals of our Lease, which Karpenter is spared here. CPU
seconds and peak memory are the kernel's figures for the process, from its start.

Cells: `plain` is 1,000 pods of 500m and 512Mi on machines of 4 and 8 cpu; `web` is the web mix on all types.
"""

import argparse
import dataclasses
import pathlib
import statistics
import time
from collections.abc import Sequence
from typing import Any, Final

from bench import mixes
from bench.catalogues import kwok_types
from bench.owning import autoscaler, desk
from bench.owning.audit import writes
from bench.owning.desk import Desk
from bench.owning.measured import Scaled, prices_of, row, scaled
from growth.api.kinds import Json
from tools.controlplane.plane import plane

SIDES: Final = (autoscaler.GROWTH, autoscaler.KARPENTER)
CELLS: Final = ("plain", "web")
RUN_SECONDS: Final = 300.0
SMALL: Final = {"key": "karpenter.kwok.sh/instance-cpu", "operator": "In", "values": ["4", "8"]}
# What must hold of the medians, Growth's over Karpenter's.
BOUND_RATIO: Final = 0.7
WRITES_RATIO: Final = 0.5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--runs", type=int, default=3, help="of each side in each cell")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument(
        "--growth-option",
        metavar="OPTION",
        action="append",
        default=[],
        help="passed on to growth run, e.g. --packer=cost",
    )


def measure(options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"pods": options.pods, "runs": options.runs}
    for cell in options.cells:
        found: dict[str, list[Scaled]] = {side: [] for side in options.sides}
        for _ in range(options.runs):
            for side in options.sides:
                found[side].append(scale_up(side, cell, pods=options.pods, options=options.growth_option))
        result[cell] = [{"side": side, **row(each)} for side, all_of in found.items() for each in all_of]
        medians = {side: median(all_of) for side, all_of in found.items()}
        result[f"{cell} medians"] = [{"side": side, **row(each)} for side, each in medians.items()]
        if len(medians) == len(SIDES):
            ours, theirs = (medians[side] for side in SIDES)
            result[f"{cell} ratios"] = {
                "last bound": ours.last_bound / theirs.last_bound,
                "writes per machine": ours.writes_per_machine / theirs.writes_per_machine,
                "cost": ours.cost / theirs.cost,
                "cpu seconds": ours.cpu_seconds / theirs.cpu_seconds,
                "peak memory": ours.peak_mb / theirs.peak_mb,
            }
    return result


def failed(result: dict[str, Any]) -> bool:
    """Whether a promise of the medians is broken."""
    ratios = [value for name, value in result.items() if name.endswith(" ratios")]
    return any(
        each["last bound"] > BOUND_RATIO or each["writes per machine"] > WRITES_RATIO or each["cost"] > 1.0 + 1e-9
        for each in ratios
    )


def median(runs: Sequence[Scaled]) -> Scaled:
    """Each column by itself."""
    names = [field.name for field in dataclasses.fields(Scaled)]
    return Scaled(**{name: statistics.median(getattr(run, name) for run in runs) for name in names})


def scale_up(side: str, cell: str, *, pods: int, options: Sequence[str] = ()) -> Scaled:
    """One run on a fresh plane."""
    with plane(scheduler=True, controller_manager=True, kwok=True, audit=True) as running:
        server = Desk(running)
        autoscaler.prepare(server, side)
        server.create(desk.POOLS, pool(cell))
        wanted = deployments(cell, pods)
        for each in wanted:
            server.create(desk.APPS, each)
        process = autoscaler.growth(running, *options) if side == autoscaler.GROWTH else autoscaler.karpenter(running)
        with autoscaler.stopped_at_last(process):
            process.wait_ready()
            server.until(lambda: pool_ready(server), seconds=30.0, what="the NodePool is ready")
            since = time.time()
            for each in wanted:
                name, count = each["metadata"]["name"], int(each["metadata"]["annotations"]["replicas"])
                server.merge(f"{desk.APPS}/{name}", {"spec": {"replicas": count}})
            server.until(
                lambda: all(replicas_ready(each) for each in server.items(desk.APPS)),
                seconds=RUN_SECONDS,
                what=f"{pods} pods run",
                state=lambda: f"{process.log[-2000:]}",
                every=1.0,
            )
            claims = server.until(
                lambda: initialised(server.items(desk.CLAIMS)), seconds=60.0, what="every claim is initialised"
            )
            return scaled(
                list(writes(running.audit_log)),
                since=_scaled_at(running.audit_log, since),
                user=side,
                cloud_user="growth-kwok",
                pods=server.items(desk.PODS),
                nodes=server.items(desk.NODES),
                claims=claims,
                prices=prices_of(kwok_types()),
                cpu_seconds=process.cpu_seconds(),
                peak_bytes=process.peak_bytes(),
            )


def pool(cell: str) -> Json:
    body = mixes.node_pool(requirements=[SMALL] if cell == "plain" else [])
    body["spec"]["disruption"] = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never"}
    return body


def deployments(cell: str, pods: int) -> list[Json]:
    """With no replicas yet; the annotation says how many it will have."""
    if cell == "plain":
        return [deployment("plain", pods, cpu="500m", memory="512Mi")]
    counts = mixes.zipf(pods, len(mixes.WEB_SIZES))
    return [
        deployment(f"web-{cpu}m-{memory}mi", count, cpu=f"{cpu}m", memory=f"{memory}Mi")
        for (cpu, memory), count in zip(mixes.WEB_SIZES, counts, strict=True)
        if count
    ]


def deployment(name: str, count: int, *, cpu: str, memory: str) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "annotations": {"replicas": str(count)}},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}},
        },
    }


def pool_ready(server: Desk) -> bool:
    pools = server.items(desk.POOLS)
    return bool(pools) and all(
        any(one["type"] == "Ready" and one["status"] == "True" for one in each.get("status", {}).get("conditions", []))
        for each in pools
    )


def replicas_ready(body: Json) -> bool:
    return bool(body.get("status", {}).get("readyReplicas", 0) == int(body["metadata"]["annotations"]["replicas"]))


def initialised(claims: list[Json]) -> list[Json]:
    """The claims, if all of them are."""
    done = all(
        any(one["type"] == "Initialized" and one["status"] == "True" for one in each["status"].get("conditions", []))
        for each in claims
        if "status" in each
    ) and all("status" in each for each in claims)
    return claims if done else []


def _scaled_at(log: pathlib.Path, since: float) -> float:
    """When the server had answered the first of the writes that asked for pods."""
    return min(
        write.at
        for write in writes(log)
        if (write.user, write.verb, write.resource) == ("admin", "patch", "deployments") and write.at >= since
    )
