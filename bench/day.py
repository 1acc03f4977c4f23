"""An informer and an elector for a virtual day on the simulation kernel.

Nothing is compared: wall-clock seconds are those of the run alone, from building the world to its end. The informer
follows ConfigMaps of which one changes every ten seconds; the elector renews its lease every two.
"""

import argparse
import asyncio
import time
from typing import Any

from growth.api.core import CONFIG_MAP
from growth.kube.informer import Informers
from growth.kube.lease import Elector
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import SimClock, SimRandom


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=86_400.0, help="virtual seconds")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    began = time.perf_counter()

    async def main(kernel: Kernel) -> dict[str, Any]:
        random = SimRandom(kernel.seed, "day")
        clock = SimClock(kernel)
        admin = MemoryApi(MemoryServer(clock, random.stream("server")))
        network = NetworkApi(admin, kernel=kernel, random=random.stream("network"))
        informers = Informers(network, clock=clock, random=random.stream("informers"))
        followed = informers.watch(CONFIG_MAP)
        elector = Elector(
            network,
            clock=clock,
            random=random.stream("elector"),
            name="growth",
            namespace="kube-system",
            identity="one",
        )

        async def change() -> None:
            await admin.create(CONFIG_MAP, {"metadata": {"name": "beat"}}, namespace="default")
            number = 0
            while True:
                number += 1
                await asyncio.sleep(10)
                await admin.patch(CONFIG_MAP, "beat", {"data": {"n": str(number)}}, namespace="default")

        tasks = [
            kernel.create_task(coroutine)
            for coroutine in (informers.run(), elector.run(asyncio.Event().wait), change())
        ]
        await asyncio.sleep(options.seconds)
        assert not any(task.done() for task in tasks)
        return {"events": followed.statistics().events, "renewals": elector.statistics().renewals}

    done = sim.run(main, seed=options.seed)
    return {
        "virtual_seconds": done.seconds,
        "steps": done.steps,
        **done.value,
        "digest": done.digest,
        "seconds": time.perf_counter() - began,
    }
