"""Offerings that a cloud refused lately: for a while they count as unavailable, and then they are tried again.

The cloud need not say so itself, and what it says may be minutes old: a plan that asks again for what was just refused
would be refused again, as fast as plans are made.
"""

import dataclasses
from collections.abc import Iterable
from typing import Final

from growth.api.instance_types import Catalogue, InstanceType, Offering
from growth.ports import Clock

# As Karpenter's clouds.
UNAVAILABLE_SECONDS: Final = 180.0

# Type, zone, capacity type.
Key = tuple[str, str, str]


class Shortages:
    """Kept for the life of a process: after a restart each offering is asked for once more."""

    def __init__(self, clock: Clock, *, seconds: float = UNAVAILABLE_SECONDS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._until: dict[Key, float] = {}

    def add(self, refused: Iterable[Key]) -> None:
        """They were refused just now. What was left out already is not left out for longer: nobody asked for it."""
        self._forget()
        until = self._clock.monotonic() + self._seconds
        for key in refused:
            self._until.setdefault(key, until)

    def __len__(self) -> int:
        self._forget()
        return len(self._until)

    def __contains__(self, key: Key) -> bool:
        return self._until.get(key, 0.0) > self._clock.monotonic()

    def seconds_left(self) -> float | None:
        """Until the first of them is tried again; None when there is none."""
        self._forget()
        return min(self._until.values()) - self._clock.monotonic() if self._until else None

    def laid_over(self, catalogue: Catalogue) -> Catalogue:
        """The catalogue without what is short."""
        if not len(self):
            return catalogue
        return dataclasses.replace(
            catalogue,
            types=self._all_marked(catalogue.types),
            of_classes={name: self._all_marked(types) for name, types in catalogue.of_classes.items()},
        )

    def _all_marked(self, types: tuple[InstanceType, ...]) -> tuple[InstanceType, ...]:
        short = {name for name, _, _ in self._until}
        return tuple(self._marked(kind) if kind.name in short else kind for kind in types)

    def _marked(self, kind: InstanceType) -> InstanceType:
        def marked(offering: Offering) -> Offering:
            if (kind.name, offering.zone, offering.capacity_type) not in self._until:
                return offering
            return dataclasses.replace(offering, available=False)

        return dataclasses.replace(kind, offerings=tuple(map(marked, kind.offerings)))

    def _forget(self) -> None:
        now = self._clock.monotonic()
        if any(until <= now for until in self._until.values()):
            self._until = {key: until for key, until in self._until.items() if until > now}
