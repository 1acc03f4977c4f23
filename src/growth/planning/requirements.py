"""The algebra of label requirements: eight operators reduced to one small value.

A requirement says which values a label may have. In is a set; NotIn and Exists are complements of a set; DoesNotExist is
the empty set; Gt, Lt, Gte and Lte are bounds on integers. Intersections stay inside this form.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from growth.api import names

IN: Final = "In"
NOT_IN: Final = "NotIn"
EXISTS: Final = "Exists"
DOES_NOT_EXIST: Final = "DoesNotExist"
GT: Final = "Gt"
LT: Final = "Lt"
GTE: Final = "Gte"
LTE: Final = "Lte"


# A label's value has at most 63 characters; the API reads a number in it as a signed integer of 64 bits.
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,63}", re.ASCII)
_SMALLEST: Final = -(2**63)
_LARGEST: Final = 2**63 - 1


class Expression(Protocol):
    """A node selector's or a NodePool's requirement, as read from the API."""

    @property
    def key(self) -> str: ...
    @property
    def operator(self) -> str: ...
    @property
    def values(self) -> tuple[str, ...]: ...


class RequirementError(ValueError):
    """An expression that no server accepts; the message names the key."""


@dataclasses.dataclass(frozen=True, slots=True)
class Requirement:
    """The values that a label may have: `values`, or with `complement` all others; within the bounds, if any.

    `min_values` asks how many different values must stay open to the cloud; it does not restrict any single one.
    `present` tells «some value, but none of these» from NotIn, which the label's absence satisfies too.
    """

    complement: bool
    values: frozenset[str]
    at_least: int | None = None
    at_most: int | None = None
    min_values: int = 0
    present: bool = False

    @property
    def operator(self) -> str:
        """The operator that says it in one word; bounds read as Exists."""
        if self.complement:
            return NOT_IN if self.values else EXISTS
        return IN if self.values else DOES_NOT_EXIST

    @property
    def empty(self) -> bool:
        """No value is allowed: the label must be absent, or nothing fits."""
        return not self.complement and not self.values

    @property
    def tolerates_absence(self) -> bool:
        """Whether a node without the label satisfies it: NotIn and DoesNotExist."""
        bounded = self.at_least is not None or self.at_most is not None
        return self.operator in {NOT_IN, DOES_NOT_EXIST} and not bounded and not self.present

    def meets(self, value: str | None) -> bool:
        """Whether a node satisfies it whose label has the value (None: no such label)."""
        return self.tolerates_absence if value is None else self.allows(value)

    def allows(self, value: str) -> bool:
        """Whether the label may have the value."""
        listed = (value in self.values) != self.complement
        if self.at_least is None and self.at_most is None:
            return listed
        return listed and self._within(value)

    def _within(self, value: str) -> bool:
        number = integer(value)
        if number is None:
            return False
        return (self.at_least is None or number >= self.at_least) and (self.at_most is None or number <= self.at_most)

    def intersect(self, other: "Requirement") -> "Requirement":
        """What both allow. Bounds are dropped once the values are a plain set.

        Two that allow nothing together are `NEVER`, unless both accept the label's absence: then that is what is left.
        Bounds between which every number is excluded allow nothing.
        """
        least = _greatest(self.at_least, other.at_least)
        most = _smallest(self.at_most, other.at_most)
        min_values = max(self.min_values, other.min_values)
        if self.complement and other.complement:
            values = self.values | other.values
            if (least is not None or most is not None) and _first_number(values, least, most) is None:
                return NEVER
            present = bool(values) and not (self.tolerates_absence and other.tolerates_absence)
            return Requirement(True, values, least, most, min_values, present)
        if least is not None and most is not None and least > most:
            return NEVER
        if self.complement:
            values = other.values - self.values
        elif other.complement:
            values = self.values - other.values
        else:
            values = self.values & other.values
        bounded = Requirement(True, frozenset(), least, most)
        both = frozenset(value for value in values if bounded.allows(value))
        if both:
            return Requirement(False, both, min_values=min_values)
        return ABSENT if self.tolerates_absence and other.tolerates_absence else NEVER

    def __str__(self) -> str:
        if self == NEVER:
            return "nothing at all"
        listed = ", ".join(sorted(self.values))
        parts = [f"{self.operator} [{listed}]" if self.values else self.operator]
        if self.at_least is not None:
            parts.append(f"≥ {self.at_least}")
        if self.at_most is not None:
            parts.append(f"≤ {self.at_most}")
        return " and ".join(parts)


ANY: Final = Requirement(True, frozenset())
ABSENT: Final = Requirement(False, frozenset())
# No value satisfies it, and neither does the label's absence. The crossed bounds tell it from ABSENT.
NEVER: Final = Requirement(False, frozenset(), 1, 0)

Requirements = Mapping[str, Requirement]


def one_of(*values: str) -> Requirement:
    return Requirement(False, frozenset(values))


@functools.lru_cache(maxsize=65536)
def integer(text: str) -> int | None:
    """The integer that a label value is, if it is one, as Kubernetes reads it: plain digits with an optional sign."""
    number = int(text) if _INTEGER.fullmatch(text) else None
    return number if number is not None and _SMALLEST <= number <= _LARGEST else None


def parse(expression: Expression, *, min_values: int = 0) -> Requirement:
    """The requirement that an expression of the API means; its key is normalised by `key_of`."""
    values = frozenset(expression.values)
    match expression.operator:
        case "In":
            return Requirement(False, values, min_values=min_values)
        case "NotIn":
            return Requirement(True, values, min_values=min_values)
        case "Exists":
            return Requirement(True, frozenset(), min_values=min_values)
        case "DoesNotExist":
            return ABSENT
        case "Gt" | "Lt" | "Gte" | "Lte" as operator:
            number = integer(next(iter(values))) if len(values) == 1 else None
            if number is None:
                raise RequirementError(f"{expression.key}: {operator} takes exactly one integer")
            step = {"Gt": 1, "Lt": -1}.get(operator, 0)
            least, most = (number + step, None) if operator in {GT, GTE} else (None, number + step)
            if _first_number(frozenset(), least, most) is None:
                return NEVER
            return Requirement(True, frozenset(), least, most, min_values)
        case other:
            raise RequirementError(f"{expression.key}: operator {other} is not known")


def any_value(requirement: Requirement) -> str:
    """Some value that a requirement other than `NEVER` and `ABSENT` allows: the first of its list, or its smallest number."""
    if not requirement.complement:
        return min(requirement.values)
    number = _first_number(requirement.values, requirement.at_least, requirement.at_most)
    assert number is not None, "bounds without a number between them are NEVER"
    return str(number)


def _first_number(excluded: frozenset[str], at_least: int | None, at_most: int | None) -> int | None:
    """The smallest number within the bounds that may stand in a label, without a sign, and is not excluded.

    One of any len(excluded) + 1 numbers is not excluded, so the search is as short as the list of those that are.
    """
    first = max(at_least or 0, 0)
    last = min(_LARGEST if at_most is None else at_most, first + len(excluded))
    return next(
        (number for number in range(first, last + 1) if number <= _LARGEST and str(number) not in excluded), None
    )


def key_of(key: str) -> str:
    """The label's name today: beta names of zone, region, architecture, system and type are read as their successors."""
    return names.NORMALISED_LABELS.get(key, key)


def gather(pairs: Iterable[tuple[str, Requirement]]) -> dict[str, Requirement]:
    """All of them at once; several of one key are intersected."""
    result: dict[str, Requirement] = {}
    for raw, requirement in pairs:
        key = key_of(raw)
        known = result.get(key)
        result[key] = requirement if known is None else known.intersect(requirement)
    return result


def from_expressions(expressions: Iterable[Expression]) -> dict[str, Requirement]:
    return gather((each.key, parse(each)) for each in expressions)


def from_labels(labels: Mapping[str, str]) -> dict[str, Requirement]:
    return gather((key, one_of(value)) for key, value in labels.items())


def _greatest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _smallest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
