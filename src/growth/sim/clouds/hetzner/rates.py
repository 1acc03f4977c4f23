"""3,600 calls an hour for the whole project, which recover one a second."""

import datetime as dt
import math


class Bucket:
    """`spend` answers whether the call may pass; a call that may not costs nothing."""

    def __init__(self, *, limit: int, per_second: float, now: dt.datetime) -> None:
        self._limit = limit
        self._per_second = per_second
        self._left = float(limit)
        self._at = now

    def spend(self, now: dt.datetime, *, calls: int = 1) -> bool:
        self._recover(now)
        if self._left < 1:
            return False
        self._left = max(self._left - calls, 0.0)
        return True

    def headers(self, now: dt.datetime) -> dict[str, str]:
        self._recover(now)
        whole_in = (self._limit - self._left) / self._per_second
        return {
            "ratelimit-limit": str(self._limit),
            "ratelimit-remaining": str(int(self._left)),
            "ratelimit-reset": str(math.ceil(now.timestamp() + whole_in)),
        }

    def _recover(self, now: dt.datetime) -> None:
        passed = (now - self._at).total_seconds()
        if passed > 0:
            self._left = min(float(self._limit), self._left + passed * self._per_second)
            self._at = now
