"""How much of the controllers, the cluster's view and the KWOK cloud the simulation alone goes through, branch by branch.

Runs `growth simulate`'s worlds with all faults under a tracer and counts the outcomes of every `if`, `for`, `while` and
`case` of the packages: each has two, taken and not taken; conditions that are always true by their text have none. Nothing
is timed. The rows are modules; those least covered come first.
"""

import argparse
import ast
import dataclasses
import dis
import importlib
import pathlib
import pkgutil
import sys
import types
from collections.abc import Iterator
from typing import Any

from growth.operator import logs
from growth.ports import SystemClock
from growth.sim.runs import run
from growth.sim.scenario.generate import generate, small
from growth.sim.scenario.model import Order

PACKAGES = ("growth.controllers", "growth.cluster", "growth.providers.kwok")
WANTED = 0.85
EXIT = -1


@dataclasses.dataclass(frozen=True, slots=True)
class Branch:
    """A decision: from one of the lines `first`..`last` to `inside`, or to anywhere else."""

    first: int
    last: int
    inside: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--missing", default="", help="print the lines of a module whose branches were not all seen")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    logs.configure(clock=SystemClock(), stream=sys.stderr, level="error")
    files = {file: name for name, file in _modules()}
    tracer = _Tracer(set(files))
    sys.settrace(tracer.called)
    try:
        for seed in range(options.seeds):
            run(Order(seed=seed, scenario=generate(seed, hours=options.hours), hours=options.hours, faults="all"))
            run(Order(seed=seed, scenario=small(seed), hours=0.5, crash_after=seed + 1))
            print(f"bench: seed {seed}", file=sys.stderr)
    finally:
        sys.settrace(None)
    rows: list[dict[str, Any]] = []
    covered = total = 0
    for file, name in files.items():
        branches = list(_branches(ast.parse(pathlib.Path(file).read_text())))
        arcs = tracer.arcs.get(file, set())
        seen = [_outcomes(branch, arcs) for branch in branches]
        covered += sum(map(sum, seen))
        total += 2 * len(branches)
        if branches:
            share = sum(map(sum, seen)) / (2 * len(branches))
            rows.append({"module": name, "outcomes": 2 * len(branches), "seen": share})
        if options.missing and name.endswith(options.missing):
            for branch, (taken, not_taken) in zip(branches, seen, strict=True):
                if not (taken and not_taken):
                    print(f"{name}:{branch.first}: {'taken' if not taken else 'not taken'} is missing", file=sys.stderr)
    rows.sort(key=lambda row: row["seen"])
    return {"seeds": options.seeds, "outcomes": total, "seen": covered, "share": covered / total, "modules": rows}


def failed(result: dict[str, Any]) -> bool:
    return bool(result["share"] < WANTED)


class _Tracer:
    """Which line followed which, in the files that are asked about; what follows a suspension counts from where it was."""

    def __init__(self, files: set[str]) -> None:
        self.arcs: dict[str, set[tuple[int, int]]] = {}
        self._files = files

    def called(self, frame: types.FrameType, event: str, _arg: Any) -> Any:
        if event != "call" or frame.f_code.co_filename not in self._files:
            return None
        arcs = self.arcs.setdefault(frame.f_code.co_filename, set())
        before = frame.f_lineno

        def local(frame: types.FrameType, event: str, _arg: Any) -> Any:
            nonlocal before
            if event == "line":
                arcs.add((before, frame.f_lineno))
                before = frame.f_lineno
            elif event == "return" and frame.f_code.co_code[frame.f_lasti] == dis.opmap["RETURN_VALUE"]:
                arcs.add((before, EXIT))
            return local

        return local


def _modules() -> Iterator[tuple[str, str]]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            module = importlib.import_module(found.name)
            if module.__file__ is not None:
                yield found.name, module.__file__


def _branches(tree: ast.AST) -> Iterator[Branch]:
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant) and not _typing(test):
                yield Branch(test.lineno, test.end_lineno or test.lineno, node.body[0].lineno)
            case ast.For() | ast.AsyncFor():
                yield Branch(node.lineno, node.iter.end_lineno or node.lineno, node.body[0].lineno)
            case ast.match_case(pattern=pattern) if not (isinstance(pattern, ast.MatchAs) and pattern.pattern is None):
                last = node.guard.end_lineno if node.guard is not None else pattern.end_lineno
                yield Branch(pattern.lineno, last or pattern.lineno, node.body[0].lineno)


def _typing(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _outcomes(branch: Branch, arcs: set[tuple[int, int]]) -> tuple[bool, bool]:
    """Whether it was seen taken, and not taken."""
    left = {to for at, to in arcs if branch.first <= at <= branch.last and not branch.first <= to <= branch.last}
    return branch.inside in left, bool(left - {branch.inside})
