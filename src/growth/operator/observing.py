"""Access for looking on: everything may be read, and only Decisions written.

The controllers that run with `--observe` write nothing else by themselves; this is the lock on the door.
"""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from growth.api.decisions import DECISION
from growth.api.kinds import Kind
from growth.kube.errors import Forbidden
from growth.kube.passing import PassingApi

R = TypeVar("R")


class ObservingApi(PassingApi):
    """Every write but of Decisions is `Forbidden`, and nothing is sent."""

    async def _write(self, verb: str, kind: Kind[Any], send: Callable[[], Awaitable[R]]) -> R:
        if (kind.group, kind.plural) != (DECISION.group, DECISION.plural):
            raise Forbidden(f"Growth only observes: it does not {verb} {kind}")
        return await send()
