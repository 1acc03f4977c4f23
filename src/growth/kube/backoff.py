"""How long to wait before trying again."""

import dataclasses
from typing import Final

from growth.ports import Random


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BackoffSettings:
    """The n-th wait is `base × factor^n`, at most `cap`, and then stretched by a random part of itself up to `jitter`.

    The defaults are those of the standard Kubernetes client for lists and watches.
    """

    base_seconds: float = 0.8
    cap_seconds: float = 30.0
    factor: float = 2.0
    jitter: float = 1.0


DEFAULT_BACKOFF: Final = BackoffSettings()


class Backoff:
    """Waits that grow until `reset`; jittered, so that a thousand clients of one server do not return as one."""

    def __init__(self, random: Random, settings: BackoffSettings) -> None:
        self._random = random
        self._settings = settings
        self._failures = 0

    @property
    def failures(self) -> int:
        """In a row, since the last reset."""
        return self._failures

    def next(self) -> float:
        """Seconds to wait after one more failure."""
        settings = self._settings
        # The exponent is capped too: a float overflows after a thousand failures.
        plain = min(settings.cap_seconds, settings.base_seconds * settings.factor ** min(self._failures, 64))
        self._failures += 1
        return plain * (1.0 + self._random.uniform(0.0, settings.jitter))

    def reset(self) -> None:
        self._failures = 0
