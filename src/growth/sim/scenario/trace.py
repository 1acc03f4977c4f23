"""Recorded workloads: a CSV file with the columns `cpu_milli, memory_mib, creation_time, deletion_time`, in any order.

Times are seconds from the recording's start; an empty deletion time is «never». A column `name` gives pods their names.
Other columns, those about GPUs among them, are ignored.
"""

import csv
import dataclasses
import math
import pathlib
from collections.abc import Iterator, Mapping
from typing import Final

COLUMNS: Final = ("cpu_milli", "memory_mib", "creation_time", "deletion_time")


class TraceError(ValueError):
    """What is wrong with a trace, with the line where it stands."""


@dataclasses.dataclass(frozen=True, slots=True)
class Life:
    """One recorded pod: what it asks for, and from when to when it lives. `ends` may be infinite."""

    name: str
    cpu_milli: int
    memory_mib: int
    begins: float
    ends: float


def read(path: pathlib.Path) -> tuple[Life, ...]:
    """Every row, in the file's order; `TraceError` says what cannot be used."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return tuple(_rows(csv.DictReader(file)))
    except OSError as error:
        raise TraceError(f"it cannot be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(f"it is no CSV: {error}") from error


def window(lives: tuple[Life, ...], *, since: float, lasts: float, limit: int = 0) -> tuple[Life, ...]:
    """Those that live in the window, by the time of their beginning; times are from the window's start on.

    What lives already at its start begins at 0; what does not live to see a second of it is left out.
    """
    until = since + lasts
    inside = [life for life in lives if life.begins < until and life.ends > max(since, life.begins)]
    inside.sort(key=lambda life: (max(life.begins, since), life.name))
    return tuple(
        dataclasses.replace(life, begins=max(0.0, life.begins - since), ends=life.ends - since)
        for life in (inside[:limit] if limit else inside)
    )


def _rows(reader: "csv.DictReader[str]") -> Iterator[Life]:
    lacking = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if lacking:
        raise TraceError(f"line 1: the column {lacking[0]} is missing; needed are {', '.join(COLUMNS)}")
    for number, row in enumerate(reader, start=1):
        cpu, memory, begins, ends = (_number(row, column, reader.line_num) for column in COLUMNS)
        if math.isinf(cpu) or math.isinf(memory) or math.isinf(begins):
            raise TraceError(f"line {reader.line_num}: only deletion_time may be empty")
        yield Life(row.get("name") or f"pod-{number:06}", round(cpu), round(memory), begins, ends)


def _number(row: Mapping[str, str | None], column: str, line: int) -> float:
    text = (row[column] or "").strip()
    if not text:
        return math.inf
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not value >= 0:
        raise TraceError(f"line {line}: {column}: {text!r} is no number of 0 or more")
    return value
