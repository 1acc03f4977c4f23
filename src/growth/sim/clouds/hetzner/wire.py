"""How this API answers: bodies, errors and pages."""

import datetime as dt
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from growth.api.kinds import Json
from growth.providers.numbered import number_in
from growth.sim.clouds import frame
from growth.sim.clouds.frame import Reply

PAGE: Final = 25
LONGEST_PAGE: Final = 50

Query = Mapping[str, Sequence[str]]


class Refusal(frame.Refusal):
    """An answer with an error in it."""

    def __init__(self, status: int, code: str, message: str, *, details: Json | None = None) -> None:
        super().__init__(f"{status} {code}: {message}", status=status, code=code)
        self.message = message
        self.details = details

    def body(self) -> Json:
        return {"error": {"code": self.code, "message": self.message, "details": self.details}}


def invalid(field: str, message: str) -> Refusal:
    """A field of the request that cannot be accepted."""
    return Refusal(
        422,
        "invalid_input",
        f"invalid input in field '{field}'",
        details={"fields": [{"name": field, "messages": [message]}]},
    )


def not_found(what: str, which: object) -> Refusal:
    return Refusal(404, "not_found", f"{what} with ID '{which}' not found")


def taken(field: str, message: str) -> Refusal:
    """Something that can be given only once is given already."""
    return Refusal(409, "uniqueness_error", message, details={"fields": [{"name": field}]})


def text_time(moment: dt.datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def first(query: Query, name: str, default: str = "") -> str:
    return query[name][0] if query.get(name) else default


def whole(query: Query, name: str, default: int) -> int:
    text = first(query, name)
    if not text:
        return default
    number = number_in(text)
    if number is None or number < 1:
        raise invalid(name, "must be a number from 1 on")
    return number


def page(items: Sequence[Json], key: str, query: Query) -> Reply:
    """One page of the items, with its place among all of them."""
    number, size = whole(query, "page", 1), whole(query, "per_page", PAGE)
    if size > LONGEST_PAGE:
        raise invalid("per_page", f"must not be greater than {LONGEST_PAGE}")
    last = max(math.ceil(len(items) / size), 1)
    meta = {
        "pagination": {
            "page": number,
            "per_page": size,
            "previous_page": number - 1 if number > 1 else None,
            "next_page": number + 1 if number < last else None,
            "last_page": last,
            "total_entries": len(items),
        }
    }
    return Reply(200, {key: list(items[(number - 1) * size : number * size]), "meta": meta})


def ordered(items: Sequence[Json], query: Query, *, by: Sequence[str]) -> list[Json]:
    """Sorted by `sort=FIELD[:asc|:desc]`, given once or more; without it by ID."""
    result = sorted(items, key=lambda item: item["id"])
    for order in reversed(query.get("sort", ())):
        field, _, direction = order.partition(":")
        if field not in by or direction not in {"", "asc", "desc"}:
            raise invalid("sort", f"must be one of {', '.join(by)}, with :asc or :desc")
        result.sort(key=lambda item: _sortable(item[field]), reverse=direction == "desc")
    return result


def _sortable(value: Any) -> Any:
    return (value is not None, value if value is not None else "")
