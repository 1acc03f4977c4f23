"""A list of 20,000 pods, from the server's bytes to values, stage by stage, ours beside others.

Timed in CPU seconds of this process, the cyclic collector off on every side, best of the rounds:

- decode: from the pages' bytes to structs of the fields that Growth reads (`kube.wire.decode_list`, as the client does)
- orjson: from the same bytes to dicts (`orjson.loads`)
- cache: from the same bytes through a real informer into its store, shapes interned (decoding included)
- kubernetes-asyncio: from one list's bytes to its models (`ApiClient.deserialize`), on fewer pods

Memory that the cache keeps is measured in processes of its own, by two witnesses: what Python has allocated
(`tracemalloc`) and how much the process has grown (resident set, freed memory given back first). The bytes of a page are
not kept on any side.
"""

import argparse
import asyncio
import ctypes
import gc
import pathlib
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

import orjson

from bench import pods
from growth.api.kinds import Kind
from growth.api.pods import POD, Pod
from growth.cluster.shapes import CachedPod, Shapes
from growth.kube import wire
from growth.kube.api import Page
from growth.kube.informer import Informer
from growth.ports import SystemClock, SystemRandom

T = TypeVar("T")

PAGE: Final = 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--models", type=int, default=1_000, help="pods for kubernetes-asyncio, which is slow")
    parser.add_argument("--rounds", type=int, default=5)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    count: int = options.pods
    pages = pods.pages(count, page_size=PAGE)
    gc.collect()
    gc.disable()
    try:
        decode = _best(options.rounds, lambda: [wire.decode_list(POD, page) for page in pages]) / count
        dicts = _best(options.rounds, lambda: [orjson.loads(page) for page in pages]) / count
        cache = _best(options.rounds, lambda: _fill(pages)) / count
        models = _models(options.models)
    finally:
        gc.enable()
    kept = {witness: _kept(witness, count) for witness in ("tracemalloc", "resident")}
    return {
        "pods": count,
        "bytes_per_pod": sum(map(len, pages)) / count,
        "microseconds_per_pod": {
            "decode": 1e6 * decode,
            "orjson_to_dicts": 1e6 * dicts,
            "into_the_cache": 1e6 * cache,
            "kubernetes_asyncio_models": 1e6 * models,
        },
        "decode_is_faster_than_orjson_by": dicts / decode,
        "cache_is_faster_than_models_by": models / cache,
        "kept_bytes_per_pod": {witness: size / count for witness, (size, _) in kept.items()},
        "shapes": kept["resident"][1],
    }


def _best(rounds: int, work: Callable[[], object]) -> float:
    """The CPU seconds of the quickest round."""
    times = []
    for _ in range(rounds):
        began = time.process_time()
        result = work()
        times.append(time.process_time() - began)
        del result
        gc.collect()
    return min(times)


class Bytes:
    """As much of an Api as an informer's list needs: pages that are already in memory or on disk."""

    def __init__(self, pages: Sequence[bytes | pathlib.Path]) -> None:
        self._pages = pages
        self._next = 0

    async def list(self, kind: Kind[T], **_: Any) -> Page[T]:
        page = self._pages[self._next]
        self._next += 1
        return wire.decode_list(kind, page if isinstance(page, bytes) else page.read_bytes())


def _fill(pages: Sequence[bytes | pathlib.Path]) -> tuple[Informer[Pod, CachedPod], Shapes]:
    shapes = Shapes()
    informer = Informer(
        Bytes(pages),  # type: ignore[arg-type] # it only lists
        POD,
        clock=SystemClock(),
        random=SystemRandom(),
        transform=shapes.keep,
        indexes={"node": lambda pod: (pod.node_name,)},
    )
    asyncio.run(informer._list())  # noqa: SLF001 - the list alone; there is nothing to watch
    return informer, shapes


def _models(count: int) -> float:
    """CPU seconds per pod of kubernetes-asyncio."""
    from kubernetes_asyncio.client import ApiClient  # noqa: PLC0415 - slow to import, and only here

    class Response:
        (data,) = pods.pages(count, page_size=count)

    async def deserialize() -> float:
        async with ApiClient() as client:
            began = time.process_time()
            listed = client.deserialize(Response, "V1PodList")
            ended = time.process_time()
            assert len(listed.items) == count
            return ended - began

    return asyncio.run(deserialize()) / count


def _kept(witness: str, count: int) -> tuple[int, int]:
    """What the filled cache keeps in bytes, measured in a process of its own, and how many shapes there are."""
    with tempfile.TemporaryDirectory() as folder:
        for number, page in enumerate(pods.pages(count, page_size=PAGE)):
            (pathlib.Path(folder) / f"{number:05}").write_bytes(page)
        program = [sys.executable, "-m", "bench.decode", witness, folder]
        answer = subprocess.run(program, check=True, capture_output=True, text=True).stdout.split()
    return int(answer[0]), int(answer[1])


def _witness(witness: str, folder: str) -> None:
    files = sorted(pathlib.Path(folder).iterdir())
    _fill(files[-1:])  # imports, decoders and arenas that any use would need
    gc.collect()
    if witness == "tracemalloc":
        tracemalloc.start()
        kept = _fill(files)
        gc.collect()
        size = tracemalloc.get_traced_memory()[0]
    else:
        before = _resident()
        kept = _fill(files)
        gc.collect()
        size = _resident() - before
    print(size, len(kept[1]))


def _resident() -> int:
    """Bytes of memory that the process has, freed memory given back first."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


if __name__ == "__main__":
    _witness(sys.argv[1], sys.argv[2])
