"""What happened to the objects of a violation: what Growth and others did to them, between the faults that struck."""

import collections
from collections.abc import Sequence
from typing import Final

from growth.sim.invariants.invariant import Violation
from growth.sim.seams import Step
from growth.sim.world.world import World

KEPT: Final = 20_000
LINES: Final = 25
FAULTS: Final = 10
# Faults so long before the end of the story are part of it.
BEFORE_SECONDS: Final = 120.0
SILENT: Final = frozenset({("coordination.k8s.io", "leases"), ("", "events"), ("events.k8s.io", "events")})


class Story:
    """Remembers every change in one line each, of the newest some thousand."""

    def __init__(self) -> None:
        self._lines: collections.deque[tuple[float, str, str]] = collections.deque(maxlen=KEPT)

    def attach(self, world: World) -> None:
        world.witness.listeners.append(self._see)

    def _see(self, step: Step) -> None:
        if step.which in SILENT:
            return
        who = step.actor.process or step.actor.name
        change = "gone" if step.new is None else "new" if step.old is None else "changed"
        going = step.new is not None and bool(step.new["metadata"].get("deletionTimestamp"))
        line = f"{who}: {step.verb} {step.which[1]} {step.key[1]} ({'going' if going else change})"
        self._lines.append((step.at, step.key[1], line))

    def told(self, violation: Violation, *, faults: Sequence[tuple[float, str]]) -> str:
        """What was broken, and the lines about its objects up to then, with the faults in between."""
        about = [name for name in violation.about if name]
        ours = [
            (at, line)
            for at, name, line in self._lines
            if at <= violation.at and any(name == each or name.endswith(each) for each in about)
        ]
        since = ours[0][0] if ours else violation.at - BEFORE_SECONDS
        struck = [(at, f"fault: {what}") for at, what in faults if since - 1.0 <= at <= violation.at]
        if not ours:
            ours = [(at, line) for at, _, line in self._lines if violation.at - 10.0 <= at <= violation.at]
        # Of many faults those shortly before the end tell most.
        lines = sorted((*_shortened(ours)[-LINES:], *struck[-FAULTS:]))
        return "\n".join((violation.said, *(f"{at:9.2f} s  {line}" for at, line in lines)))


def _shortened(lines: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Without the middle of repetitions: what was done again and again is told at its first and last time."""
    return [
        each
        for number, each in enumerate(lines)
        if not 0 < number < len(lines) - 1 or not lines[number - 1][1] == each[1] == lines[number + 1][1]
    ]
