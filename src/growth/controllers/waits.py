"""How long something has lasted that must have its time and no more: a wall clock that jumps changes neither.

When it began was written down by another clock (the server's, another process's, ours before it was set), so ages are
reckoned by wall clocks. One that is set forward by minutes would end at once whatever has only begun, and one that is set back
would wait for as much longer. So from our first look on exactly as much time passes as the monotonic clock says; what the
wall clock says is believed only of the time before.
"""

import dataclasses
import datetime as dt
from collections.abc import Hashable

from growth.ports import Clock


@dataclasses.dataclass(frozen=True, slots=True)
class _First:
    stage: Hashable
    at: float  # monotonic
    before: float  # seconds from its beginning to this look, by the wall clock


class Waits:
    """One for each kind of wait. A process that starts anew knows nothing of earlier looks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._first: dict[str, _First] = {}

    def now(self, uid: str, stage: Hashable, *, began: dt.datetime | None) -> dt.datetime:
        """The time by which the stage is to be judged that the object is in since `began`; each stage is a wait anew."""
        wall, passed = self._clock.now(), self._clock.monotonic()
        if began is None:
            return wall
        age = (wall - began).total_seconds()
        first = self._first.get(uid)
        if first is None or first.stage != stage:
            first = self._first[uid] = _First(stage, passed, max(0.0, age))
        since = passed - first.at
        return began + dt.timedelta(seconds=min(max(age, since), first.before + since))

    def forget(self, uid: str) -> None:
        self._first.pop(uid, None)
