"""The algebra of requirements: eight operators, their bounds and complements, and what two of them leave together."""

import itertools

import pytest

from growth.planning.requirements import (
    ABSENT,
    ANY,
    NEVER,
    Requirement,
    RequirementError,
    any_value,
    from_expressions,
    from_labels,
    gather,
    integer,
    key_of,
    one_of,
    parse,
)
from tests.unit.planning.builders import expression, need

VALUES = (None, "", "a", "b", "0", "1", "2", "3", "4", "5", "07", "x1", "1_0", "-1")
EXPRESSIONS = (
    expression("k", "In", "a"),
    expression("k", "In", "a", "b"),
    expression("k", "In", "1", "3"),
    expression("k", "NotIn", "a"),
    expression("k", "NotIn", "1", "2"),
    expression("k", "Exists"),
    expression("k", "DoesNotExist"),
    expression("k", "Gt", "1"),
    expression("k", "Gt", "4"),
    expression("k", "Lt", "3"),
    expression("k", "Lt", "1"),
    expression("k", "Gte", "2"),
    expression("k", "Lte", "3"),
)


def admits(each: object, value: str | None) -> bool:
    """What the operator means, said once more and plainly."""
    operator, values = each.operator, each.values  # type: ignore[attr-defined]
    number = int(value) if value is not None and value.lstrip("-").isdigit() else None
    bound = int(values[0]) if values and values[0].isdigit() else 0
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
        "Gt": number is not None and number > bound,
        "Lt": number is not None and number < bound,
        "Gte": number is not None and number >= bound,
        "Lte": number is not None and number <= bound,
    }[operator]


@pytest.mark.parametrize("each", EXPRESSIONS, ids=lambda e: f"{e.operator} {list(e.values)}")
@pytest.mark.parametrize("value", VALUES)
def test_each_operator_admits_what_it_says(each: object, value: str | None) -> None:
    """A node meets a requirement exactly when the operator's meaning holds of its label."""
    assert parse(each).meets(value) == admits(each, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    list(itertools.product(EXPRESSIONS, repeat=2)),
    ids=lambda e: f"{e.operator} {list(e.values)}",
)
def test_two_together_admit_what_both_admit(one: object, other: object) -> None:
    """An intersection admits a value exactly when both sides do, and the label's absence likewise."""
    both = parse(one).intersect(parse(other))  # type: ignore[arg-type]
    for value in VALUES:
        assert both.meets(value) == (admits(one, value) and admits(other, value)), value


@pytest.mark.parametrize(
    ("one", "other"),
    list(itertools.combinations(EXPRESSIONS, 2)),
    ids=lambda e: f"{e.operator} {list(e.values)}",
)
def test_the_order_does_not_matter(one: object, other: object) -> None:
    """Intersection is the same from both sides."""
    left, right = parse(one), parse(other)  # type: ignore[arg-type]
    assert left.intersect(right) == right.intersect(left)


@pytest.mark.parametrize("each", EXPRESSIONS, ids=lambda e: f"{e.operator} {list(e.values)}")
def test_exists_takes_nothing_from_what_asks_for_a_value(each: object) -> None:
    """Exists leaves every value that the other side admits."""
    both = parse(each).intersect(ANY)  # type: ignore[arg-type]
    assert [value for value in VALUES[1:] if both.meets(value)] == [
        value for value in VALUES[1:] if admits(each, value)
    ]


@pytest.mark.parametrize("each", EXPRESSIONS, ids=lambda e: f"{e.operator} {list(e.values)}")
def test_never_stays_never(each: object) -> None:
    """Nothing brings back a requirement that nothing meets."""
    assert not any(parse(each).intersect(NEVER).meets(value) for value in VALUES)  # type: ignore[arg-type]


def test_greater_than_begins_above_the_bound() -> None:
    """Gt n is the same as Gte n + 1, and Lt n as Lte n − 1."""
    assert parse(expression("k", "Gt", "4")) == parse(expression("k", "Gte", "5"))
    assert parse(expression("k", "Lt", "4")) == parse(expression("k", "Lte", "3"))


def test_bounds_that_cross_leave_nothing() -> None:
    """More than four and less than three is nothing at all, not a label that must be absent."""
    crossed = parse(expression("k", "Gt", "4")).intersect(parse(expression("k", "Lt", "3")))
    assert crossed == NEVER
    assert crossed != ABSENT


def test_a_list_within_bounds_is_a_plain_list() -> None:
    """Bounds are dropped once the values are known."""
    both = one_of("1", "2", "9").intersect(parse(expression("k", "Lt", "5")))
    assert both == one_of("1", "2")


def test_values_that_are_no_integers_fail_every_bound() -> None:
    """A word is neither more nor less than a number."""
    assert not parse(expression("k", "Gt", "0")).allows("many")
    assert not parse(expression("k", "Lt", "9")).allows("few")


def test_integers_are_digits_and_a_sign() -> None:
    """Underscores, spaces and digits of other scripts make no integer."""
    assert [integer(text) for text in ("12", "-3", "+4", "007")] == [12, -3, 4, 7]
    assert [integer(text) for text in (str(2**63 - 1), str(2**63), str(-(2**63)), str(-(2**63) - 1))] == [
        2**63 - 1,
        None,
        -(2**63),
        None,
    ]
    assert [integer(text) for text in ("1_0", " 5", "٣", "1e3", "", "0x1")] == [None] * 6


def test_not_in_and_does_not_exist_agree_on_absence() -> None:
    """A label that must not be x and must not be there is simply not there."""
    assert parse(expression("k", "NotIn", "x")).intersect(ABSENT) == ABSENT


def test_min_values_of_two_requirements_is_the_greater() -> None:
    """Two requirements on one key ask for as many values as the stricter of them."""
    one = parse(need("k", "Exists"), min_values=2)
    other = parse(need("k", "In", "a", "b", "c"), min_values=3)
    assert one.intersect(other).min_values == 3


def test_min_values_restricts_no_single_value() -> None:
    """`minValues` counts values; each of them stays admitted."""
    assert parse(need("k", "In", "a", "b"), min_values=2).allows("a")


@pytest.mark.parametrize(
    ("each", "said"),
    [
        (one_of("a"), "In"),
        (ANY, "Exists"),
        (ABSENT, "DoesNotExist"),
        (Requirement(True, frozenset({"a"})), "NotIn"),
        (parse(expression("k", "Gt", "1")), "Exists"),
    ],
)
def test_a_requirement_says_itself_in_one_word(each: Requirement, said: str) -> None:
    """Each of the forms reads as the operator that makes it; bounds read as Exists."""
    assert each.operator == said


def test_several_requirements_on_a_key_are_taken_together() -> None:
    """A pod's selector and its affinity on the same label are intersected."""
    both = gather([("k", one_of("a", "b")), ("k", one_of("b", "c"))])
    assert both == {"k": one_of("b")}


def test_old_names_of_labels_mean_those_of_today() -> None:
    """Beta labels of zone, region, architecture, system and type are read as their successors."""
    assert key_of("failure-domain.beta.kubernetes.io/zone") == "topology.kubernetes.io/zone"
    assert key_of("failure-domain.beta.kubernetes.io/region") == "topology.kubernetes.io/region"
    assert key_of("beta.kubernetes.io/arch") == "kubernetes.io/arch"
    assert key_of("beta.kubernetes.io/os") == "kubernetes.io/os"
    assert key_of("beta.kubernetes.io/instance-type") == "node.kubernetes.io/instance-type"
    assert key_of("example.com/own") == "example.com/own"


def test_labels_are_requirements_of_one_value() -> None:
    """A node selector asks for exactly its values."""
    assert from_labels({"k": "v"}) == {"k": one_of("v")}


@pytest.mark.parametrize("operator", ["Gt", "Lt", "Gte", "Lte"])
@pytest.mark.parametrize("values", [(), ("a",), ("1", "2"), ("1.5",)])
def test_comparisons_take_one_integer(operator: str, values: tuple[str, ...]) -> None:
    """Anything else is refused with the key's name."""
    with pytest.raises(RequirementError, match=r"example\.com/k"):
        from_expressions([expression("example.com/k", operator, *values)])


def test_an_operator_that_nobody_knows_is_refused() -> None:
    """An unknown operator is never read as something else."""
    with pytest.raises(RequirementError, match="Near"):
        from_expressions([expression("k", "Near", "a")])


def test_a_requirement_reads_well() -> None:
    """Reasons quote requirements: values sorted, bounds in words."""
    assert str(one_of("b", "a")) == "In [a, b]"
    assert str(NEVER) == "nothing at all"
    assert str(parse(expression("k", "Gt", "3"))) == "Exists and ≥ 4"


@pytest.mark.parametrize(
    "expressions",
    [
        (expression("k", "Gt", "9"), expression("k", "Lt", "11"), expression("k", "NotIn", "10")),
        (expression("k", "Gte", "3"), expression("k", "NotIn", "3", "4"), expression("k", "Lte", "4")),
        (expression("k", "Gt", str(2**63 - 1)),),
        (expression("k", "Lt", "0"),),
        (expression("k", "Gt", "5"), expression("k", "Lt", "5")),
    ],
    ids=lambda those: " ".join(f"{each.operator}{list(each.values)}" for each in those),
)
def test_bounds_that_leave_no_number_allow_nothing(expressions: tuple[object, ...]) -> None:
    """Numbers between bounds that are all excluded, or that no label can have, are a requirement that is never met."""
    assert from_expressions(expressions)["k"] == NEVER  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("expressions", "value"),
    [
        ((expression("k", "Gt", "999999999999999999"),), "1000000000000000000"),
        ((expression("k", "Gt", "9"), expression("k", "NotIn", "10", "11", "13")), "12"),
        ((expression("k", "Lte", "7"), expression("k", "NotIn", "0", "1")), "2"),
        ((expression("k", "Lt", "-5"), expression("k", "Exists")), None),
        ((expression("k", "Exists"), expression("k", "NotIn", "0")), "1"),
    ],
)
def test_a_value_for_an_open_label_is_the_smallest_number_allowed(
    expressions: tuple[object, ...], value: str | None
) -> None:
    """What the machine's label becomes where pods only exclude or bound it."""
    requirement = from_expressions(expressions)["k"]  # type: ignore[arg-type]
    assert requirement == NEVER if value is None else any_value(requirement) == value
