"""docs/linode.md has a table of the rules for pools of LKE, each with its test."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[2]
RULES = {"machines": 3, "pools": 2, "claims": 3, "tiers": 3, "writers": 3, "create": 4, "errors": 5, "ends": 5}


def test_every_rule_has_a_test_that_exists() -> None:
    """No rule is left out, and whoever renames a test finds the table."""
    page = (ROOT / "docs" / "linode.md").read_text()
    rows = re.findall(r"^\| ([a-z]+ \d) \| .+ \| `([\w/]+\.py)::(test_\w+)` \|$", page, re.MULTILINE)
    assert [rule for rule, _, _ in rows] == [
        f"{part} {n}" for part, count in RULES.items() for n in range(1, count + 1)
    ]
    for _, file, name in rows:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(), name
