"""Conditions read and summed up: which one holds, since when, and what they make of `Ready`.

`Ready` is worked out of the conditions that it depends on, as Karpenter's objects have it: True when all are, False as
soon as one is, Unknown until then.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import Final

from growth.api import names
from growth.api.edits import set_condition
from growth.api.kinds import Json
from growth.api.meta import Condition

TRUE: Final = "True"
FALSE: Final = "False"
UNKNOWN: Final = "Unknown"

CLAIM_CONDITIONS: Final = (names.LAUNCHED, names.REGISTERED, names.INITIALIZED)
POOL_CONDITIONS: Final = (names.VALIDATION_SUCCEEDED, names.NODE_CLASS_READY)

_UNHEALTHY: Final = "UnhealthyDependents"
_RECONCILING: Final = "ReconcilingDependents"


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    return next((each for each in conditions if each.type == type_), None)


def is_true(conditions: Iterable[Condition], type_: str) -> bool:
    found = find(conditions, type_)
    return found is not None and found.status == TRUE


def since(conditions: Iterable[Condition], type_: str) -> dt.datetime | None:
    """When the condition last changed; None where there is none or it does not say."""
    found = find(conditions, type_)
    return None if found is None else found.last_transition_time


def set_ready(draft: Json, depends_on: Sequence[str], *, now: dt.datetime) -> None:
    """Sets `Ready` to what the conditions in the draft's status make of it."""
    held = {each.get("type"): each.get("status") for each in draft.get("status", {}).get("conditions") or ()}
    open_ = [(type_, held.get(type_, UNKNOWN)) for type_ in depends_on if held.get(type_) != TRUE]
    if not open_:
        set_condition(draft, names.READY, status=TRUE, now=now)
        return
    failed = any(status == FALSE for _, status in open_)
    set_condition(
        draft,
        names.READY,
        status=FALSE if failed else UNKNOWN,
        reason=_UNHEALTHY if failed else _RECONCILING,
        message=", ".join(f"{type_}={status}" for type_, status in open_),
        now=now,
    )
