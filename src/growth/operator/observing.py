"""Access for looking on: everything may be read, and only Decisions written.

The controllers that run with `--observe` write nothing else by themselves; this is the lock on the door.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from growth.api.decisions import DECISION
from growth.kube.errors import Forbidden
from growth.kube.passing import PassingApi, Write

R = TypeVar("R")


class ObservingApi(PassingApi):
    """Every write but of Decisions is `Forbidden`, and nothing is sent."""

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        if (write.kind.group, write.kind.plural) != (DECISION.group, DECISION.plural):
            raise Forbidden(f"Growth only observes: it does not {write.verb} {write.kind}")
        return await send()
