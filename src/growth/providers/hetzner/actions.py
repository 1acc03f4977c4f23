"""Waiting for actions: everybody's together, in batches, however many machines are being made.

Whoever wakes first asks for all that anybody waits for; the others find their answers there.
"""

import asyncio
import collections
from collections.abc import Iterable
from typing import Final

from growth.ports import Clock
from growth.providers.hetzner.client import ACTIONS_AT_ONCE, HetznerApi
from growth.providers.hetzner.failures import Meaning, meaning
from growth.providers.hetzner.wire import Action
from growth.providers.http import Refused, Unanswered

RUNNING: Final = "running"
ERROR: Final = "error"
# The steps of a machine's making: those that a purchase answers with, and backups.
MAKING: Final = frozenset({"create_server", "start_server", "attach_to_network", "apply_firewall", "enable_backup"})
# Between two looks: so much, and more for every batch that a look takes, so that the account's calls last.
LOOK_SECONDS: Final = 1.0
BATCH_SECONDS: Final = 0.4
LONGEST_LOOK_SECONDS: Final = 15.0
# A machine that is not made after that is looked for again, not bought again.
PATIENCE_SECONDS: Final = 240.0


class StillRunning(Exception):
    """Some of the actions have not ended in the time that they were given."""


class Actions:
    """One per account."""

    def __init__(self, cloud: HetznerApi, clock: Clock) -> None:
        self._cloud = cloud
        self._clock = clock
        self._wanted: collections.Counter[int] = collections.Counter()
        self._known: dict[int, Action] = {}
        self._looks = 0
        self._lock = asyncio.Lock()

    async def ended(
        self, actions: Iterable[Action | None], *, patience: float = PATIENCE_SECONDS
    ) -> tuple[Action, ...]:
        """The actions as they ended, well or not. `StillRunning` where one has not; `CallError` where nobody may ask."""
        asked = {action.id: action for action in actions if action is not None}
        until = self._clock.monotonic() + patience
        self._wanted.update(asked.keys())
        try:
            while any(action.status == RUNNING for action in asked.values()):
                if self._clock.monotonic() >= until:
                    raise StillRunning
                await self._next_look()
                asked |= {number: self._known[number] for number in asked if number in self._known}
        finally:
            for number in asked:
                self._wanted[number] -= 1
                if self._wanted[number] <= 0:
                    del self._wanted[number]
                    self._known.pop(number, None)
        return tuple(asked.values())

    async def _next_look(self) -> None:
        seen = self._looks
        batches = -(-len(self._wanted) // ACTIONS_AT_ONCE)
        await asyncio.sleep(min(LONGEST_LOOK_SECONDS, LOOK_SECONDS + BATCH_SECONDS * batches))
        async with self._lock:
            if self._looks != seen:
                return
            running = [number for number in self._wanted if self._open(number)]
            try:
                found = await self._cloud.actions(running)
            except Unanswered:
                return  # it goes on without us; whoever waits has a patience
            except Refused as error:
                if meaning(error.code, error.message) is Meaning.TRANSIENT:
                    return
                raise
            finally:
                self._looks += 1
            self._known |= {action.id: action for action in found if action.id in self._wanted}

    def _open(self, number: int) -> bool:
        known = self._known.get(number)
        return known is None or known.status == RUNNING


def failed(actions: Iterable[Action]) -> Action | None:
    """The first that ended badly."""
    return next((action for action in actions if action.status == ERROR), None)


def of_making(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Of all that was ever done to a machine the steps of its making, each as it was tried last.

    A step is one for every network and every firewall. What else people did to the machine says nothing of how it was made.
    """
    last: dict[tuple[str, frozenset[int]], Action] = {}
    for action in sorted(actions, key=lambda each: each.id):
        if action.command in MAKING:
            joined = frozenset(each.id for each in action.resources if each.type in {"network", "firewall"})
            last[action.command, joined] = action
    return tuple(last.values())
