"""Equal seeds give equal traces: in separate processes, under any hash seed."""

import os
import subprocess
import sys

import pytest

WORLD = """
import asyncio
from growth.sim import kernel
from growth.sim.world.cluster import SimCluster

async def main(running):
    cluster = SimCluster(running)
    cluster.start()
    for name in ("one", "two", "three"):
        await cluster.add_node(name, zone=name[0])
    await cluster.add_deployment("web", 7)
    await asyncio.sleep(60)
    await cluster.add_deployment("db", 9)
    await asyncio.sleep(60)
    running.trace.record(cluster.server.revision, *[pod.metadata.uid + pod.spec.node_name for pod in await cluster.pods()])

print(kernel.run(main, seed=5, shuffle=True).digest)
"""


@pytest.mark.parametrize(
    "program",
    [
        "from growth.sim.trials.following import follow; print(follow(5, changes=400, cuts=20, shuffle=True).digest)",
        "from growth.sim.trials.electing import elect; print(elect(5).digest)",
        WORLD,
    ],
    ids=["following", "electing", "world"],
)
def test_one_seed_has_one_trace_in_every_process(program: str) -> None:
    """The same program in separate processes with three hash seeds prints one digest."""
    digests = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for hash_seed in ("0", "7", "123456")
    ]
    assert len(digests[0]) == 32
    assert len(set(digests)) == 1
