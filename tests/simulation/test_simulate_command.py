"""`growth simulate`: what it prints, how it fails, and that equal seeds repeat themselves anywhere."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable

import pytest

from growth.cli.entry import run
from growth.sim import campaign
from growth.sim.scenario.model import Order, Outcome, Violation

SCENARIO = """
hours: 0.4
workloads:
- {kind: burst, name: sale, pods: 12, at: 30s, lasts: 5m, pod: {cpu: "1", memory: 1Gi}}
- {kind: cron, name: report, every: 3m, pods: 2, runs: 20s}
- {kind: rollout, name: api, replicas: 3, every: 4m, pod: {volume: 1Gi}}
- {kind: trace, file: pods.csv, lasts: 10m}
events:
- {at: 1m, do: crash}
- {at: 2m, do: create, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}}
- {at: 3m, do: delete, object: {apiVersion: v1, kind: ConfigMap, metadata: {name: one}}}
settings: {packer: first-fit}
"""
TRACE = "cpu_milli,memory_mib,creation_time,deletion_time\n500,512,0,400\n500,512,60,200\n250,256,100,\n"
FIELDS = (
    *(
        "seeds",
        "runs",
        "hours",
        "steps",
        "world",
        "faults",
        "violations",
        "cost",
        "currency",
        "podSeconds",
        "evictions",
    ),
    *("scaleUps", "scaleDowns", "traceHash", "effectDigest"),
)


def scenario(folder: pathlib.Path, text: str = SCENARIO) -> str:
    (folder / "pods.csv").write_text(TRACE, encoding="utf-8")
    path = folder / "shop.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_scenario_is_played_and_summed_up(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Everything that the scenario says happens, nothing breaks, and the JSON has all of its fields."""
    assert run(["simulate", scenario(tmp_path), "-o", "json"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert tuple(found) == FIELDS
    assert found["violations"] == []
    assert found["world"]["peakPods"] >= 15
    assert found["scaleUps"] >= found["scaleDowns"] > 0
    assert found["cost"] > 0
    assert found["podSeconds"]["pending"] > 0
    assert "virtual hours per core-second" in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--seed", "1", "--seeds", "0-1"], "give one of them"),
        (["--seeds", "5-1"], "--seeds 5-1: write the first and the last"),
        (["--seed", "-1"], "0 or more"),
        (["--hours", "0"], "--hours 0"),
        (["--jobs", "0"], "--jobs 0"),
        (["--faults", "gremlins"], "there is no fault 'gremlins'"),
        (["--sabotage", "nothing"], "nothing"),
        (["missing.yaml"], "missing.yaml: cannot be read"),
    ],
)
def test_bad_arguments_are_refused(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and one line that says what is wrong."""
    assert run(["simulate", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_bad_scenario_is_refused_by_file_field_and_reason(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything runs."""
    path = scenario(tmp_path, "workloads: [{kind: burst, name: sale, pods: none}]")
    assert run(["simulate", path]) == 2
    assert f"{path}: workloads[0].pods: expected int" in capsys.readouterr().err


def test_a_violation_ends_with_one_and_the_command_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The story and the seed are printed; other seeds are not blamed."""
    whole = Outcome(
        seed=0,
        crash_after=0,
        steps=1,
        writes=1,
        hours=1.0,
        peak_machines=1,
        peak_pods=1,
        scale_ups=1,
        scale_downs=1,
        pending_seconds=0.0,
        evictions=0,
        cost=0,
        currency="EUR",
        digest="0" * 32,
        effects="0" * 32,
        faults={},
        violations=(),
    )

    def played(order: Order, *, tell: Callable[[float], None]) -> Outcome:
        tell(60.0)
        broken = Violation(seed=4, invariant="leaks", at=12.5, story="a machine\nwas forgotten")
        return dataclasses.replace(whole, seed=order.seed, violations=(broken,) if order.seed == 4 else ())

    monkeypatch.setattr(campaign, "run", played)
    assert run(["simulate", "--seeds", "3-5", "--hours", "2"]) == 1
    printed = capsys.readouterr()
    assert "seed 4, 12.50 s: leaks\n  a machine\n  was forgotten" in printed.out
    assert "repeat it with: growth simulate --seed 4 --hours 2" in printed.err
    assert "--seed 3" not in printed.err


def test_the_process_dies_after_every_write_in_turn(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many runs as there are writes, and one before; after each crash everything comes right."""
    text = "hours: 0.3\nworkloads: [{kind: burst, name: app, pods: 2, at: 20s, lasts: 2m}]"
    assert run(["simulate", scenario(tmp_path, text), "--crash-everywhere", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["seeds"], found["writePoints"]) == (1, found["runs"] - 1)
    assert found["writePoints"] > 10


TRACES = """
from growth.sim.campaign import perform
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order
orders = [Order(seed=seed, scenario=small(seed), hours=0.3, faults="all") for seed in range(20)]
print(" ".join(outcome.digest for outcome in perform(orders)))
"""


def test_equal_seeds_leave_equal_traces_in_any_process() -> None:
    """Twenty seeds with all faults, in two processes that hash differently."""
    first, second = (
        subprocess.run(
            [sys.executable, "-c", TRACES],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.split()
        for hash_seed in ("1", "2")
    )
    assert len(set(first)) == 20
    assert first == second
