"""Campaigns that go on where they stopped, and two of them compared."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from growth.cli.entry import run
from growth.sim import campaign, results
from growth.sim.results import Code, Results, ResultsError, running_code
from growth.sim.scenario.model import Order, Outcome, Violation

OPTIONS = {"--faults": "all"}


def outcome(seed: int, *, effects: str = "e", seconds: float = 2.0) -> Outcome:
    return Outcome(
        seed=seed,
        crash_after=0,
        steps=1,
        writes=1,
        hours=1.0,
        peak_machines=1,
        peak_pods=1,
        scale_ups=1,
        scale_downs=1,
        pending_seconds=0.5,
        evictions=0,
        cost=seed,
        currency="EUR",
        digest=f"{seed:032}",
        effects=effects,
        faults={"crash": 2},
        violations=(Violation(seed=seed, invariant="leak", at=1.5, story="a machine\nwas forgotten"),),
        core_seconds=seconds,
    )


@contextlib.contextmanager
def opened(file: pathlib.Path) -> Iterator[Results]:
    found = Results(file, OPTIONS)
    try:
        yield found
    finally:
        found.close()


def written(file: pathlib.Path, *outcomes: Outcome) -> pathlib.Path:
    with opened(file) as found:
        for each in outcomes:
            found.add(each)
    return file


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The seeds that were run, each in no time."""
    seeds: list[int] = []

    def run_it(order: Order, *, tell: Callable[[float], None]) -> Outcome:
        tell(60.0)
        seeds.append(order.seed)
        return outcome(order.seed)

    monkeypatch.setattr(campaign, "run", run_it)
    return seeds


def test_what_is_in_the_file_is_not_run_again(
    tmp_path: pathlib.Path, played: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    """More seeds may be asked for, and the sum is of all that are asked for."""
    file = str(tmp_path / "results")
    run(["simulate", "--seeds", "3-4", "--resume", file, "-o", "json"])
    capsys.readouterr()
    run(["simulate", "--seeds", "2-5", "--resume", file, "-o", "json"])
    printed = capsys.readouterr()
    assert played == [3, 4, 2, 5]
    assert json.loads(printed.out)["runs"] == 4
    assert "2 of 4 runs are there already" in printed.err
    assert str(running_code()) in printed.err
    assert "core-seconds a run" in printed.err


def test_an_outcome_is_read_as_it_was_written(tmp_path: pathlib.Path) -> None:
    """Every field of it, stories with line breaks included."""
    with opened(written(tmp_path / "results", outcome(3), outcome(4))) as found:
        assert found.done == {(3, 0): outcome(3), (4, 0): outcome(4)}


def test_half_a_line_is_cut_off(tmp_path: pathlib.Path) -> None:
    """Wherever the file ends: what is whole stays, and the next outcome is read again."""
    file = written(tmp_path / "results", outcome(3), outcome(4))
    body = file.read_bytes()
    lines = body.splitlines(keepends=True)
    for length in range(0, len(body), 7):
        file.write_bytes(body[:length])
        with opened(file) as found:
            whole = body[:length].count(b"\n")
            assert len(found.done) == max(0, whole - 1)
            found.add(outcome(5))
        assert file.read_bytes().splitlines(keepends=True)[:whole] == lines[:whole]
        with opened(file) as found:
            assert (5, 0) in found.done


def test_other_options_are_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By their name, with what they were; nothing is run and nothing written."""
    file = written(tmp_path / "results", outcome(3))
    before = file.read_bytes()
    assert run(["simulate", "--seed", "3", "--resume", str(file)]) == 2
    assert "its runs have --crash-everywhere unset, and not false" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_other_code_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its commit says: a file that was edited is other code."""
    file = written(tmp_path / "results", outcome(3))
    monkeypatch.setattr(results, "running_code", lambda: Code("other", running_code().commit))
    with pytest.raises(ResultsError, match=r"its runs are of other code .* name another file"):
        Results(file, OPTIONS)


@pytest.mark.parametrize("body", [b"hello\n", b"{}\n", b'{"code":{"sources":"a"},"options":{}}\n{}\n'])
def test_another_file_is_not_added_to(tmp_path: pathlib.Path, body: bytes) -> None:
    """It stays as it is."""
    file = tmp_path / "results"
    file.write_bytes(body)
    with pytest.raises(ResultsError, match="this is no file of results"):
        Results(file, OPTIONS)
    assert file.read_bytes() == body


def test_runs_with_other_effects_are_named(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside them how many are equal, how many are in one file alone, and what a run cost before and after."""
    before = written(tmp_path / "before", outcome(3), outcome(4), outcome(5))
    after = written(tmp_path / "after", outcome(3, seconds=1.0), outcome(4, effects="f", seconds=1.0))
    assert run(["simulate", "--compare", str(before), str(after)]) == 1
    printed = capsys.readouterr().out
    assert "seed 4: effects e before, f after" in printed
    assert "1 runs are in one of the files alone" in printed
    assert "1 runs have equal effects, 1 have others" in printed
    assert "core-seconds a run: 2.00 before, 1.00 after" in printed


def test_equal_effects_are_no_failure(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the trace's hash is another, as after a renaming; a file that is not there is bad input."""
    before, after = (written(tmp_path / name, outcome(3)) for name in ("before", "after"))
    assert run(["simulate", "--compare", str(before), str(after)]) == 0
    assert run(["simulate", "--compare", str(before), str(tmp_path / "none")]) == 2
    assert "none: cannot be read" in capsys.readouterr().err


def running_in(session: int) -> list[str]:
    """The processes of the session that have not ended."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            if int(of) == session and state != "Z":
                found.append(path.parent.name)
    return found


def test_a_killed_campaign_goes_on(tmp_path: pathlib.Path) -> None:
    """Killed with a run in the file: its two workers end too, and in the end the digest is that of an undisturbed one."""
    scenario = tmp_path / "one.yaml"
    scenario.write_text(
        "hours: 0.2\nworkloads: [{kind: burst, name: app, pods: 2, at: 20s, lasts: 2m}]", encoding="utf-8"
    )
    growth = str(pathlib.Path(sys.executable).with_name("growth"))
    campaign = [growth, "simulate", str(scenario), "--seeds", "0-5", "--jobs", "2", "-o", "json"]
    file = tmp_path / "results"
    command = [*campaign, "--resume", str(file)]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while not file.exists() or file.read_bytes().count(b"\n") < 2:
        with contextlib.suppress(subprocess.TimeoutExpired):
            first.wait(timeout=0.1)
        assert first.poll() is None
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    done = file.read_bytes()
    second = subprocess.run(command, check=True, capture_output=True, text=True)
    assert file.read_bytes().startswith(done[: done.rfind(b"\n") + 1])
    undisturbed = subprocess.run(campaign, check=True, capture_output=True, text=True)
    assert json.loads(second.stdout) == json.loads(undisturbed.stdout)
    there = done.count(b"\n") - 1
    assert f"{there} of 6 runs are there already" in second.stderr
    assert not running_in(first.pid)
