"""The page about disruption keeps up with the code."""

import pathlib
import re

from growth.planning.disruption import words

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "disruption.md"


def test_the_page_explains_every_word_for_a_node_that_stays() -> None:
    """Each word stands in the table at its end, and no other. Nobody is told that a node is up to date."""
    table = PAGE.read_text().partition("## Why a node stays")[2]
    told = {word for line in table.splitlines() if line.startswith("| `") for word in re.findall(r"`(\w+)`", line)}
    known = {value for name, value in vars(words).items() if name.isupper() and isinstance(value, str)}
    assert told == known - {words.UP_TO_DATE}
