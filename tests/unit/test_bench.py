"""The benchmarks' own promises; what they measure is not asserted here."""

import json

import pytest

from bench.__main__ import main


def test_every_benchmark_says_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a name the benchmarks are listed, each with a line."""
    assert main([]) == 0
    listed = capsys.readouterr().out
    for name in ("day", "decode", "electing", "informer"):
        assert f"  {name} " in listed


def test_an_unknown_benchmark_is_refused_with_the_choice(capsys: pytest.CaptureFixture[str]) -> None:
    """A wrong name is exit code 2 and one line that names the right ones; a module that measures nothing is wrong."""
    assert main(["nothing"]) == 2
    assert main(["pods"]) == 2
    assert "cost, crashes, day, decode" in capsys.readouterr().err


def test_decode_tells_its_stages_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """On a small list every stage and both witnesses of memory give a figure, and pods are as large as real ones."""
    assert main(["decode", "--pods", "600", "--models", "20", "--rounds", "1", "-o", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert 5500 < result["bytes_per_pod"] < 6500
    assert all(value > 0 for value in result["microseconds_per_pod"].values())
    assert set(result["kept_bytes_per_pod"]) == {"tracemalloc", "resident"}
    assert result["shapes"] == 10


def test_sweeps_print_what_they_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A sweep of two seeds and an hour of virtual time print their counts as a table."""
    assert main(["informer", "--seeds", "2", "--changes", "100"]) == 0
    assert main(["electing", "--seeds", "1"]) == 0
    assert main(["day", "--seconds", "600"]) == 0
    printed = capsys.readouterr().out
    assert "deletions by relist" in printed
    assert "late" in printed
    assert "renewals" in printed
