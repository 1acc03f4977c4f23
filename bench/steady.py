"""A few pods pending in a large, settled cluster: from the snapshot to the plan, beside Karpenter on the same state.

Ours is timed from the snapshot (which watches keep up to date in a running Growth) to the finished plan, best of five,
the collector off; making the snapshot from all objects at once stands beside it as `assemble_seconds`. Karpenter is timed
over NewTopology + NewScheduler + Solve; the copy that it makes of its state before is printed apart.
"""

import argparse
import gc
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from bench import catalogues
from bench.peers import karpenter
from bench.scheduling import NANO, NOW, catalogue_of
from bench.settled import steady
from growth.api.core import Namespace
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.cluster.assemble import Assembled, Objects, assemble
from growth.cluster.shapes import Shapes
from growth.planning.solve import solve

REPEATS: Final = 5
STRUCTS: Final[Mapping[str, type]] = {
    "Pod": Pod,
    "Node": Node,
    "NodePool": NodePool,
    "NodeClaim": NodeClaim,
    "Namespace": Namespace,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 5000, 10000], help="sizes of the cluster")
    parser.add_argument("--peer-nodes", type=int, nargs="*", default=[1000, 5000], help="sizes at which Karpenter runs")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    result: dict[str, Any] = {"karpenter": karpenter.version()}
    for nodes in options.nodes:
        result[f"{nodes} nodes"] = _row(steady(nodes), peer=nodes in options.peer_nodes)
    return result


def _row(raw: Sequence[Json], *, peer: bool) -> dict[str, Any]:
    types = catalogues.kwok_types()
    start = time.perf_counter()
    assembled = assembled_from(raw, types)
    assembling = time.perf_counter() - start
    seconds = float("inf")
    for _ in range(REPEATS):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        plan = solve(assembled.snapshot, assembled.demands)
        seconds = min(seconds, time.perf_counter() - start)
        gc.enable()
    row: dict[str, Any] = {
        "bound_pods": sum(number for node in assembled.snapshot.nodes for _, number in node.pods),
        "pending": len(assembled.demands),
        "assemble_seconds": round(assembling, 3),
        "seconds": round(seconds, 4),
        "new_nodes": len(plan.claims),
        "hourly": plan.hourly / NANO,
        "unplaced": len(plan.unplaced),
    }
    if peer:
        theirs = karpenter.solve(raw, instance_types=types)
        row |= {
            "karpenter_seconds": round(theirs.best.seconds, 3),
            "karpenter_solve_seconds": round(theirs.best.solve_seconds, 3),
            "karpenter_copy_seconds": round(theirs.best.copy_seconds, 3),
            "karpenter_new_nodes": len(theirs.claims),
            "karpenter_unplaced": len(theirs.errors),
            "times_faster": round(theirs.best.seconds / seconds, 1),
        }
    return row


def assembled_from(raw: Sequence[Json], types: Sequence[Json]) -> Assembled:
    """The snapshot and the demands of raw objects."""
    found: dict[str, list[Any]] = {kind: [] for kind in STRUCTS}
    for each in raw:
        found[each["kind"]].append(msgspec.convert(each, STRUCTS[each["kind"]]))
    shapes = Shapes()
    objects = Objects(
        pods=[shapes.keep(pod) for pod in found["Pod"]],
        nodes=found["Node"],
        claims=found["NodeClaim"],
        pools=found["NodePool"],
        namespaces=found["Namespace"],
    )
    return assemble(objects, catalogue_of(types), now=NOW)
