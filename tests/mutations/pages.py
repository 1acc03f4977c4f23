"""Tables of the docs as rows: what a page promises and the test that shows it, with the mutation that stands in `tests/mutations`."""

import re
from collections.abc import Iterator, Mapping

from tests.mutations.mutation import Mutation
from tests.mutations.rows import ROOT, Row

_CELL = re.compile(r"`([\w/]*?)(test_\w+)\.py::(test_\w+)`")


def rows_of(page: str, folder: str, mutations: Mapping[str, Mutation]) -> Iterator[Row]:
    """Every line of the page's tables whose last cell names a test; files without a folder are in `folder`.

    A line that names several tests is one row, killed by the first of them that has a mutation; one of them must have.
    """
    for line in (ROOT / "docs" / page).read_text(encoding="utf-8").splitlines():
        *cells, tests = [each.strip() for each in line.strip("|").split(" | ")]
        named = _CELL.findall(tests)
        if named:
            path, file, name = next((each for each in named if each[2] in mutations), named[0])
            assert name in mutations, f"docs/{page}: {name} has no mutation that it kills"
            module = f"{path or folder + '/'}{file}".replace("/", ".")
            yield Row(": ".join(cells).strip(), f"{module}::{name}", mutations[name])
