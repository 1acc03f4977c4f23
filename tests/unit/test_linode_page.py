"""docs/linode.md has a table of the rules for pools of LKE, each with its test."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
# How many rules each part of the specification has, and what is promised besides.
RULES = {"goals": 4, "model": 7, "tiers": 5, "writers": 7, "create": 12, "errors": 6, "ends": 4, "besides": 49}


def test_every_rule_has_a_test_that_exists() -> None:
    """No rule is left out, and whoever renames a test finds the table."""
    page = (ROOT / "docs" / "linode.md").read_text()
    test = r"`[\w/]+\.py::test_\w+`"
    rows = re.findall(rf"^\| ([a-z]+ \d+) \| .+ \| ({test}(?:, {test})*) \|$", page, re.MULTILINE)
    assert [rule for rule, _ in rows] == [f"{part} {n}" for part, count in RULES.items() for n in range(1, count + 1)]
    for file, name in (each for _, named in rows for each in re.findall(r"`([\w/]+\.py)::(test_\w+)`", named)):
        text = (ROOT / "tests" / file).read_text()
        assert re.search(rf'^def {name}\([^"]*-> None:\n    """', text, re.MULTILINE), (
            f"{name} is missing, or states no law"
        )
