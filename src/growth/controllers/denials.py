"""Machines that the cloud says it does not know: one «not found» proves nothing, two of them long enough apart do.

Clouds answer so for machines that run: from a replica that lags, for a moment, without an error. What is concluded from it
costs a machine or leaves one behind, so that nobody may conclude it from one answer alone. A deletion that says «not found» is
another matter: nothing is left to be taken down.
"""

from collections.abc import Iterable

from growth.ports import Clock


class Denials:
    """Since when the cloud has denied each machine at every look that it answered. A process that starts anew knows of none."""

    def __init__(self, clock: Clock, *, confirm: float) -> None:
        self._clock = clock
        self._confirm = confirm
        self._since: dict[str, float] = {}  # monotonic

    def __bool__(self) -> bool:
        return bool(self._since)

    def __contains__(self, uid: str) -> bool:
        return uid in self._since

    def deny(self, uid: str) -> bool:
        """The cloud has just denied it; whether it did so before, long enough ago, and never said otherwise between."""
        now = self._clock.monotonic()
        return now - self._since.setdefault(uid, now) >= self._confirm

    def seconds(self, uid: str) -> float:
        """For how long it has been denied."""
        return self._clock.monotonic() - self._since.get(uid, self._clock.monotonic())

    def forget(self, uid: str) -> None:
        """The cloud knows it, or nobody asks any more."""
        self._since.pop(uid, None)

    def keep(self, uids: Iterable[str]) -> None:
        """Forgets all others."""
        kept = set(uids)
        self._since = {uid: since for uid, since in self._since.items() if uid in kept}
