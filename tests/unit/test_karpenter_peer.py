"""The driver of the Karpenter peer, with a stand-in for the program."""

import pathlib

import msgspec
import pytest

from bench.peers import karpenter
from bench.peers.karpenter import PeerError
from growth.api.kinds import Json

ANSWER: Json = {
    "runs": [
        {"copySeconds": 0.1, "seconds": 3.0, "solveSeconds": 2.5, "cpuSeconds": 4.0, "nodes": 2},
        {"copySeconds": 0.1, "seconds": 2.0, "solveSeconds": 1.5, "cpuSeconds": 3.0, "nodes": 2},
    ],
    "peakMemoryBytes": 1,
    "pods": 4,
    "claims": [
        {
            "nodePool": "default",
            "pods": ["default/a"],
            "instanceTypes": ["small", "large"],
            "price": price,
            "zone": "zone-1",
            "capacityType": "on-demand",
            "requests": {"cpu": "1"},
        }
        for price in (0.25, 0.5)
    ],
    "existingNodes": [{"name": "node-1", "pods": ["default/b"]}],
    "errors": {"default/c": "no room"},
    "ignored": {},
    "ignoredNodePools": {},
}


def stand_in(folder: pathlib.Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(karpenter, "build", lambda: program)


def test_an_answer_is_typed() -> None:
    """Sums and choices are over what the program printed."""
    (answer,) = karpenter.decode(msgspec.json.encode(ANSWER))
    assert answer.hourly == 0.75
    assert answer.best.seconds == 2.0
    assert answer.placed == {"default/a", "default/b"}
    assert answer.claims[0].instance_types == ("small", "large")


def test_answers_come_in_the_order_of_the_scenarios(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line a scenario, one start of the program for all; each scenario is a List in a file of its own."""
    answers = [msgspec.json.encode(ANSWER | {"pods": pods}).decode() for pods in (7, 8)]
    stand_in(tmp_path, f"echo '{answers[0]}'; echo '{answers[1]}'; echo \"$@\" > {tmp_path}/seen", monkeypatch)
    solved = karpenter.solve_each([[], []], instance_types=[], preference_policy="Ignore", repeat=3)
    assert [answer.pods for answer in solved] == [7, 8]
    seen = (tmp_path / "seen").read_text()
    assert seen.count("--objects") == 2
    assert "--preference-policy Ignore" in seen
    assert "--repeat 3" in seen


def test_a_refusal_carries_what_the_program_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason on stderr is the error's message."""
    stand_in(tmp_path, "echo 'karpenter: items[3]: kind Deployment is not understood' >&2; exit 2", monkeypatch)
    with pytest.raises(PeerError, match=r"items\[3\]: kind Deployment"):
        karpenter.solve([], instance_types=[])


def test_a_foreign_answer_is_an_error() -> None:
    """Output that is no answer is never taken for an empty plan."""
    with pytest.raises(PeerError, match="not an answer"):
        karpenter.decode(b'{"claims": []}')


def test_the_pin_is_readable() -> None:
    """Tables name the release that they measured."""
    assert karpenter.version().startswith("v1.")


def test_a_command_is_typed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What consolidation would do first, for each scenario."""
    said = {"method": "multi", "decision": "delete", "nodes": ["a", "b"], "instanceTypes": [], "seconds": 0.5}
    stand_in(tmp_path, f"echo '{msgspec.json.encode(said).decode()}'; echo \"$@\" > {tmp_path}/seen", monkeypatch)
    (command,) = karpenter.consolidate([[]], instance_types=[])
    assert (command.decision, command.nodes) == ("delete", ("a", "b"))
    assert "--consolidate" in (tmp_path / "seen").read_text()
