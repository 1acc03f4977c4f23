"""Virtual time: an asyncio event loop that waits for nothing, driven by a seed.

Production code runs on it unchanged: `asyncio.sleep`, `asyncio.timeout`, locks, queues and task groups follow the
loop's time, and the loop's time jumps to the next timer whenever nothing is ready. There are no sockets and no threads.

- Nothing ready and no timer: `Deadlock`, which names every waiting task and the line where it waits.
- A million steps without time passing: `Livelock`, which names the tasks that were busy.
- A task's exception that nobody looks at fails the run (`Unhandled`).
- Order is first in, first out, for callbacks as in asyncio, and for timers due at one instant too. With `shuffle` the callbacks that are ready together run in a seeded
  random order: an extra mode that finds code relying on an order that asyncio does not promise.
- `trace` hashes what happened; equal seeds give equal hashes in any process.
- An asynchronous generator that is dropped half-way is closed on the spot; what its `finally` awaits is not waited for.

Processes (`growth.sim.process`) are groups of tasks that can be stopped at once, as by a power cut.
"""

import asyncio
import collections
import contextvars
import dataclasses
import gc
import heapq
import math
import random  # noqa: TID251 - seeded, and the source of all randomness in a run
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, Final, Generic, Protocol, TypeVar

from growth.sim import waiting
from growth.sim.trace import Trace

R = TypeVar("R")
T = TypeVar("T")

# Far above what one instant of a large simulated cluster needs, and reached within a second or two.
STEPS_AT_ONE_INSTANT: Final = 1_000_000

# Python's collector runs when it likes, and with it destructors; a run calls it by count instead.
STEPS_BETWEEN_COLLECTIONS: Final = 20_000


class SimulationError(Exception):
    """The simulated system, not the host, did something that no run may do."""


class Deadlock(SimulationError):
    """Every task waits and no timer is set."""


class Livelock(SimulationError):
    """Tasks keep each other busy and time stands still."""


class Overrun(SimulationError):
    """The run's virtual time limit has passed."""


class Unhandled(SimulationError):
    """A task or callback failed and nobody looked at its exception, which is the cause of this one."""


class Group(Protocol):
    """What the kernel must know of a process: whether its tasks may still run, and whether they may run now."""

    @property
    def name(self) -> str: ...

    @property
    def dead(self) -> bool: ...

    @property
    def frozen(self) -> bool: ...


class _Buried:
    """The group of tasks that are being closed: what they try to schedule never runs, what they try to write is refused."""

    name = "buried"
    dead = True
    frozen = False


BURIED: Final = _Buried()

# Inherited by every task, timer and callback that a process starts, as asyncio copies contexts.
GROUP: Final[contextvars.ContextVar[Group | None]] = contextvars.ContextVar("growth_sim_group", default=None)


@dataclasses.dataclass(frozen=True, slots=True)
class Run(Generic[R]):
    """A finished run: what `main` returned, the trace's hash, how much virtual time passed, how many steps were made."""

    value: R
    digest: str
    seconds: float
    steps: int


class Kernel(asyncio.BaseEventLoop):
    """The loop. Create it through `run`; reach the running one through `current()`."""

    # Owned by asyncio.BaseEventLoop since 3.4, without public names.
    _ready: collections.deque[asyncio.Handle]
    # A heap alone forgets which of two timers due at one instant was set first: each has a number.
    _scheduled: list[tuple[float, int, asyncio.TimerHandle]]
    _timer_cancelled_count: int
    _stopping: bool

    def __init__(self, *, seed: int, shuffle: bool = False, limit_seconds: float | None = None, keep: int = 0) -> None:
        super().__init__()
        self.seed = seed
        self.trace = Trace(keep=keep)
        self.steps = 0
        self._now = 0.0
        self._timers = 0
        self._limit = math.inf if limit_seconds is None else limit_seconds
        self._order = random.Random(f"{seed}/kernel/order") if shuffle else None
        self._steps_before_instant = 0
        self._tidy_at = STEPS_BETWEEN_COLLECTIONS
        self._tasks: dict[asyncio.Task[Any], Group | None] = {}
        self._failed: list[tuple[weakref.ref[asyncio.Task[Any]], Group | None]] = []
        self._failed_now = False
        self._failure: Unhandled | None = None
        self._parked: list[object] = []
        self._aside: dict[Group, list[asyncio.Handle]] = {}
        self._numbers: dict[str, int] = {}
        self.set_exception_handler(self._unhandled)
        self.trace.record("seed", seed, int(shuffle))

    # What a program sees.

    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._now

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        group = GROUP.get() if context is None else context.get(GROUP)  # an empty context is falsy
        label = str(name) if name is not None else getattr(coro, "__qualname__", "task")
        number = self._numbers[label] = self._numbers.get(label, 0) + 1
        if number > 1:
            label = f"{label}#{number}"
        task: asyncio.Task[T] = asyncio.Task(coro, loop=self, name=label, context=context)
        self._tasks[task] = group
        task.add_done_callback(self._ended, context=contextvars.Context())
        self.trace.record("start", self._now, label, group.name if group is not None else "-")
        return task

    def call_at(  # type: ignore[override] # the arguments' types are not checked twice
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        self._timers += 1
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, (when, self._timers, timer))
        timer._scheduled = True  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio's own bookkeeping
        return timer

    def call_soon(  # type: ignore[override] # as above
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def living(self) -> tuple[str, ...]:
        """The names of the tasks that have not ended, oldest first."""
        return tuple(task.get_name() for task in self._tasks)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]  # noqa: ARG002
        """Refused: a thread's timing is not the seed's to decide."""
        raise SimulationError(f"{func!r} wants a thread, and a simulation has none: go through growth.ports.Compute")

    # The loop itself.

    def _run_once(self) -> None:
        if not self._ready and not self._stopping:
            self._advance()
        self._release_due()
        if self._order is not None and len(self._ready) > 1:
            batch = list(self._ready)
            self._order.shuffle(batch)
            self._ready.clear()
            self._ready.extend(batch)
        self._run_ready()
        if self.steps >= self._tidy_at:
            self._tidy()
        if self._failure is not None:
            raise self._failure
        if self.steps - self._steps_before_instant > STEPS_AT_ONE_INSTANT:
            raise Livelock(
                f"{STEPS_AT_ONE_INSTANT} steps at {self._now} s without time passing:\n{self._waiters(ready_too=True)}"
            )

    def _run_ready(self) -> None:
        # A method of its own: after it nothing here holds the last task, and a failure in it is told now.
        ready = self._ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:  # noqa: SLF001 - a million calls of cancelled() are a cost
                continue
            group = handle._context.get(GROUP)  # type: ignore[attr-defined]  # noqa: SLF001 - 3.11 has no public way
            if group is not None:
                if group.dead:
                    continue
                if group.frozen:
                    self._aside.setdefault(group, []).append(handle)
                    continue
            self.steps += 1
            handle._run()  # noqa: SLF001 - the loop is the one caller of a handle

    def _tidy(self) -> None:
        """Forgets what no longer matters, at moments that depend on the run alone."""
        self._tidy_at = self.steps + STEPS_BETWEEN_COLLECTIONS
        gc.collect(1)
        self._failed = [(reference, group) for reference, group in self._failed if _unseen(reference)]
        kept = []
        for entry in self._scheduled:
            if self._is_void(entry[-1]):
                entry[-1]._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio's own bookkeeping
            else:
                kept.append(entry)
        heapq.heapify(kept)
        self._scheduled = kept
        self._timer_cancelled_count = 0

    def _advance(self) -> None:
        if self._failed_now:
            self._failed_now = False
            if self._unseen_failures():
                gc.collect()  # frees those that nobody holds, before time hides when they failed
                if self._failure is not None:
                    raise self._failure
        while self._scheduled and self._is_void(self._scheduled[0][-1]):
            self._drop_first_timer()
        # A sleep without end is a wait like any other.
        if not self._scheduled or self._scheduled[0][0] == math.inf:
            raise Deadlock(f"at {self._now} s every task waits and no timer is set:\n{self._waiters()}")
        when = self._scheduled[0][0]
        if when > self._now:
            if when > self._limit:
                raise Overrun(f"the limit of {self._limit} s has passed:\n{self._waiters()}")
            self.trace.record("time", self._now, self.steps - self._steps_before_instant)
            self._now = when
            self._steps_before_instant = self.steps

    def _release_due(self) -> None:
        # `<=`: a timer due exactly now must fire, or the loop would stand before it for ever.
        while self._scheduled and self._scheduled[0][0] <= self._now:
            self._ready.append(self._drop_first_timer())

    def _drop_first_timer(self) -> asyncio.TimerHandle:
        _, _, handle = heapq.heappop(self._scheduled)
        if handle.cancelled():
            self._timer_cancelled_count -= 1
        handle._scheduled = False  # type: ignore[attr-defined]  # noqa: SLF001 - asyncio's own bookkeeping
        return handle

    @staticmethod
    def _is_void(handle: asyncio.Handle) -> bool:
        """Cancelled, or of a process that is dead."""
        if handle.cancelled():
            return True
        group = _group_of(handle)
        return group is not None and group.dead

    def _check_closed(self) -> None:
        """What the collector closes after the end may still call; it reaches nobody, and that is no error."""

    def thaw(self, group: Group) -> None:
        """Lets run what a frozen group has missed, in the order in which it would have run."""
        self._ready.extend(self._aside.pop(group, ()))

    def _write_to_self(self) -> None:
        """Wakes a selector that sleeps; there is none."""

    # Failures.

    def _ended(self, task: asyncio.Task[Any]) -> None:
        group = self._tasks.pop(task, None)
        if not task.cancelled() and is_unretrieved(task):
            # Weak: of a task that nobody holds asyncio tells through `_unhandled` when it is freed.
            self._failed.append((weakref.ref(task), group))
            self._failed_now = True

    def _unhandled(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self._failure is None:
            who = context.get("task") or context.get("future") or context.get("handle")
            name = who.get_name() if isinstance(who, asyncio.Task) else str(who)
            self._failure = Unhandled(f"at {self._now} s: {context.get('message')}: {name}")
            self._failure.__cause__ = context.get("exception")

    def check_failures(self) -> None:
        """Raises `Unhandled` when a task failed and its exception was not looked at until now."""
        for task in self._unseen_failures():
            failure = Unhandled(f"task {task.get_name()} failed and nobody looked")
            failure.__cause__ = task.exception()
            raise failure

    def _unseen_failures(self) -> list[asyncio.Task[Any]]:
        tasks = (_unseen(reference) for reference, _ in self._failed)
        return [task for task in tasks if task is not None]

    def _waiters(self, *, ready_too: bool = False) -> str:
        lines = [
            f"  {group.name + '/' if group is not None else ''}{task.get_name()} {waiting.where(task)}"
            for task, group in self._tasks.items()
            if not (group is not None and group.dead)
        ]
        lines += [f"  {task.get_name()} had failed: {waiting.why(task)}" for task in self._unseen_failures()]
        return "\n".join(lines) or ("  only callbacks" if ready_too else "  no task at all")

    # The end of tasks.

    def bury(self, of: Callable[[Group | None], bool]) -> None:
        """Closes the tasks whose group is chosen: their `finally` blocks run, but in the context of the dead.

        A coroutine that answers its closing by waiting again is closed again, a hundred times, and then put aside. What
        failed in a dead group before somebody there could look at it is nobody's business any more.
        """
        for reference, group in self._failed:
            task = _unseen(reference)
            if task is not None and group is not None and group.dead and of(group):
                task.exception()
        for waiter in [task for task, group in self._tasks.items() if of(group)]:
            del self._tasks[waiter]
            waiter._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 - it is meant to be pending
            context = contextvars.Context()
            context.run(GROUP.set, BURIED)
            if not context.run(waiting.close, waiter.get_coro()):
                self._parked.append(waiter)

    def _asyncgen_finalizer_hook(self, agen: AsyncGenerator[Any, Any]) -> None:
        # The base class starts a task for it, which would never run in a dead process or after the run's end.
        if not waiting.close(agen):
            self._parked.append(agen)

    def end(self) -> None:
        """Stops whatever is left where it stands."""
        self.bury(lambda _: True)
        self.close()


def _unseen(reference: "weakref.ref[asyncio.Task[Any]]") -> asyncio.Task[Any] | None:
    """The failed task, as long as somebody holds it and nobody has looked at its exception."""
    task = reference()
    return task if task is not None and is_unretrieved(task) else None


def _group_of(handle: asyncio.Handle) -> Group | None:
    group: Group | None = handle._context.get(GROUP)  # type: ignore[attr-defined]  # noqa: SLF001 - 3.11 has no public way
    return group


def is_unretrieved(task: asyncio.Task[Any]) -> bool:
    """Whether the task failed and its exception was never looked at."""
    return bool(task._log_traceback)  # noqa: SLF001 - asking through exception() would count as looking


def current() -> Kernel:
    """The kernel that runs the caller."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, Kernel):
        raise SimulationError("this code runs on a real event loop; start it with growth.sim.kernel.run")
    return loop


def run(
    main: Callable[[Kernel], Coroutine[Any, Any, R]],
    *,
    seed: int,
    shuffle: bool = False,
    limit_seconds: float | None = None,
    keep: int = 0,
) -> Run[R]:
    """Runs `main` to its end in virtual time; whatever else still runs then is stopped where it stands.

    `limit_seconds` bounds the virtual time; `keep` trace lines are added as a note to an exception that ends the run.
    """
    kernel = Kernel(seed=seed, shuffle=shuffle, limit_seconds=limit_seconds, keep=keep)
    collects = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        value = kernel.run_until_complete(kernel.create_task(main(kernel), name="main", context=contextvars.Context()))
        kernel.check_failures()
        kernel.trace.record("end", kernel.time(), kernel.steps)
        return Run(value, kernel.trace.digest, kernel.time(), kernel.steps)
    except BaseException as error:
        error.add_note(f"seed {seed}, virtual time {kernel.time()} s, {kernel.steps} steps")
        for line in kernel.trace.newest():
            error.add_note(f"  {line}")
        raise
    finally:
        kernel.end()
        gc.unfreeze()
        if collects:
            gc.enable()
