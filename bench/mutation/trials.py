"""Tests beside mutants, in one process that has imported everything and forks for each trial.

`cover` runs every test once, a fork for each file, and records which mutants it reaches and how long it takes. `judge`
runs, for each mutant, the tests that reach it, the cheapest of those that reach few mutants first, until one fails.

A fork ends by a signal where a test takes more processor time than ten times its usual and ten seconds (a mutant that
loops) or five minutes by the clock (one that waits for ever); both count as noticed.
"""

import argparse
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import pytest
from _pytest.runner import runtestprotocol

from bench.mutation import carriers
from bench.mutation.sites import Site

ROOT: Final = pathlib.Path(__file__).parents[2]
USUAL_TIMES: Final = 10.0
SPARE_SECONDS: Final = 10.0
WAITING_SECONDS: Final = 300.0
UNKNOWN_SECONDS: Final = 120.0

Json = dict[str, Any]


def entries_of(state: pathlib.Path) -> list[Json]:
    """Whole lines; one that was cut off by the end of the process is taken out of the file."""
    lines = state.read_bytes().splitlines(keepends=True)
    if lines and not lines[-1].endswith(b"\n"):
        state.write_bytes(b"".join(lines[:-1]))
        lines = lines[:-1]
    return [json.loads(line) for line in lines]


class Trials:
    """The plugin that runs in place of pytest's loop over its tests."""

    def __init__(self, state: pathlib.Path, jobs: int, budget: float) -> None:
        self._state = state
        self._jobs = jobs
        self._budget = budget

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        self._all(list(_uncovered(items, entries_of(self._state))), "file")
        self._all(list(_unjudged(items, entries_of(self._state), self._budget)), "mutant")
        return True

    def _all(self, trials: Sequence[tuple[Json, Callable[[], Json]]], kind: str) -> None:
        """Forks for one after the other, `jobs` at a time; what each says becomes a line of the state at its end."""
        running: dict[int, tuple[Json, pathlib.Path]] = {}
        waiting = list(reversed(trials))
        done = 0
        with tempfile.TemporaryDirectory() as folder:
            while waiting or running:
                while waiting and len(running) < self._jobs:
                    about, body = waiting.pop()
                    answer = pathlib.Path(folder) / f"{len(waiting)}.json"
                    pid = os.fork()
                    if pid == 0:
                        _child(body, answer)
                    running[pid] = about, answer
                pid, status = os.wait()
                about, answer = running.pop(pid)
                said = json.loads(answer.read_text()) if answer.exists() else {"verdict": "timed_out"}
                if not os.WIFSIGNALED(status) and not answer.exists():
                    said = {"verdict": "trial_failed"}
                with self._state.open("a") as state:
                    state.write(json.dumps({**about, **said}) + "\n")
                done += 1
                print(
                    f"bench: {kind} {done} of {len(trials)}: {said.get('verdict', about.get('file'))}", file=sys.stderr
                )


def _child(body: Callable[[], Json], answer: pathlib.Path) -> None:
    """Never returns."""
    try:
        said = body()
        part = answer.with_suffix(".part")
        part.write_text(json.dumps(said))
        part.rename(answer)
    finally:
        os._exit(0)


def _uncovered(items: dict[str, pytest.Item], entries: Sequence[Json]) -> Iterator[tuple[Json, Callable[[], Json]]]:
    known = {entry["file"] for entry in entries if "file" in entry}
    files: dict[str, list[pytest.Item]] = {}
    for item in items.values():
        files.setdefault(item.nodeid.partition("::")[0], []).append(item)
    for file, those in files.items():
        if file not in known:
            yield {"file": file}, lambda those=those: {"reaching": _covered(those)}  # type: ignore[misc]


def _covered(items: Sequence[pytest.Item]) -> Json:
    found = {}
    for item, following in zip(items, [*items[1:], None], strict=True):
        carriers.reached.clear()
        began = time.process_time()
        passed = _passes(item, following)
        seconds = time.process_time() - began
        if passed and carriers.reached:
            found[item.nodeid] = [round(seconds, 3), sorted(carriers.reached)]
    return found


def _unjudged(
    items: dict[str, pytest.Item], entries: Sequence[Json], budget: float
) -> Iterator[tuple[Json, Callable[[], Json]]]:
    count = entries[0]["mutants"]
    known = {entry["mutant"] for entry in entries if "mutant" in entry}
    reaching: list[list[tuple[float, float, str]]] = [[] for _ in range(count)]
    for entry in entries:
        for test, (seconds, reached) in entry.get("reaching", {}).items():
            for number in reached:
                reaching[number].append(((0.05 + seconds) * len(reached), seconds, test))
    for number in range(count):
        if number in known:
            continue
        tests: list[tuple[pytest.Item, float]] = []
        spent = 0.0
        for _, seconds, test in sorted(reaching[number]):
            if spent + seconds <= budget or not tests:
                tests.append((items[test], seconds))
                spent += seconds
        about = {"mutant": number, "reached_by": len(reaching[number]), "run": len(tests)}
        yield about, lambda number=number, tests=tests: _judged(number, tests)  # type: ignore[misc]


def _judged(number: int, tests: Sequence[tuple[pytest.Item, float]]) -> Json:
    carriers.activate(number)
    if not tests:
        return {"verdict": "not_covered"}
    for item, seconds in tests:
        _bound(seconds)
        if not _passes(item, None):
            return {"verdict": "killed", "by": item.nodeid}
    return {"verdict": "survived"}


def _bound(seconds: float) -> None:
    """The signals' own action ends the process, whatever it is doing."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SPARE_SECONDS + USUAL_TIMES * seconds)
    signal.setitimer(signal.ITIMER_REAL, WAITING_SECONDS)


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("state", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, required=True)
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    with options.state.open() as state:
        head = json.loads(state.readline())
    carriers.install(ROOT, [Site(*site) for site in head["sites"]])
    os.environ["CI"] = "true"  # equal examples in every run
    arguments = ["-qq", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not plane", *options.tests]
    return int(pytest.main(arguments, plugins=[Trials(options.state, options.jobs, options.budget)]))


if __name__ == "__main__":
    sys.exit(main())
