"""`python -m bench mutants`: where slips are possible, what each does, and what is kept of a run."""

import json
import pathlib
import types

import pytest

from bench.__main__ import main
from bench.mutants import drawn
from bench.mutation import carriers
from bench.mutation.sites import Site, change, sites

SOURCE = '''
LIMIT = 1

def allowed(count, *, open=True):
    """A constant of the module, a default and a message are no places."""
    log.info("asked", count=count + 1)
    if count < 0:
        raise ValueError(f"{count + 1} is too many")
    total = 0
    for each in range(count):
        if each == 2:
            break
        total += each
    return total, open and total < LIMIT
'''


def _sites(folder: pathlib.Path) -> list[Site]:
    path = folder / "module.py"
    path.write_text(SOURCE)
    return sites(path, "module.py")


def _module(mutants: list[Site]) -> types.ModuleType:
    module = types.ModuleType("module")
    setattr(module, carriers.SWITCH, carriers.is_active)
    module.__dict__["log"] = types.SimpleNamespace(info=lambda *_, **__: None)
    tree = carriers.carrier(SOURCE, list(enumerate(mutants)))
    exec(compile(tree, "module.py", "exec"), module.__dict__)
    return module


def test_places_are_what_runs_in_functions(tmp_path: pathlib.Path) -> None:
    """Conditions, numbers and statements of functions are places; log lines, messages, defaults and constants are not."""
    found = [change(SOURCE, site) for site in _sites(tmp_path)]
    assert [new for _, new in found] == [
        "if count <= 0:",
        "if count < 1:",
        "total = 1",
        "if each != 2:",
        "if each == 3:",
        "continue",
        "total -= each",
        "pass",
        "return total, open or total < LIMIT",
        "return total, open and total <= LIMIT",
    ]


def test_each_mutant_is_its_own_change_and_no_other(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module with all mutants in it behaves as before while none is active, and as the one that is."""
    mutants = _sites(tmp_path)
    module = _module(mutants)
    cases = [(0, True), (1, True), (3, True), (2, False), (9, True)]
    plain: dict[str, object] = {"log": types.SimpleNamespace(info=lambda *_, **__: None)}
    exec(SOURCE, plain)
    before = [plain["allowed"](count, open=is_open) for count, is_open in cases]  # type: ignore[operator]

    def behaviour() -> list[object]:
        seen: list[object] = []
        for count, is_open in cases:
            try:
                seen.append(module.allowed(count, open=is_open))
            except ValueError as error:
                seen.append(str(error))
        return seen

    assert behaviour() == before
    noticed = 0
    for number in range(len(mutants)):
        monkeypatch.setattr(carriers, "active", number)
        noticed += behaviour() != before
    assert noticed == len(mutants)


def test_what_a_call_reaches_is_recorded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mutant is reached when its place is evaluated, not when its function is entered."""
    module = _module(_sites(tmp_path))
    monkeypatch.setattr(carriers, "reached", set())
    module.allowed(0)
    assert carriers.reached == {0, 1, 2, 8, 9}


def test_equal_seeds_draw_equal_mutants() -> None:
    """A drawing depends on the code, the number and the seed alone."""
    assert drawn(["providers/linode"], 20, 7) == drawn(["providers/linode"], 20, 7)
    assert drawn(["providers/linode"], 20, 7) != drawn(["providers/linode"], 20, 8)


def test_a_run_goes_on_where_it_was_ended(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Verdicts are kept line by line; a line that was cut off is done again, and a state of another drawing is refused."""
    state = tmp_path / "state.jsonl"
    command = ["mutants", "--count", "4", "--jobs", "1", "--packages", "planning/disruption/surplus.py"]
    command += ["--tests", "tests/unit/planning/test_surplus.py", "--state", str(state), "-o", "json"]
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["killed"] + first["timed_out"] + first["survived"] + first["not_covered"] == 4
    assert first["killed"] > 0
    lines = state.read_text().splitlines(keepends=True)
    state.write_text("".join(lines[:-1]) + lines[-1][:9])
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == first
    with pytest.raises(SystemExit, match="is of another seed"):
        main([*command, "--seed", "1"])
