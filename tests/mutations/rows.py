"""A row of a table: what is promised, the test that shows it, and a mutation that makes that test fail."""

import importlib
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from tests.mutations.mutation import Mutation

ROOT = pathlib.Path(__file__).parents[2]


@dataclass(frozen=True)
class Row:
    """`shown` is `module::test`, the module counted from `tests`. `killer` is the test that the mutation makes fail, where it is
    another one: `shown` may need the real control plane, and the killer never does.
    """

    promise: str
    shown: str
    mutation: Mutation
    killer: str = ""

    def check_names(self) -> None:
        """The tests that are named exist, and each states a law."""
        for each in {self.shown, self.killed_by}:
            module, _, name = each.partition("::")
            found = getattr(importlib.import_module(f"tests.{module}"), name, None)
            assert found is not None, f"{self.promise} names {each}, which is not there"
            assert found.__doc__, each

    @property
    def killed_by(self) -> str:
        return self.killer or self.shown


@dataclass(frozen=True)
class Verdict:
    """What became of one row; `fault` is empty where the mutation was killed."""

    promise: str
    killed_by: str
    mutation: str
    fault: str = ""
    seen: str = ""
    """The first line of the failure that killed it."""

    def __str__(self) -> str:
        return f"«{self.promise}»\n    {self.killed_by}\n    {self.mutation}\n    {self.fault or self.seen}"


def try_rows(rows: Sequence[Row]) -> list[Verdict]:
    """Applies the mutation of each row in a process of its own, and sees its test fail.

    Equal pairs of mutation and test are tried once. The tests are collected once, in a fresh process that forks for each
    pair (`tests.mutations.__main__`): what runs here has threads and caches.
    """
    pairs = [[each.killed_by, asdict(each.mutation)] for each in rows]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.mutations"],
        cwd=ROOT,
        env=environment | {"OPENBLAS_NUM_THREADS": "1"},
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"the tests of the mutations cannot be collected:\n{done.stdout}\n{done.stderr}"
    answers = json.loads(done.stdout.splitlines()[-1])
    return [
        Verdict(row.promise, row.killed_by, str(row.mutation), fault=fault, seen=seen)
        for row, (fault, seen) in zip(rows, answers, strict=True)
    ]


def check(rows: Sequence[Row], record_property: Callable[[str, object], None]) -> None:
    """Each row of a table has a mutation, and each mutation is killed. The counts are printed at the end of the run."""
    verdicts = try_rows(rows)
    record_property("mutations", (len(rows), len({each.mutation for each in rows})))
    faults = [str(each) for each in verdicts if each.fault]
    assert not faults, "\n".join([f"{len(faults)} of {len(rows)} rows have no mutation that is killed:", *faults])
