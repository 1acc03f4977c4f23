"""Growth and Karpenter side by side on a real control plane: 1,000 pods scaled to 300, until nothing moves any more.

Each run has a plane of its own, as in `bench e2e`: both sides have their defaults, the same NodePool and the kwok
controller as kubelets. While the pods come up nothing is consolidated. Then the pool gets Karpenter's default disruption
settings (WhenEmptyOrUnderutilized, `consolidateAfter` 0s, a budget of 10 %, all of which can be chosen), and the
Deployments are scaled down. The run ends when no claim has been created or deleted for two minutes. Runs alternate; medians
are over the runs of a side.

Timed on both sides by the API server's audit log: from its answer to the last write that scales a Deployment down, to its
answer to the last deletion of a claim that the autoscaler asked for. Evictions are those that the server granted to the
autoscaler in that span; `refused` it did not grant. `cost` is the price an hour of the Nodes that are left, `first` of
those that were there when the Deployments were scaled down; `bought` are claims created since. Every pod that is left
runs in the end, or the run fails.
"""

import argparse
import dataclasses
import pathlib
import statistics
import time
from typing import Any, Final

from bench.catalogues import kwok_types
from bench.e2e import CELLS, RUN_SECONDS, SIDES, deployments, pool, pool_ready
from bench.owning import autoscaler, desk
from bench.owning.audit import Write, writes
from bench.owning.desk import Desk
from bench.owning.measured import cost_of, prices_of
from growth.api.kinds import Json
from tools.controlplane.plane import plane

QUIET_SECONDS: Final = 120.0
# What must hold of the medians, Growth's over Karpenter's.
COST_RATIO: Final = 1.0
EVICTIONS_RATIO: Final = 1.2


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """One scale-down. `last_move` is seconds after it was asked for."""

    last_move: float
    first: float
    cost: float
    machines: int
    bought: int
    evictions: int
    refused: int
    cpu_seconds: float
    peak_mb: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cells", nargs="+", choices=CELLS, default=list(CELLS))
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES))
    parser.add_argument("--runs", type=int, default=3, help="of each side in each cell")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--left", type=int, default=300, help="how many of the pods are left")
    parser.add_argument("--budget", default="10%", help="of the pool's nodes, at a time")
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long moves may go on")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {
        "pods": options.pods,
        "left": options.left,
        "runs": options.runs,
        "budget": options.budget,
    }
    for cell in options.cells:
        found: dict[str, list[Moved]] = {side: [] for side in options.sides}
        for _ in range(options.runs):
            for side in options.sides:
                found[side].append(scale_down(side, cell, options))
        result[cell] = [{"side": side, **dataclasses.asdict(each)} for side, all_of in found.items() for each in all_of]
        medians = {side: _median(all_of) for side, all_of in found.items()}
        result[f"{cell} medians"] = [{"side": side, **dataclasses.asdict(each)} for side, each in medians.items()]
        if len(medians) == len(SIDES):
            ours, theirs = (medians[side] for side in SIDES)
            result[f"{cell} ratios"] = {
                "last move": ours.last_move / theirs.last_move,
                "cost": ours.cost / theirs.cost,
                "evictions": ours.evictions / max(1, theirs.evictions),
                "cpu seconds": ours.cpu_seconds / theirs.cpu_seconds,
                "peak memory": ours.peak_mb / theirs.peak_mb,
            }
    return result


def failed(result: dict[str, Any]) -> bool:
    """Whether a promise of the medians is broken."""
    ratios = [value for name, value in result.items() if name.endswith(" ratios")]
    return any(each["cost"] > COST_RATIO + 1e-9 or each["evictions"] > EVICTIONS_RATIO for each in ratios)


def _median(runs: list[Moved]) -> Moved:
    """Each column by itself."""
    columns = [field.name for field in dataclasses.fields(Moved)]
    return Moved(**{name: statistics.median(getattr(run, name) for run in runs) for name in columns})


def scale_down(side: str, cell: str, options: argparse.Namespace) -> Moved:
    """One run on a fresh plane."""
    prices = prices_of(kwok_types())
    with plane(scheduler=True, controller_manager=True, kwok=True, audit=True) as running:
        server = Desk(running)
        autoscaler.prepare(server, side)
        body = pool(cell)
        server.create(desk.POOLS, body)
        wanted = deployments(cell, options.pods)
        for each in wanted:
            server.create(desk.APPS, each)
        process = autoscaler.growth(running) if side == autoscaler.GROWTH else autoscaler.karpenter(running)
        with autoscaler.stopped_at_last(process):
            process.wait_ready()
            server.until(lambda: pool_ready(server), seconds=30.0, what="the NodePool is ready")
            counts = {each["metadata"]["name"]: int(each["metadata"]["annotations"]["replicas"]) for each in wanted}
            _scale(server, counts)
            _until_running(server, counts, process)
            first = cost_of(server.items(desk.NODES), prices)
            fewer = _fewer(counts, options.left)
            disruption = {
                "consolidationPolicy": "WhenEmptyOrUnderutilized",
                "consolidateAfter": "0s",
                "budgets": [{"nodes": options.budget}],
            }
            since = time.time()
            _scale(server, fewer)
            server.merge(f"{desk.POOLS}/{body['metadata']['name']}", {"spec": {"disruption": disruption}})
            began = max(
                write.at
                for write in writes(running.audit_log)
                if (write.user, write.resource) == ("admin", "deployments") and write.at >= since
            )
            server.until(
                lambda: _quiet(running.audit_log, side, began),
                seconds=options.seconds,
                what=f"nothing has moved for {QUIET_SECONDS:.0f} s",
                state=lambda: process.log[-2000:],
                every=5.0,
            )
            _until_running(server, fewer, process)
            own = [write for write in writes(running.audit_log) if write.user == side and write.at >= began]
            nodes = server.items(desk.NODES)
            evictions = [write for write in own if write.subresource == "eviction"]
            return Moved(
                last_move=max((write.at for write in own if _deletes(write)), default=began) - began,
                first=first,
                cost=cost_of(nodes, prices),
                machines=len(nodes),
                bought=sum((write.resource, write.verb) == ("nodeclaims", "create") and write.applied for write in own),
                evictions=sum(write.applied for write in evictions),
                refused=sum(not write.applied for write in evictions),
                cpu_seconds=process.cpu_seconds(),
                peak_mb=process.peak_bytes() / 1e6,
            )


def _scale(server: Desk, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        server.merge(f"{desk.APPS}/{name}", {"spec": {"replicas": count}})


def _fewer(counts: dict[str, int], left: int) -> dict[str, int]:
    """So many pods in all, each Deployment by its share; the rest from the largest down."""
    total = sum(counts.values())
    fewer = {name: count * left // total for name, count in counts.items()}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        if sum(fewer.values()) == left:
            break
        fewer[name] += 1
    return fewer


def _until_running(server: Desk, counts: dict[str, int], process: Any) -> None:
    def running() -> bool:
        ready = {each["metadata"]["name"]: _ready(each) for each in server.items(desk.APPS)}
        return all(ready[name] == count for name, count in counts.items())

    server.until(
        running,
        seconds=RUN_SECONDS,
        what=f"{sum(counts.values())} pods run",
        state=lambda: process.log[-2000:],
        every=1.0,
    )


def _ready(body: Json) -> int:
    status = body.get("status", {})
    return int(status.get("readyReplicas", 0)) if status.get("replicas", 0) == status.get("readyReplicas", 0) else -1


def _deletes(write: Write) -> bool:
    return (write.resource, write.verb) == ("nodeclaims", "delete") and write.applied


def _quiet(log: pathlib.Path, side: str, began: float) -> bool:
    last = max(
        (
            write.at
            for write in writes(log)
            if write.user == side and write.resource == "nodeclaims" and write.verb in {"create", "delete"}
        ),
        default=began,
    )
    return time.time() - max(last, began) > QUIET_SECONDS
