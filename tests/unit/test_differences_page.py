"""docs/differences.md says what Growth does otherwise than the designs that it follows."""

import pathlib

import pytest

PAGE = (pathlib.Path(__file__).parents[2] / "docs" / "differences.md").read_text()
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n### ")[1:]}


def test_each_design_has_a_section() -> None:
    """Five, each with what differs and with what became of its questions."""
    assert list(SECTIONS) == [
        "LKE scaling",
        "Node ownership",
        "Node limits",
        "Growth: pools of server types",
        "minValues",
    ]
    for title, text in SECTIONS.items():
        assert text.count("\n- **") >= 5, title
        assert "question" in text, title


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("LKE scaling", "waits a second"),
        ("LKE scaling", "Are 15 s a reasonable bound"),
        ("LKE scaling", "Are the invariants and hard errors right?"),
        ("LKE scaling", "Is the orphan TTL of 5 m the right trade"),
        ("Node ownership", "Up to five writes a claim"),
        ("Node ownership", "Candidates for disruption are not marked on the Node"),
        ("Growth: pools of server types", "**Python**"),
    ],
)
def test_what_readers_of_the_designs_would_miss_is_said(section: str, said: str) -> None:
    """In the section of its design."""
    assert said in SECTIONS[section]


def test_clouds_that_are_not_served_are_named() -> None:
    """Designs speak of one."""
    assert "AWS is not" in PAGE
