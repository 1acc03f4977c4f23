"""A stock-out that only a pinned pod meets: how long a pod that may be anywhere waits, beside the same world without it.

Each seed is played twice in a simulated cluster with the whole autoscaler and a growth pool of one server type. In one world the
cloud has none of the type in one location, and a pod that is pinned to that location comes at a random moment before the other
pod, or together with it. In the control there is neither. Timed is, in virtual seconds, from the creation of the pod that may be
anywhere until it runs. The limit is what the ratio of the sums, and of each seed, may be.
"""

import argparse
import asyncio
import sys
from typing import Any, Final

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.growthpools import GROWTH_POOL
from growth.api.kinds import Json
from growth.api.pods import POD
from growth.kube.lease import LeaseLost
from growth.operator import logs
from growth.ports import SystemClock
from growth.providers.catalogues import builtin
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.providers.kwok.kubelets import KubeletSettings
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import GROWTH_NAMESPACE, Stage

TYPE: Final = "cax11"
HERE: Final = "fsn1"
LIMIT: Final = 1.2
MOST_SECONDS: Final = 1200.0
LOOK_SECONDS: Final = 0.1
# Equal for every machine: the two worlds differ in what the autoscaler does.
KUBELETS: Final = KubeletSettings(node_ready=(8.0, 8.0), pod_start=(1.0, 1.0), heartbeat=0.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=5000, help="the first seed")


def waited(seed: int, *, pinned: bool) -> float:
    """Virtual seconds; `pinned`: with the stock-out and the pod that is pinned to it."""
    return sim.run(lambda kernel: _main(kernel, pinned=pinned), seed=seed, limit_seconds=100_000).value


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    pairs = []
    for seed in range(options.first, options.first + options.seeds):
        pairs.append((waited(seed, pinned=True), waited(seed, pinned=False)))
        print(f"\r{len(pairs)} of {options.seeds} seeds", end="", file=sys.stderr)
    print(file=sys.stderr)
    with_it, without = (sum(side) / len(pairs) for side in zip(*pairs, strict=True))
    return {
        "seeds": len(pairs),
        "mean virtual seconds with the pinned stock-out": with_it,
        "mean virtual seconds without it": without,
        "longest with it": max(one for one, _ in pairs),
        "longest without it": max(other for _, other in pairs),
        "ratio of the means": with_it / without,
        "greatest ratio of a seed": max(one / other for one, other in pairs),
        "seeds above the limit": sum(one > LIMIT * other for one, other in pairs),
        "limit": LIMIT,
    }


def failed(result: dict[str, Any]) -> bool:
    return bool(result["ratio of the means"] > LIMIT)


async def _main(kernel: Kernel, *, pinned: bool) -> float:
    stage = Stage(kernel, forgiven=(LeaseLost,), kubelets=KUBELETS)
    await stage.prepare()
    pool = {"metadata": {"name": "default"}, "spec": {"serverTypes": [{"name": TYPE, "max": 10}]}}
    await stage.admin.create(GROWTH_POOL, pool)
    if pinned:
        fault = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": {"noCapacity": f"{TYPE}/{HERE}/*"}}
        await stage.admin.create(CONFIG_MAP, fault, namespace=GROWTH_NAMESPACE)
    stage.start("growth", Life(catalogue=builtin("hetzner")))
    random = SimRandom(kernel.seed, "stock-out")
    head_start = random.choice((0.0, random.uniform(0.0, 5.0), random.uniform(5.0, 120.0)))
    await asyncio.sleep(30.0)
    if pinned:
        await stage.admin.create(POD, _pod("pinned", nodeSelector={names.ZONE_LABEL: HERE}), namespace="default")
    await asyncio.sleep(head_start)
    began = kernel.time()
    await stage.admin.create(POD, _pod("free"), namespace="default")
    while kernel.time() - began < MOST_SECONDS:
        if (await stage.admin.get(POD, "free", namespace="default")).status.phase == "Running":
            return kernel.time() - began
        await asyncio.sleep(LOOK_SECONDS)
    return MOST_SECONDS


def _pod(name: str, **spec: Any) -> Json:
    container = {"name": "main", "image": "example", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container], **spec}}
