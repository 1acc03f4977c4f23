"""docs/providers.md lists every fault of the fake cloud and every method and error of the contract."""

import inspect
import pathlib

from growth.api import clouds
from growth.providers.contract import CloudProvider
from growth.sim.clouds.hetzner.faults import NAMES

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "providers.md").read_text()


def rows(heading: str) -> list[str]:
    """The first cells of the table under that heading."""
    lines = PAGE.splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith(f"| {heading} |")) + 2
    found = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        found.append(line.split("|")[1].strip().strip("`").partition("(")[0])
    return found


def test_every_fault_is_listed() -> None:
    """In the order of the code, no more and no less."""
    assert rows("Fault") == list(NAMES)


def test_every_method_is_listed() -> None:
    """As the contract has them."""
    methods = [name for name, what in vars(CloudProvider).items() if inspect.isfunction(what) and name[0] != "_"]
    assert sorted(rows("Method")) == sorted(methods)


def test_every_error_is_listed() -> None:
    """All that a cloud may raise."""
    errors = {
        name
        for name, what in vars(clouds).items()
        if inspect.isclass(what) and issubclass(what, clouds.CloudError) and what is not clouds.CloudError
    }
    assert set(rows("Error")) == errors
