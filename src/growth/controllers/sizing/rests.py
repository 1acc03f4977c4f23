"""What came to nothing is tried again later and later."""

from growth.controllers.environment import Environment
from growth.kube.backoff import Backoff, BackoffSettings


class Rests:
    """By key, in one process: whoever comes after it tries everything once more."""

    def __init__(self, env: Environment, settings: BackoffSettings) -> None:
        self._env = env
        self._settings = settings
        self._until: dict[str, tuple[Backoff, float]] = {}  # monotonic

    def begin(self, key: str) -> None:
        """Longer each time, until it is forgotten."""
        backoff, _ = self._until.get(key, (Backoff(self._env.random, self._settings), 0.0))
        self._until[key] = (backoff, self._env.clock.monotonic() + backoff.next())

    def left(self, key: str) -> float:
        """For how many seconds it still rests; 0 for what does not."""
        _, until = self._until.get(key, (None, 0.0))
        return max(0.0, until - self._env.clock.monotonic())

    def forget(self, key: str) -> None:
        self._until.pop(key, None)
