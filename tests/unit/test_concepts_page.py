"""docs/concepts.md: the page and its picture use the same words, and the objects that it names are ours."""

import pathlib
import re
import xml.etree.ElementTree as ET

import pytest

import growth
from growth.api.crds import all_crds

DOCS = pathlib.Path(growth.__file__).parents[2] / "docs"
PAGE = (DOCS / "concepts.md").read_text()
PICTURE = DOCS / "pictures/concepts.svg"
SVG = "{http://www.w3.org/2000/svg}"
WORDS = dict(re.findall(r"^\| ([\w ,]+) \| ([^|]+) \|", PAGE, re.MULTILINE))


def boxes() -> list[str]:
    texts = ET.parse(PICTURE).iter(f"{SVG}text")
    return [each.text or "" for each in texts if each.get("class") == "word"]


@pytest.mark.parametrize(
    "word",
    ["pod", "class", "offering", "claim", "node", "pool", "request", "move", "budget", "blocker", "reason"],
)
def test_a_word_is_explained_told_and_drawn(word: str) -> None:
    """It has a row in the table, is in bold where the story needs it first, and stands in a box of the picture."""
    assert WORDS[word]
    assert re.search(rf"\*\*{word}s?\*\*", PAGE, re.IGNORECASE)
    assert word.capitalize() in boxes()


def test_every_box_of_the_picture_is_explained() -> None:
    """By a row of the table."""
    assert {each.lower() for each in boxes()} <= set(WORDS)


def test_the_picture_needs_nothing_from_elsewhere() -> None:
    """No script, no file, no address but the format's own name; and a title for who cannot see it."""
    text = PICTURE.read_text()
    assert re.findall(r"https?://[^\"']+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"<script|<image|href|@import", text)
    assert ET.parse(PICTURE).findtext(f"{SVG}title")


def test_the_objects_that_it_names_exist() -> None:
    """As kubectl knows them."""
    plurals = {body["spec"]["names"]["plural"] for body in all_crds()} | {"nodes"}
    kinds = {body["spec"]["names"]["kind"] for body in all_crds()}
    named = re.findall(r"kubectl get (\w+)`(?:, `(\w+)`)?", PAGE)
    assert {each for pair in named for each in pair if each} <= plurals
    assert set(re.findall(r"`(\w+NodeClass)`", PAGE)) <= kinds
