"""Decisions and amounts in a line or two, for people. Pure."""

import collections
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api.decisions import DecisionAction, DecisionSpec
from growth.units import money
from growth.units.money import NANO, Hours, Money

CREATE: Final = "create"
DELETE: Final = "delete"


def hourly(nano: int, currency: str) -> str:
    """`€0.0256/h`."""
    return f"{Money(nano, currency)}/h"


def monthly(nano: int, currency: str, *, hours: Hours) -> str:
    """`€15.99/month`."""
    month = money.monthly(Money(nano, currency), hours=hours)
    cents = Money(round(month.nano / 10_000_000) * 10_000_000, currency)  # nobody counts a month in more than cents
    return f"{cents}/month"


def headline(spec: DecisionSpec) -> str:
    """The decision in a line."""
    return f"{spec.controller}: {spec.summary}"


def arithmetic(spec: DecisionSpec, *, hours: Hours) -> str:
    """What a decision does to the bill: `cx43 €0.0256 + cx33 €0.0136 → cx43 €0.0256: saves €0.0136/h, €8.49/month`.

    Empty where a price is not known or nothing is bought or given back.
    """
    actions = [each for each in spec.actions if each.verb in {CREATE, DELETE}]
    if not actions or spec.cost is None or spec.omitted or any(each.price is None for each in actions):
        return ""
    currency = spec.cost.currency
    gone = [each for each in actions if each.verb == DELETE]
    new = [each for each in actions if each.verb == CREATE]
    change = _sum(new) - _sum(gone)
    if not gone:
        return f"{_listed(new, currency)}: {_more(change, currency, hours)}"
    return f"{_listed(gone, currency)} → {_listed(new, currency) or 'nothing'}: {_more(change, currency, hours)}"


def whys(spec: DecisionSpec) -> Iterable[str]:
    """Why these machines: a line for each kind of machine that is bought."""
    seen: dict[str, None] = {}
    for each in spec.actions:
        if each.verb == CREATE and each.why:
            pool = f" in {each.node_pool}" if each.node_pool else ""
            seen.setdefault(f"{each.instance_type}{pool}: {each.why}", None)
    return tuple(seen)


def _sum(actions: Sequence[DecisionAction]) -> int:
    return sum(round((each.price or 0.0) * NANO) for each in actions)


def _listed(actions: Sequence[DecisionAction], currency: str) -> str:
    kinds = collections.Counter((each.instance_type, round((each.price or 0.0) * NANO)) for each in actions)
    return " + ".join(
        f"{f'{number} × ' if number > 1 else ''}{name or '?'} {'at ' if number > 1 else ''}{Money(price, currency)}"
        for (name, price), number in sorted(kinds.items(), key=lambda each: (-each[0][1], each[0][0]))
    )


def _more(change: int, currency: str, hours: Hours) -> str:
    if change == 0:
        return "the bill stays as it is"
    word = "costs" if change > 0 else "saves"
    return f"{word} {hourly(abs(change), currency)}, {monthly(abs(change), currency, hours=hours)}"
