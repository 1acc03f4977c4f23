"""Amounts by resource name, as integers: `cpu` in thousandths of a core, everything else in its base unit.

A mapping holds what an object's `resources.requests` or a node's `allocatable` says. A name that is absent counts as
zero. Nothing here changes its arguments.
"""

from collections.abc import Mapping
from typing import Final

from growth.units.errors import QuantityError
from growth.units.quantity import milli_cpu, print_bytes, print_count, print_milli_cpu, whole

Amounts = Mapping[str, int]

CPU: Final = "cpu"
_COUNTED_IN_BYTES: Final = frozenset({"memory", "ephemeral-storage", "storage"})


def amounts(quantities: Mapping[str, str | float]) -> dict[str, int]:
    """What an object says, read. A `QuantityError` names the resource."""
    return {name: amount_of(name, quantity) for name, quantity in quantities.items()}


def amount_of(name: str, quantity: str | float) -> int:
    """One amount in the unit of its resource, rounded up where it is finer."""
    try:
        return milli_cpu(quantity) if name == CPU else whole(quantity)
    except QuantityError as error:
        raise QuantityError(f"{name}: {error}") from None


def quantities(of: Amounts) -> dict[str, str]:
    """The same in words, as an object holds it."""
    return {name: print_amount(name, amount) for name, amount in of.items()}


def print_amount(name: str, amount: int) -> str:
    """`1500m` of cpu, `1536Mi` of memory, `2` of a device."""
    if name == CPU:
        return print_milli_cpu(amount)
    if name in _COUNTED_IN_BYTES or name.startswith("hugepages-"):
        return print_bytes(amount)
    return print_count(amount)


def add(*many: Amounts) -> dict[str, int]:
    """The sum, name by name."""
    result: dict[str, int] = {}
    for one in many:
        for name, amount in one.items():
            result[name] = result.get(name, 0) + amount
    return result


def subtract(whole_amounts: Amounts, part: Amounts) -> dict[str, int]:
    """What is left; below zero where more was taken than there was."""
    result = dict(whole_amounts)
    for name, amount in part.items():
        result[name] = result.get(name, 0) - amount
    return result


def largest(*many: Amounts) -> dict[str, int]:
    """The larger amount, name by name: what containers that run one after the other need."""
    result: dict[str, int] = {}
    for one in many:
        for name, amount in one.items():
            result[name] = max(result.get(name, amount), amount)
    return result


def lacking(need: Amounts, available: Amounts) -> dict[str, int]:
    """What is missing, and by how much. As in kube-scheduler a need of zero lacks nothing, even on an overfull node."""
    return {
        name: amount - available.get(name, 0)
        for name, amount in need.items()
        if amount > 0 and amount > available.get(name, 0)
    }


def fits(need: Amounts, available: Amounts) -> bool:
    """Whether nothing is lacking."""
    return not lacking(need, available)
