"""Many runs, side by side in processes, and what they amount to.

Each run is a process's whole work for its time: nothing is shared, so the order in which they end changes no outcome.
"""

import collections
import dataclasses
import gc
import hashlib
import os
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait  # noqa: TID251 - processes, and no threads
from multiprocessing import get_context, parent_process  # noqa: TID251 - the same
from threading import Thread  # noqa: TID251 - it waits for the end of a process, beside the simulation

import structlog

from growth.sim.runs import run
from growth.sim.scenario.model import Order, Outcome, Violation
from growth.units.money import NANO, Money

CRITICAL = 50  # structlog's highest: thousands of simulated processes have nothing to say to a log


def perform(
    orders: Sequence[Order], *, jobs: int = 1, tell: Callable[[float], None] = lambda _: None
) -> Iterator[Outcome]:
    """The outcomes, as they come. With one job everything runs in this very process, and `tell` hears the virtual time."""
    quiet()
    if jobs == 1 or len(orders) == 1:
        yield from (_one(order, tell) for order in orders)
        return
    # Fresh processes: a fork would inherit the event loops and threads of whoever called.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin_worker) as pool:
        waiting = {pool.submit(_one, order) for order in orders}
        try:
            while waiting:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            for future in waiting:
                future.cancel()


def _one(order: Order, tell: Callable[[float], None] = lambda _: None) -> Outcome:
    """A run leaves its world behind, full of circles: the next one would hide it from the collector for good."""
    began = _core_seconds()
    try:
        outcome = run(order, tell=tell)
        return dataclasses.replace(outcome, core_seconds=round(_core_seconds() - began, 3))
    finally:
        gc.collect()


def _begin_worker() -> None:
    """Without its parent a worker would finish its run and wait for the next one for ever."""
    quiet()
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "a worker has a parent"
    parent.join()
    os._exit(1)


def _core_seconds() -> float:
    used = os.times()
    return used.user + used.system


def quiet() -> None:
    """Turns logging off in this process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(CRITICAL))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All runs together. Peaks are medians over the runs; a hash is over the runs' hashes, in the order of seeds."""

    seeds: int
    runs: int
    hours: float
    steps: int
    peak_machines: float
    peak_pods: float
    faults: dict[str, int]
    violations: tuple[Violation, ...]
    cost: Money
    pending_seconds: float
    evictions: int
    scale_ups: int
    scale_downs: int
    without_scaling: tuple[int, ...]
    """Seeds in which nothing was bought, or nothing given back."""
    digest: str
    effects: str

    def as_json(self) -> dict[str, object]:
        return {
            "seeds": self.seeds,
            "runs": self.runs,
            "hours": self.hours,
            "steps": self.steps,
            "world": {"peakMachines": self.peak_machines, "peakPods": self.peak_pods},
            "faults": self.faults,
            "violations": [
                {"seed": each.seed, "invariant": each.invariant, "at": each.at, "story": each.story}
                for each in self.violations
            ],
            "cost": self.cost.nano / NANO,
            "currency": self.cost.currency,
            "podSeconds": {"pending": round(self.pending_seconds, 3)},
            "evictions": self.evictions,
            "scaleUps": self.scale_ups,
            "scaleDowns": self.scale_downs,
            "traceHash": self.digest,
            "effectDigest": self.effects,
        }


def summed(outcomes: Iterable[Outcome]) -> Summary:
    """`outcomes` in whatever order they came; at least one."""
    runs = sorted(outcomes, key=lambda each: (each.seed, each.crash_after))
    faults: collections.Counter[str] = collections.Counter()
    for each in runs:
        faults.update(each.faults)
    return Summary(
        seeds=len({each.seed for each in runs}),
        runs=len(runs),
        hours=round(sum(each.hours for each in runs), 6),
        steps=sum(each.steps for each in runs),
        peak_machines=statistics.median(each.peak_machines for each in runs),
        peak_pods=statistics.median(each.peak_pods for each in runs),
        faults=dict(sorted(faults.items())),
        violations=tuple(violation for each in runs for violation in each.violations),
        cost=Money(sum(each.cost for each in runs), runs[0].currency),
        pending_seconds=sum(each.pending_seconds for each in runs),
        evictions=sum(each.evictions for each in runs),
        scale_ups=sum(each.scale_ups for each in runs),
        scale_downs=sum(each.scale_downs for each in runs),
        without_scaling=tuple(each.seed for each in runs if not each.scale_ups or not each.scale_downs),
        digest=_digest([each.digest for each in runs]),
        effects=_digest([each.effects for each in runs]),
    )


def _digest(digests: Sequence[str]) -> str:
    if len(digests) == 1:
        return digests[0]
    return hashlib.blake2b("".join(digests).encode(), digest_size=16).hexdigest()
