"""A simulated operating-system process: tasks that live and die together.

A crash stops every task at the await where it stands; none of them takes another step, no timer of theirs fires. What
was on the wire stays on the wire: a request that left before the crash still reaches the server. Python then closes the
suspended coroutines, so their `finally` blocks run, but in a dead context: what they schedule never runs, and the
process's API access (`growth.sim.network`) refuses them with `Crashed`.
"""

import asyncio
import contextvars
import dataclasses
import enum
from collections.abc import Callable, Coroutine
from typing import Any

from growth.sim.kernel import GROUP, Kernel


class Crashed(BaseException):
    """Raised into code of a dead process that tries to reach the outside."""


class Fate(enum.StrEnum):
    RUNNING = "running"
    RETURNED = "returned"
    FAILED = "failed"
    CRASHED = "crashed"


@dataclasses.dataclass(frozen=True, slots=True)
class Exit:
    """How a process ended, at which virtual time, and with which exception of its main coroutine."""

    fate: Fate
    at: float
    error: Exception | None = None


class Process:
    """Created by `start`. `writes` counts the writes of this process that a server has applied."""

    def __init__(self, kernel: Kernel, name: str) -> None:
        self._kernel = kernel
        self._name = name
        self._exit: Exit | None = None
        self._waiters: list[asyncio.Future[Exit]] = []
        self._on_end: list[Callable[[], None]] = []
        self._crash_after = 0
        self._frozen = False
        self.thawed = float("-inf")
        """When it last went on after it had been stopped."""
        self.froze = float("-inf")
        """When it was stopped last."""
        self.writes = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def dead(self) -> bool:
        return self._exit is not None

    @property
    def frozen(self) -> bool:
        return self._frozen

    def freeze(self, seconds: float) -> None:
        """Stops the process as SIGSTOP or a long pause of its machine does: it takes no step, and time goes on.

        Afterwards everything that it missed happens at once, timers that are long overdue included.
        """
        if self._frozen:
            return
        self._frozen = True
        self.froze = self._kernel.time()
        self._kernel.trace.record("freeze", self._kernel.time(), self._name, seconds)
        contextvars.Context().run(self._kernel.call_later, seconds, self._thaw)

    def sleep(self, seconds: float) -> None:
        """Stops the process as the suspension of its machine does: its timers stand still too, and go on afterwards.

        What came for it meanwhile is there when it goes on. Its machine's clock must be told too (`SimClock.sleep`).
        """
        if not self._frozen:
            self._kernel.postpone(self, seconds)
            self.freeze(seconds)

    def _thaw(self) -> None:
        self._frozen = False
        self.thawed = self._kernel.time()
        self._kernel.thaw(self)

    @property
    def fate(self) -> Fate:
        return Fate.RUNNING if self._exit is None else self._exit.fate

    def crash(self) -> None:
        """Stops every task at once. A step that is being made right now goes on to its next await and no further."""
        self._end(Fate.CRASHED, None)

    def crash_after_write(self, n: int) -> None:
        """Crashes at the moment when a server has applied the n-th write from now on, before the answer comes back."""
        if n < 1:
            raise ValueError(f"the n-th write is counted from 1, not {n}")
        self._crash_after = self.writes + n

    def count_write(self) -> None:
        """Told by the wire that a server has applied a write of this process."""
        self.writes += 1
        if self.writes == self._crash_after:
            self.crash()

    def at_end(self, action: Callable[[], None]) -> None:
        """`action` is called when the process ends: connections break, for instance. It runs outside the process."""
        self._on_end.append(action)

    async def wait(self) -> Exit:
        """How the process ended. It does not raise the process's exception."""
        if self._exit is not None:
            return self._exit
        waiter: asyncio.Future[Exit] = self._kernel.create_future()
        self._waiters.append(waiter)
        return await waiter

    async def _main(self, main: Coroutine[Any, Any, object]) -> None:
        try:
            await main
        except Exception as error:  # noqa: BLE001 - whatever it is, it is how the process ended
            self._end(Fate.FAILED, error)
        else:
            self._end(Fate.RETURNED, None)

    def _end(self, fate: Fate, error: Exception | None) -> None:
        if self._exit is not None:
            return
        kernel = self._kernel
        self._exit = Exit(fate, kernel.time(), error)
        kernel.trace.record("exit", kernel.time(), self._name, fate.value, type(error).__name__, self.writes)
        outside = contextvars.Context()
        for action in self._on_end:
            outside.run(action)
        for waiter in self._waiters:
            if not waiter.done():
                outside.run(waiter.set_result, self._exit)
        # Not at once: the step that is being made may be one of this process.
        outside.run(kernel.call_soon, kernel.bury, lambda group: group is self)


def start(kernel: Kernel, name: str, main: Callable[[Process], Coroutine[Any, Any, object]]) -> Process:
    """A new process that runs `main`; it ends when `main` does, and then all its other tasks stop too."""
    process = Process(kernel, name)
    context = contextvars.Context()
    context.run(GROUP.set, process)
    coroutine = context.run(main, process)
    context.run(kernel.create_task, process._main(coroutine), name=f"{name}.main", context=context)  # noqa: SLF001
    return process
