"""What came to nothing is tried again later and later."""

import dataclasses
from typing import Final

from growth.controllers.environment import Environment
from growth.kube.backoff import Backoff, BackoffSettings

# What came to nothing so often, over so long, is more than a server that has just started and says no for a moment.
LONG_TIMES: Final = 3
LONG_SECONDS: Final = 60.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Rest:
    """All times are monotonic. `first` and `last` are when it came to nothing."""

    backoff: Backoff
    first: float
    last: float
    until: float


class Rests:
    """By key, in one process: whoever comes after it tries everything once more."""

    def __init__(self, env: Environment, settings: BackoffSettings) -> None:
        self._env = env
        self._settings = settings
        self._rests: dict[str, _Rest] = {}

    def begin(self, key: str) -> None:
        """Longer each time, until it is forgotten."""
        now = self._env.clock.monotonic()
        before = self._rests.get(key)
        backoff = Backoff(self._env.random, self._settings) if before is None else before.backoff
        first = now if before is None else before.first
        self._rests[key] = _Rest(backoff, first, now, now + backoff.next())

    def left(self, key: str) -> float:
        """For how many seconds it still rests; 0 for what does not."""
        rest = self._rests.get(key)
        return 0.0 if rest is None else max(0.0, rest.until - self._env.clock.monotonic())

    def for_long(self, key: str) -> bool:
        """Whether it came to nothing again and again, not for a moment only."""
        rest = self._rests.get(key)
        return rest is not None and rest.backoff.failures >= LONG_TIMES and rest.last - rest.first >= LONG_SECONDS

    def forget(self, key: str) -> None:
        self._rests.pop(key, None)
