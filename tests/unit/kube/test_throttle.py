"""The client-side rate limit."""

import asyncio

import pytest

from growth.kube.throttle import TokenBucket
from tests.unit.kube.stub import FixedClock


def waits(monkeypatch: pytest.MonkeyPatch, *, qps: float, burst: int, pauses: list[float]) -> list[float]:
    """How long each call waits, when it comes `pauses` seconds after the one before."""
    clock = FixedClock()
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited[-1] = round(seconds, 6)

    monkeypatch.setattr("growth.kube.throttle.asyncio.sleep", sleep)
    bucket = TokenBucket(clock, qps=qps, burst=burst)

    async def law() -> None:
        for pause in pauses:
            clock.advance(pause)
            waited.append(0.0)
            await bucket.take()

    asyncio.run(law())
    return waited


def test_a_burst_goes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `burst` calls do not wait; each after them waits one turn more than the one before."""
    assert waits(monkeypatch, qps=10, burst=3, pauses=[0] * 5) == [0, 0, 0, 0.1, 0.2]


def test_turns_come_back_with_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause earns its turns, and never more than the burst."""
    assert waits(monkeypatch, qps=10, burst=2, pauses=[0, 0, 0.1, 100, 0, 0]) == [0, 0, 0, 0, 0, 0.1]


def test_a_limit_must_let_something_through() -> None:
    """A rate or a burst of nothing is refused."""
    for qps, burst in ((0.0, 1), (1.0, 0)):
        with pytest.raises(ValueError, match="qps must be above 0"):
            TokenBucket(FixedClock(), qps=qps, burst=burst)
