"""A client-side limit on calls, so that a busy pass does not crowd the API server's other clients."""

import asyncio

from growth.ports import Clock


class TokenBucket:
    """At most `burst` calls at once and `qps` a second on average; callers wait in the order in which they came."""

    def __init__(self, clock: Clock, *, qps: float, burst: int) -> None:
        if qps <= 0 or burst < 1:
            raise ValueError(f"qps must be above 0 and burst at least 1, not {qps} and {burst}")
        self._clock = clock
        self._qps = qps
        self._burst = float(burst)
        self._tokens = float(burst)
        self._filled_at = clock.monotonic()

    async def take(self) -> None:
        """Waits until this call may go. A caller that gives up while it waits has used up its turn."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        # Debt is what keeps the order: each caller sleeps until its own token would have come.
        self._tokens -= 1.0
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._qps)
