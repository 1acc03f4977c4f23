"""`bench branches` counts what a program decided: each decision has two outcomes, and the program does what it did without."""

import importlib
import pathlib
import sys

import pytest

from bench import probes

PROGRAM = """
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import this


def decide(number):
    if number > 1:          # line 9
        return "many"
    for _ in range(number):  # line 11
        pass
    while True:
        break
    match number:
        case 0:             # line 16
            return "none"
        case 1 if number:   # line 18
            return "one"
    return "less"
"""


@pytest.fixture
def decide(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> object:
    package = tmp_path / "decided"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    (package / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    for name in ("decided", "decided.program"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    probes.install(("decided",))
    probes.forget()
    return importlib.import_module("decided.program").decide


@pytest.mark.parametrize(
    ("number", "answer", "seen"),
    [
        (5, "many", {(9, True)}),
        (0, "none", {(9, False), (11, False), (16, True)}),
        (1, "one", {(9, False), (11, True), (11, False), (16, False), (18, True)}),
        (-1, "less", {(9, False), (11, False), (16, False), (18, False)}),
    ],
)
def test_every_outcome_is_seen_when_it_happens(
    decide: object, number: int, answer: str, seen: set[tuple[int, bool]]
) -> None:
    """Entered or passed by; what is true by its text, and what is for types only, is no decision."""
    assert callable(decide)
    assert decide(number) == answer
    assert {(each.line, taken) for each, taken in probes.outcomes() if each.module == "decided.program"} == seen
    known = {each.line for each in probes.decisions() if each.module == "decided.program"}
    assert known == {9, 11, 16, 18}
