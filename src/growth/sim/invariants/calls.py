"""How often Growth asks: the API server has other clients."""

from collections.abc import Iterator
from typing import Final

from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.seams import Step
from growth.sim.world.world import World

# Within such a stretch, so many calls whatever happens, so many more for each change that others made, and for each life
# of a process, which lists everything when it begins.
STRETCH_SECONDS: Final = 600.0
CALLS: Final = 3000
CALLS_PER_CHANGE: Final = 6
CALLS_PER_LIFE: Final = 150


class Calls(Quiet):
    name = "calls"
    promise = "calls are bounded by what happens, not by how often it is looked"

    def __init__(self, world: World) -> None:
        self._world = world
        self._changes = 0
        self._counts: dict[str, int] = {}  # by the connection's name: each life has its own
        self._since = 0.0
        self._at_start = (0, 0, 0)  # calls, changes, lives

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        del case
        self._changes += not step.actor.is_growth
        yield from ()

    def state(self, case: Case) -> Iterator[Complaint]:
        for replica in self._world.replicas:
            for network in replica.networks.values():
                self._counts[network.named] = network.statistics().calls
        now = (sum(self._counts.values()), self._changes, len(self._counts))
        if case.now - self._since < STRETCH_SECONDS:
            return
        calls, changes, lives = (each - before for each, before in zip(now, self._at_start, strict=True))
        allowed = CALLS + changes * CALLS_PER_CHANGE + lives * CALLS_PER_LIFE
        if calls > allowed:
            yield Complaint(f"{calls} calls in {case.now - self._since:.0f} s, with {changes} changes by others")
        self._since, self._at_start = case.now, now
