"""Since when names stand reserved, by our own clock: the clocks of two machines may be minutes apart.

A name that somebody reserved counts as a machine until its claim is there. Whoever reserved it creates it soon or never, so
once we have seen it stand for `RELEASE` its room is free again.
"""

from collections.abc import Mapping, Set
from typing import Final

from growth.api import names, reservations
from growth.api.meta import ObjectMeta
from growth.api.reservations import RELEASE, Reservation, ReservationError, ReservedName
from growth.ports import Clock

# What has not been seen for so long is forgotten.
FORGET_SECONDS: Final = 86_400.0


class ReservedNames:
    """Show it what is reserved as often as you read it. For one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seen: dict[ReservedName, tuple[float, float]] = {}  # when (monotonic) first and last

    def read(self, pool: ObjectMeta) -> None:
        """Sees what a pool has reserved. What cannot be read is told by whoever reserves there."""
        text = pool.annotations.get(names.RESERVED_ANNOTATION)
        if text:
            try:
                self.see(reservations.parse(text))
            except ReservationError:
                return

    def see(self, reserved: Mapping[str, Reservation]) -> None:
        now = self._clock.monotonic()
        for name, each in reserved.items():
            first, _ = self._seen.get((name, each.at), (now, now))
            self._seen[name, each.at] = (first, now)
        self._seen = {key: seen for key, seen in self._seen.items() if now - seen[1] <= FORGET_SECONDS}

    def given_up(self) -> Set[ReservedName]:
        """Those that have stood for too long."""
        latest = self._clock.monotonic() - RELEASE.total_seconds()
        return frozenset(key for key, (first, _) in self._seen.items() if first < latest)
