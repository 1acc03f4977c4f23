"""How a pool's last machines fared: whether they came to be Nodes. Kept in memory, told in NodeRegistrationHealthy.

Karpenter's rule: of the last four launches, two that failed make a pool unhealthy. A pool that nothing is known of is
neither. A change of the pool or of its node class begins anew.
"""

import collections
import dataclasses
from collections.abc import Callable
from typing import Final

from growth.api.pools import PoolRef

REMEMBERED: Final = 4
UNHEALTHY_AT: Final = 2


@dataclasses.dataclass(frozen=True, slots=True)
class Verdict:
    """`reason` and `message` are those of the last failure, for a pool that is not healthy."""

    healthy: bool
    reason: str = ""
    message: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class _Outcome:
    ok: bool
    reason: str = ""
    message: str = ""


class RegistrationHealth:
    """One per process: the lifecycle records, the pools' controller tells."""

    def __init__(self) -> None:
        self._outcomes: dict[PoolRef, collections.deque[_Outcome]] = {}
        self._subscribers: list[Callable[[PoolRef], None]] = []

    def subscribe(self, subscriber: Callable[[PoolRef], None]) -> None:
        """`subscriber` is told the pool whenever something was recorded of it."""
        self._subscribers.append(subscriber)

    def record(self, pool: PoolRef, *, ok: bool, reason: str = "", message: str = "") -> None:
        """One launch more: it became a Node, or it never will."""
        ring = self._outcomes.setdefault(pool, collections.deque(maxlen=REMEMBERED))
        ring.append(_Outcome(ok, reason, message))
        for subscriber in self._subscribers:
            subscriber(pool)

    def assume(self, pool: PoolRef, verdict: Verdict) -> None:
        """What an earlier process found, where this one knows nothing yet: one success must not wipe it out."""
        if pool not in self._outcomes:
            times = 1 if verdict.healthy else UNHEALTHY_AT
            outcome = _Outcome(verdict.healthy, verdict.reason, verdict.message)
            self._outcomes[pool] = collections.deque([outcome] * times, maxlen=REMEMBERED)

    def forget(self, pool: PoolRef) -> None:
        """The pool has changed or is gone: what was, says nothing of what comes."""
        self._outcomes.pop(pool, None)

    def verdict(self, pool: PoolRef) -> Verdict | None:
        """None where nothing is known."""
        ring = self._outcomes.get(pool)
        if not ring:
            return None
        failed = [outcome for outcome in ring if not outcome.ok]
        if len(failed) < UNHEALTHY_AT:
            return Verdict(healthy=True)
        return Verdict(False, failed[-1].reason, failed[-1].message)
