"""Label selectors, compiled to a test on labels."""

from collections.abc import Callable, Mapping

from growth.api.meta import LabelSelector

Labels = Mapping[str, str]
Test = Callable[[Labels], bool]


class SelectorError(ValueError):
    """A selector that no server accepts."""


def nothing(_: Labels) -> bool:
    return False


def compiled(selector: LabelSelector | None) -> Test:
    """The test that the selector means: None selects nothing, an empty one everything."""
    if selector is None:
        return nothing
    equal = tuple(selector.match_labels.items())
    tests = tuple(_expression(each.key, each.operator, frozenset(each.values)) for each in selector.match_expressions)

    def test(labels: Labels) -> bool:
        return all(labels.get(key) == value for key, value in equal) and all(check(labels) for check in tests)

    return test


def _expression(key: str, operator: str, values: frozenset[str]) -> Test:
    match operator:
        case "In":
            return lambda labels: labels.get(key) in values
        case "NotIn":
            return lambda labels: labels.get(key) not in values
        case "Exists":
            return lambda labels: key in labels
        case "DoesNotExist":
            return lambda labels: key not in labels
        case other:
            raise SelectorError(
                f"label selector: operator {other!r} is not known; use In, NotIn, Exists or DoesNotExist"
            )
