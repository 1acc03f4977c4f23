"""`growth plan` on 20,000 pods in a JSON list, as a person runs it.

Timed around the whole process, from its start to its end, output included; CPU seconds and the peak of its resident set are
what the operating system counted for it. *diverse* and *generic* are the mixes of `bench.mixes`; *dump* are pods as an
API server sends them, about 6 KB each, with the node taken off. Types are KWOK's.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, Final

from bench import mixes, pods
from growth.api.kinds import Json

GROWTH: Final = pathlib.Path(sys.prefix) / "bin" / "growth"
KIB: Final = 1024


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--mix", choices=sorted(MIXES), action="append", help="only this mix; may be repeated")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    return {name: _measured(name, options.pods) for name in options.mix or MIXES}


def _dump(count: int) -> list[Json]:
    items: list[Json] = [item for page in pods.pages(count) for item in json.loads(page)["items"]]
    for item in items:
        item.update(apiVersion="v1", kind="Pod", status={"phase": "Pending"})
        item["spec"].pop("nodeName", None)
        item["spec"].pop("priorityClassName", None)
        for container in item["spec"]["containers"]:
            container["resources"].pop("limits", None)  # drawn by themselves, they may lie below the requests
    return items


MIXES: Final[dict[str, Callable[[int], list[Json]]]] = {
    "diverse": mixes.diverse,
    "generic": mixes.generic,
    "dump": _dump,
}


def write(name: str, count: int, path: str) -> None:
    """The mix and its pool as a List."""
    items = [mixes.node_pool(), *MIXES[name](count)]
    pathlib.Path(path).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def _measured(name: str, count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pods.json"
        # By a process of its own: what a parent holds counts in the peak of its children.
        program = f"from bench.plan import write; write({name!r}, {count}, {str(path)!r})"
        subprocess.run([sys.executable, "-c", program], check=True)
        size = path.stat().st_size
        output = pathlib.Path(folder) / "plan.json"
        begun = time.monotonic()
        with output.open("wb") as out:
            process = subprocess.Popen([GROWTH, "plan", "-f", path, "-o", "json"], stdout=out)
            _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"bench: growth plan ended with {process.returncode}")
        plan = json.loads(output.read_bytes())
    return {
        "pods": plan["summary"]["pods"],
        "nodes": plan["summary"]["nodes"],
        "unschedulable": len(plan["unschedulable"]),
        "input_mb": size / 1e6,
        "seconds": seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "planning_seconds": plan["summary"]["seconds"],
        "peak_mb": usage.ru_maxrss * KIB / 1e6,
    }
