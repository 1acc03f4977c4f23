"""`python -m bench top`: what it promises to print; the figures themselves are not asserted."""

import json

import pytest

from bench.__main__ import main
from bench.top import failed


def test_a_small_cluster_is_drawn_and_thought_about(capsys: pytest.CaptureFixture[str]) -> None:
    """Every node has a row, quiet looks and looks during a thought are timed apart, and the bound is found."""
    main(["top", "--nodes", "30", "--rounds", "2", "--changes", "5", "-o", "json"])
    result = json.loads(capsys.readouterr().out)
    assert result["rows"] == result["nodes"] == 30
    assert result["pods"] == 550
    assert result["quiet"]["rounds"] == 2
    assert result["thinking"]["rounds"] >= 1
    assert result["thought_seconds"] > 0
    assert result["above_least_percent"] > 0


def test_a_look_that_takes_half_a_second_is_a_failure() -> None:
    """The worst quiet one counts."""
    assert failed({"quiet": {"worst_seconds": 0.6}})
    assert not failed({"quiet": {"worst_seconds": 0.2}})
