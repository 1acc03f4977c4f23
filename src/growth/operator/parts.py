"""Which controllers run: those that act, and those that only look on. And every metric that they count."""

from collections.abc import Sequence
from typing import Final, Protocol

from growth.controllers.environment import Environment
from growth.telemetry.metrics import Declaration


class Part(Protocol):
    """Something that runs until cancelled; when it returns by itself something is wrong."""

    async def run(self) -> None: ...


METRICS: Final[tuple[Declaration, ...]] = ()


def acting(environment: Environment) -> Sequence[Part]:  # noqa: ARG001 - none is there yet
    """Everything that runs while the Lease is held. Made before: they listen from the start on."""
    return ()


def observing(environment: Environment) -> Sequence[Part]:  # noqa: ARG001 - none is there yet
    """What runs with `--observe`: it plans and writes Decisions."""
    return ()
