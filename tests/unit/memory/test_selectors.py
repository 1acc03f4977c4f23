"""Selectors: the server's syntax, and what it refuses."""

import pytest

from growth.kube.errors import BadRequest
from growth.kube.memory.selectors import fields_predicate, label_selector, parse_fields, parse_labels, selector_text

LABELS = {"app": "web", "tier": "front", "n": "5", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("app=web", True),
        ("app==web", True),
        ("app = web , tier = front", True),
        ("app!=web", False),
        ("gone!=web", True),
        ("app in (web,api)", True),
        ("app in (api)", False),
        ("app notin (api)", True),
        ("gone notin (api)", True),
        ("app", True),
        ("!app", False),
        ("!gone", True),
        ("n>4", True),
        ("n<4", False),
        ("app>4", False),
        ("empty=", True),
        ("empty in (,x)", True),
        ("app=web,!gone,tier in (front)", True),
        ("app.kubernetes.io/name=x", False),
    ],
)
def test_label_selectors_mean_what_the_server_means(text: str, matches: bool) -> None:  # noqa: FBT001  a table's column
    """Equality, sets, presence and numbers, joined by commas."""
    test = parse_labels(text)
    assert test is not None
    assert test(LABELS) is matches


@pytest.mark.parametrize(
    "text", ["a=b=c", "a in b", "a in (b", "a in", "=b", "!", "a b", "a,,b", "a,", "a=(b)", "a in (b=c)", "n>x", "(a)"]
)
def test_what_is_no_selector_is_a_bad_request(text: str) -> None:
    """Broken syntax is refused, never read as something else."""
    with pytest.raises(BadRequest):
        parse_labels(text)


def test_an_empty_selector_matches_everything() -> None:
    """No requirement, no test."""
    assert parse_labels("") is None
    assert fields_predicate([]) is None


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a=b", [("a", True, "b")]),
        ("a==b,c!=d", [("a", True, "b"), ("c", False, "d")]),
        ("a=", [("a", True, "")]),
        (r"a=x\,y\=z\\", [("a", True, "x,y=z\\")]),
        ("", []),
    ],
)
def test_field_selectors_are_split_at_bare_commas(text: str, terms: list[tuple[str, bool, str]]) -> None:
    """A backslash keeps commas, equal signs and itself in a value."""
    assert parse_fields(text) == terms


def test_a_field_selector_without_a_value_is_a_bad_request() -> None:
    """A bare path asks nothing."""
    with pytest.raises(BadRequest, match="can't understand"):
        parse_fields("metadata.name")


def test_selector_objects_mean_the_same_as_their_text() -> None:
    """A LabelSelector selects what its printed form selects; none selects nothing, an empty one all."""
    selector = {
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["front", "back"]},
            {"key": "x", "operator": "NotIn", "values": ["1"]},
            {"key": "n", "operator": "Exists"},
            {"key": "gone", "operator": "DoesNotExist"},
        ],
    }
    text = selector_text(selector)
    assert text == "app=web,tier in (back,front),x notin (1),n,!gone"
    parsed = parse_labels(text)
    assert parsed is not None
    for labels in (LABELS, {**LABELS, "gone": "1"}, {**LABELS, "x": "1"}, {}):
        assert label_selector(selector)(labels) == parsed(labels)
    assert label_selector({})(LABELS)
    assert not label_selector(None)(LABELS)
