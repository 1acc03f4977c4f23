"""Disruption budgets of a pool: how many of its nodes may be disrupted at this moment, and why not more.

The smallest of the active budgets counts. A budget that cannot be read allows nothing, whatever reasons it is for: we do
not know what its author wanted. Schedules are cron in UTC, with Karpenter's dialect.
"""

import dataclasses
import datetime as dt
import re
from collections.abc import Sequence
from typing import Final

from cronsim import CronSim, CronSimError

from growth.api.karpenter import Budget
from growth.units import Duration, DurationError
from growth.units.errors import shown

_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = ("minute", "hour", "day of month", "month", "day of week")
_NODES: Final = re.compile(r"(?P<number>[0-9]{1,18})(?P<percent>%?)", re.ASCII)


@dataclasses.dataclass(frozen=True, slots=True)
class Allowance:
    """`nodes` None is no bound. `faults` say which budgets cannot be read; then `nodes` is 0."""

    nodes: int | None
    faults: tuple[str, ...] = ()

    def less(self, taken: int) -> int | None:
        """What is left when so many are taken already."""
        return None if self.nodes is None else max(0, self.nodes - taken)


class BudgetError(ValueError):
    """A budget that says nothing we could act on."""


def allowance(budgets: Sequence[Budget], *, nodes: int, reason: str, now: dt.datetime) -> Allowance:
    """How many of the pool's `nodes` may be disrupted at once for `reason`."""
    least: int | None = None
    faults = []
    for index, budget in enumerate(budgets):
        try:
            running, size = active(budget, now), size_of(budget.nodes, nodes)
        except BudgetError as error:
            faults.append(f"spec.disruption.budgets[{index}]: {error}")
            continue
        if running and (not budget.reasons or reason in budget.reasons):
            least = size if least is None else min(least, size)
    return Allowance(0, tuple(faults)) if faults else Allowance(least)


def active(budget: Budget, now: dt.datetime) -> bool:
    """Whether the budget counts now: always without a schedule, else for its duration after each hit. `BudgetError`."""
    if budget.schedule is None and budget.duration is None:
        return True
    if budget.schedule is None or budget.duration is None:
        raise BudgetError("schedule and duration must be set together")
    try:
        lasts = Duration.parse(budget.duration)
    except DurationError as error:
        raise BudgetError(f"duration {error}") from error
    now = now.astimezone(dt.UTC)
    try:
        return next(CronSim(_standard(budget.schedule), now - lasts.timedelta)) <= now
    except (CronSimError, StopIteration, OverflowError) as error:
        raise BudgetError(f"schedule {budget.schedule!r} is no cron schedule: {error}") from error


def size_of(text: str, nodes: int) -> int:
    """A count, or a percentage of the nodes, rounded up. `BudgetError`."""
    match = _NODES.fullmatch(text)
    if match is None:
        raise BudgetError(f"nodes {shown(text)} is neither a count nor a percentage: write 5 or 10%")
    number = int(match["number"])
    return -(-nodes * number // 100) if match["percent"] else number


def _standard(schedule: str) -> str:
    """The five fields as our parser takes them, where Karpenter's reads them otherwise or not at all."""
    fields = _WORDS.get(schedule.strip(), schedule).upper().replace("?", "*").split()
    if len(fields) != len(_FIELDS):
        raise BudgetError(f"schedule {schedule!r} has {len(fields)} fields: write {', '.join(_FIELDS)}")
    for name, field in zip(_FIELDS, fields, strict=True):
        if name.startswith("day") and (re.search(r"[L#W]", re.sub(r"[A-Z]{3}", "", field))):
            raise BudgetError(f"schedule {schedule!r}: {name} {field!r} is not understood: name days and ranges")
    if re.search(r"(?<![0-9/])7", fields[4]):
        raise BudgetError(f"schedule {schedule!r}: day of week 7 does not exist: Sunday is 0")
    # A star with a step is a restriction there, so that day of month and day of week are alternatives; here it is none.
    fields[2] = re.sub(r"^\*/(?=[0-9]*[2-9]|1[0-9])", "1-31/", fields[2])
    fields[4] = re.sub(r"^\*/(?=[0-9]*[2-9]|1[0-9])", "0-6/", fields[4])
    return " ".join(fields)
