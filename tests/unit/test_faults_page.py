"""docs/faults.md lists every fault with its rate, and every invariant with its sabotage."""

import pathlib

from growth.sim.chaos.rates import FAULTS
from growth.sim.chaos.sabotage import SABOTAGES
from growth.sim.invariants.auditor import ALL

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "faults.md").read_text()


def test_the_page_says_what_the_code_says() -> None:
    """One row for each, no more and no less; an invariant names all its sabotages."""
    bugs = [(each.breaks, f"`{name}`: {each.bug}") for name, each in SABOTAGES.items()]
    caught = {name: "; ".join(bug for breaks, bug in bugs if breaks == name) for name in ALL}
    rows = [f"| `{name}` | {each.rate:g} {each.unit} | {each.says} |" for name, each in FAULTS.items()]
    rows += [f"| {name} | {promise} | {caught[name]} |" for name, promise in ALL.items()]
    listed = [line for line in PAGE.splitlines() if line.startswith("| ") and not line.startswith(("| Fault", "| Inv"))]
    assert listed == rows
