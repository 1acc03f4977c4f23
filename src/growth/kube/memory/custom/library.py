"""The functions that Kubernetes adds to CEL, as far as they are offered here: lists, regular expressions, quantities.

A quantity is handed to CEL as a map with its exact value, so that equal amounts are equal however they were written.
"""

import itertools
import re
from collections.abc import Callable
from typing import Any, Final

from cel.stdlib import STDLIB_FUNCTIONS

from growth.units.errors import QuantityError
from growth.units.quantity import Quantity

Amount = dict[str, int]


def _is_sorted(items: list[Any]) -> bool:
    return all(left <= right for left, right in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _index_of(where: Any, what: Any, offset: int = 0) -> int:
    if isinstance(where, str):
        return where.find(what, offset)
    return where.index(what) if what in where else -1


def _of(quantity: Quantity) -> Amount:
    return {"mantissa": quantity.mantissa, "exponent": quantity.exponent}


def _quantity(text: str) -> Amount:
    return _of(Quantity.parse(text))


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _nano(amount: Amount) -> int:
    return int(amount["mantissa"] * 10 ** (amount["exponent"] + 9))


def _compare(left: Amount, right: Amount) -> int:
    return (_nano(left) > _nano(right)) - (_nano(left) < _nano(right))


def _plus(left: Amount, right: Amount | int, sign: int = 1) -> Amount:
    other = right * 10**9 if isinstance(right, int) else _nano(right)
    return _of(Quantity.of(_nano(left) + sign * other, exponent=-9))


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **STDLIB_FUNCTIONS,
    "isSorted": _is_sorted,
    "find": _find,
    "findAll": _find_all,
    "indexOf": _index_of,
    "quantity": _quantity,
    "isQuantity": _is_quantity,
    "isInteger": lambda amount: _nano(amount) % 10**9 == 0,
    "asInteger": lambda amount: _nano(amount) // 10**9,
    "asApproximateFloat": lambda amount: _nano(amount) / 10**9,
    "sign": lambda amount: (amount["mantissa"] > 0) - (amount["mantissa"] < 0),
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "compareTo": _compare,
    "add": _plus,
    "sub": lambda left, right: _plus(left, right, -1),
}
