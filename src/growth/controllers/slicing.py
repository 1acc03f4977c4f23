"""Long lists in pieces, so that the event loop comes to everybody else in between."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

# What is done for so many pods or claims at a stretch takes a few milliseconds.
SLICE: Final = 200


async def slices(items: Sequence[T]) -> AsyncIterator[Sequence[T]]:
    """The items a few hundred at a time, with a turn for everybody else in between: the Lease must be renewed."""
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
        await asyncio.sleep(0)
