"""python -m bench.owning.crowded PODS: an API server in a process of its own, full of pods that fit nowhere.

Prints its URL on one line when everything is loaded, and serves until its input ends. A process of its own, so that its work
is not in the event loop that is measured.
"""

import asyncio
import sys

from bench import mixes
from growth.api.crds import all_crds
from growth.api.kinds import Json
from growth.kube.memory import MemoryServer
from growth.kube.memory.serve import serving
from growth.ports import SystemClock, SystemRandom

MARKED: Json = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/0 nodes are available",
}
KWOK_CLASS: Json = {
    "apiVersion": "karpenter.kwok.sh/v1alpha1",
    "kind": "KWOKNodeClass",
    "metadata": {"name": "default"},
}


def filled(pods: int) -> MemoryServer:
    """Our kinds and namespace, a pool without limits, and so many pods that the scheduler has marked."""
    server = MemoryServer(SystemClock(), SystemRandom())
    for body in all_crds():
        server.create(server.resource("apiextensions.k8s.io", "v1", "customresourcedefinitions"), body)
    server.create(server.resource("", "v1", "namespaces"), {"metadata": {"name": "growth"}})
    classes = server.resource("karpenter.kwok.sh", "v1alpha1", "kwoknodeclasses")
    server.create(classes, KWOK_CLASS)
    server.create(server.resource("karpenter.sh", "v1", "nodepools"), mixes.node_pool())
    kind = server.resource("", "v1", "pods")
    for body in mixes.diverse(pods):
        meta = body["metadata"]
        server.create(kind, {**body, "status": {}}, namespace=meta["namespace"])
        status = {"status": {"phase": "Pending", "conditions": [MARKED]}}
        server.patch(kind, meta["name"], status, namespace=meta["namespace"], subresource="status")
    return server


async def serve(pods: int) -> None:
    server = filled(pods)
    async with serving(server) as url:
        print(url, flush=True)
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
