"""How this API answers: errors, pages and filters."""

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.providers.numbered import number_in
from growth.sim.clouds import frame
from growth.sim.clouds.frame import UNREADABLE, Reply

PAGE: Final = 100
SHORTEST_PAGE: Final = 25
LONGEST_PAGE: Final = 500

Query = Mapping[str, Sequence[str]]


class Refusal(frame.Refusal):
    """An answer with an error in it. `code` is for those who watch: the API itself has none."""

    def __init__(self, status: int, reason: str, *, field: str = "", code: str = "") -> None:
        super().__init__(f"{status}: {reason}", status=status, code=code or reason)
        self.reason = reason
        self.field = field

    def body(self) -> Json:
        return {"errors": [{"reason": self.reason, **({"field": self.field} if self.field else {})}]}


def not_found() -> Refusal:
    return Refusal(404, "Not found")


def invalid(field: str, reason: str) -> Refusal:
    return Refusal(400, reason, field=field)


def text_time(moment: dt.datetime | None) -> str | None:
    """Without a zone, as the vendor writes it: UTC is meant."""
    return None if moment is None else moment.astimezone(dt.UTC).replace(tzinfo=None).isoformat(timespec="seconds")


def page(items: Sequence[Json], query: Query, filter_: str, *, by: Sequence[str], inert: Sequence[str] = ()) -> Reply:
    """One page of the items that the filter finds, with its place among all of them. For `by` and `inert` see `filtered`."""
    items = filtered(items, filter_, by=by, inert=inert)
    number = _whole(query, "page", 1)
    size = _whole(query, "page_size", PAGE)
    if not SHORTEST_PAGE <= size <= LONGEST_PAGE:
        raise invalid("page_size", f"Must be {SHORTEST_PAGE}-{LONGEST_PAGE}")
    pages = max(math.ceil(len(items) / size), 1)
    if number > pages:
        raise not_found()
    data = list(items[(number - 1) * size : number * size])
    return Reply(200, {"data": data, "page": number, "pages": pages, "results": len(items)})


def _whole(query: Query, name: str, default: int) -> int:
    text = query[name][0] if query.get(name) else ""
    if not text:
        return default
    number = number_in(text)
    if number is None or number < 1:
        raise invalid(name, "Must be a positive integer")
    return number


# -- X-Filter -------------------------------------------------------------------------------------------------------

ASCENDING: Final = "asc"
DESCENDING: Final = "desc"
_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "+gt": lambda has, asked: has > asked,
    "+gte": lambda has, asked: has >= asked,
    "+lt": lambda has, asked: has < asked,
    "+lte": lambda has, asked: has <= asked,
}


def filtered(items: Sequence[Json], text: str, *, by: Sequence[str], inert: Sequence[str] = ()) -> list[Json]:
    """Those that the filter finds, in its order. 400 for what cannot be filtered by; what is `inert` is accepted and does nothing."""
    if not text:
        return list(items)
    try:
        asked = msgspec.json.decode(text)
    except UNREADABLE:
        asked = None
    if not isinstance(asked, dict):
        raise invalid("X-Filter", "Cannot decode filter")
    order, direction = asked.pop("+order_by", None), asked.pop("+order", ASCENDING)
    if order is not None and order not in by:
        raise invalid("X-Filter", f"Cannot order by {order}")
    if direction not in (ASCENDING, DESCENDING):  # a tuple: whatever somebody sends can be compared
        raise invalid("X-Filter", f"+order must be {ASCENDING} or {DESCENDING}")
    try:
        _holds(dict.fromkeys(by), asked, by, inert)  # refused also where there is nothing to find
        found = [item for item in items if _holds(item, asked, by, inert)]
    except RecursionError:
        raise invalid("X-Filter", "Cannot decode filter") from None
    if order is None:
        return found
    told = sorted((item for item in found if item[order] is not None), key=lambda item: item[order])
    ordered = [*(item for item in found if item[order] is None), *told]
    return ordered[::-1] if direction == DESCENDING else ordered


def _holds(item: Json, asked: Any, by: Sequence[str], inert: Sequence[str]) -> bool:
    if not isinstance(asked, dict):
        raise invalid("X-Filter", "Cannot decode filter")
    answers = []
    for key, value in asked.items():
        if key in {"+and", "+or"}:
            if not isinstance(value, list):
                raise invalid("X-Filter", f"{key} needs a list")
            parts = [_holds(item, part, by, inert) for part in value]
            answers.append(all(parts) if key == "+and" else any(parts))
        elif key.startswith("+"):
            raise invalid("X-Filter", f"Unknown operator {key}")
        elif key in inert:
            _compared(None, value)
        elif key not in by:
            raise invalid("X-Filter", f"Cannot filter on {key}")
        else:
            answers.append(_compared(item.get(key), value))
    return all(answers)


def _compared(has: Any, asked: Any) -> bool:
    if not isinstance(asked, dict):
        return asked in has if isinstance(has, list) else has == asked
    return all(_operator(has, name, value) for name, value in asked.items())


def _operator(has: Any, name: str, value: Any) -> bool:
    values = has if isinstance(has, list) else [has]
    match name:
        case "+eq":
            return value in values
        case "+neq":
            return value not in values
        case "+contains":
            # Within each text, as the real one does: a longer name contains a shorter one.
            return any(isinstance(each, str) and str(value) in each for each in values)
        case _ if name in _ORDERED:
            try:
                return has is not None and _ORDERED[name](has, value)
            except TypeError:
                raise invalid("X-Filter", f"{name} cannot compare with {value!r}") from None
        case _:
            raise invalid("X-Filter", f"Unknown operator {name}")
