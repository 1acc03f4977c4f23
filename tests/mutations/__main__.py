"""Reads pairs of test and mutation, forks for each, and writes what it saw: `[fault, first line of the failure]` a pair.

Python and pytest are started and the tests collected once. A child applies one mutation and runs the items of one test
until the first that fails; the parent runs nothing, so that each child has the caches that the imports left. Before its
first mutation each test must pass in such a child as it is.
"""

import gc
import json
import os
import resource
import signal
import sys
import tempfile
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from tests.mutations.mutation import DoesNotApplyError, Mutation, caches

# Seconds of CPU that a test may take, and that a mutant may take beside ten times as long as the test takes without it.
TEST_SECONDS = 15.0
MUTANT_SECONDS = 3.0
# What waits for something that never comes uses no CPU.
CLOCK_SECONDS = 300
MEMORY_BYTES = 6 << 30
KILLED = "killed"
PASSED = "passed"


class Trials:
    """A plugin that tries mutations in place of running the tests that were collected."""

    def __init__(self, pairs: list[tuple[str, Mutation]]) -> None:
        self.pairs = pairs
        self.answers: list[tuple[str, str]] = []
        self.faults: dict[str, str] = {}  # by file, why it could not be collected

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.faults[report.nodeid] = report.longreprtext.strip().rpartition("\n")[2]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        caches()
        gc.collect()
        gc.freeze()  # a child shares the pages that no collection touches
        items: dict[str, list[pytest.Item]] = {}
        for item in session.items:
            if not item.get_closest_marker("plane"):
                items.setdefault(item.nodeid.partition("[")[0], []).append(item)
        passes: dict[str, tuple[str, str]] = {}
        seconds: dict[str, float] = {}
        tried: dict[tuple[str, Mutation], tuple[str, str]] = {}
        for test, mutation in self.pairs:
            of_test = items.get(_node(test), [])
            fault = self.faults.get(_node(test).partition("::")[0])
            if fault is not None:
                passes[test] = (f"the file cannot be collected: {fault}", "")
            if test not in passes:
                before = _seconds_of_children()
                passes[test] = _forked(of_test, None, seconds=TEST_SECONDS)
                seconds[test] = MUTANT_SECONDS + 10 * (_seconds_of_children() - before)
            if passes[test][0] != PASSED:
                answer = (f"broken without the mutation: {passes[test][0]}", passes[test][1])
            else:
                if (test, mutation) not in tried:
                    tried[test, mutation] = _forked(of_test, mutation, seconds=seconds[test])
                outcome, seen = tried[test, mutation]
                answer = ("" if outcome == KILLED else "survived" if outcome == PASSED else outcome, seen)
            self.answers.append(answer)
        return True


def _node(test: str) -> str:
    module, _, name = test.partition("::")
    return f"tests/{module.replace('.', '/')}.py::{name}"


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _forked(items: list[pytest.Item], mutation: Mutation | None, *, seconds: float) -> tuple[str, str]:
    """What a child says of the items under the mutation: an outcome and a line."""
    if not items:
        return "no item of that name runs without the real control plane", ""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            said = _tried(items, mutation, seconds=seconds)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the parent hears of it
            said = f"the trial broke: {error!r}", ""
        with os.fdopen(writing, "w") as pipe:
            json.dump(said, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return (
            f"ended by {signal.Signals(os.WTERMSIG(status)).name}: it may take {seconds:.0f} s of CPU and {CLOCK_SECONDS} s",
            "",
        )
    outcome, seen = json.loads(text)
    return outcome, seen


def _tried(items: list[pytest.Item], mutation: Mutation | None, *, seconds: float) -> tuple[str, str]:
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, CLOCK_SECONDS)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    if mutation is not None:
        try:
            mutation.apply()
        except DoesNotApplyError as error:
            return f"does not apply: {error}", ""
    for item in items:
        for report in runtestprotocol(item, log=False, nextitem=None):
            if report.failed:
                return (KILLED, _first_line(report)) if mutation else ("the test fails", _first_line(report))
            if report.skipped:
                return "the test is skipped", str(report.longrepr)
    return PASSED, ""


def _first_line(report: pytest.TestReport) -> str:
    crash: Any = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else str(report.longrepr)).strip().partition("\n")[0]


def main() -> int:
    pairs = [(test, Mutation(**mutation)) for test, mutation in json.load(sys.stdin)]
    trials = Trials(pairs)
    said = os.dup(1)
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory(prefix="growth-mutations-") as folder:
        code = pytest.main(
            [
                *("-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib"),
                f"--basetemp={folder}/tests",
                *dict.fromkeys(_node(test).partition("::")[0] for test, _ in pairs),
            ],
            plugins=[trials],
        )
    if len(trials.answers) != len(pairs):
        return int(code) or 1
    os.write(said, (json.dumps(trials.answers) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
