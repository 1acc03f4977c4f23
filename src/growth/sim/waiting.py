"""Where a suspended coroutine waits, and how it is closed without an event loop."""

import asyncio
import types
from collections.abc import AsyncGenerator
from typing import Any, Final

# A coroutine may answer GeneratorExit by waiting again (a task group does, once for each nesting).
CLOSINGS: Final = 100


def where(task: asyncio.Task[Any]) -> str:
    """The chain of awaits, outermost first, down to the line that waits in our code or asyncio's."""
    steps: list[str] = []
    line = ""
    awaited: object = task.get_coro()
    while awaited is not None:
        frame, awaited = _step(awaited)
        if frame is not None:
            steps.append(frame.f_code.co_qualname)
            line = f"{_short(frame.f_code.co_filename)}:{frame.f_lineno}"
    return f"waits in {' → '.join(steps)} ({line})" if steps else "has not begun"


def why(task: asyncio.Task[Any]) -> str:
    """The failed task's exception in one line."""
    error = task.exception()
    return f"{type(error).__name__}: {error}"


def close(suspended: object) -> bool:
    """Ends a coroutine or asynchronous generator by GeneratorExit; False when it would not end.

    What its `finally` blocks await is not waited for, and what they raise has nobody to go to.
    """
    for _ in range(CLOSINGS):
        try:
            if isinstance(suspended, types.CoroutineType | types.GeneratorType):
                suspended.close()
            elif isinstance(suspended, AsyncGenerator):
                _drive(suspended)
        except RuntimeError:
            continue  # it awaited again
        except BaseException:  # noqa: BLE001, S110 - the dead have nobody to report to
            pass
        return True
    return False


def _drive(agen: AsyncGenerator[Any, Any]) -> None:
    try:
        agen.aclose().__await__().send(None)
    except StopIteration:
        return
    raise RuntimeError("the generator awaits while it closes")


def _step(awaited: object) -> tuple[types.FrameType | None, object]:
    """The frame of one link of the chain, and the next link."""
    if isinstance(awaited, types.CoroutineType):
        return awaited.cr_frame, awaited.cr_await
    if isinstance(awaited, types.GeneratorType):
        return awaited.gi_frame, awaited.gi_yieldfrom
    if isinstance(awaited, types.AsyncGeneratorType):
        return awaited.ag_frame, awaited.ag_await
    return None, None


def _short(path: str) -> str:
    """The path from `growth` or the standard library on; the rest is this machine's affair."""
    return "/".join(path.replace("\\", "/").split("/")[-3:])
