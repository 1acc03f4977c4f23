"""What the lifecycle remembers of claims between two looks. All of it may be lost with the process.

A machine that was bought while the status that names it could not be written yet; when a launch may be tried again;
claims that are kept for a while only so that their pool does not make the next one at once.
"""

from typing import Final

from growth.api.clouds import CloudMachine
from growth.api.karpenter import NodeClaim
from growth.api.pools import PoolRef
from growth.controllers.lifecycle.failures import Failure
from growth.controllers.ownership import pool_of
from growth.kube.backoff import Backoff, BackoffSettings
from growth.ports import Clock, Random

LAUNCH_RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=60.0, jitter=0.2)


class Memory:
    """Claims are told apart by uid: a claim made again under its name is another one."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._machines: dict[str, CloudMachine] = {}
        self._retries: dict[str, Backoff] = {}
        self._not_before: dict[str, float] = {}
        self._doomed: dict[str, Failure] = {}
        self._refusals: dict[PoolRef | None, int] = {}

    def bought(self, claim: NodeClaim, machine: CloudMachine) -> None:
        self._machines[claim.metadata.uid] = machine
        self._refusals.pop(pool_of(claim), None)

    def machine(self, claim: NodeClaim) -> CloudMachine | None:
        return self._machines.get(claim.metadata.uid)

    def postpone(self, claim: NodeClaim, *, seconds: float = 0.0) -> float:
        """The next launch may be tried after so many seconds; without a number later and later."""
        if not seconds:
            backoff = self._retries.setdefault(claim.metadata.uid, Backoff(self._random, LAUNCH_RETRY))
            seconds = backoff.next()
        self._not_before[claim.metadata.uid] = self._clock.monotonic() + seconds
        return seconds

    def seconds_left(self, claim: NodeClaim) -> float | None:
        """How long the next launch must still wait; None when it need not."""
        left = self._not_before.get(claim.metadata.uid, 0.0) - self._clock.monotonic()
        return left if left > 0 else None

    def refused(self, claim: NodeClaim) -> int:
        """Counts a launch that failed for good; how many of its pool did in a row before."""
        pool = pool_of(claim)
        before = self._refusals.get(pool, 0)
        self._refusals[pool] = before + 1
        return before

    def doom(self, claim: NodeClaim, failure: Failure, *, seconds: float) -> None:
        """The claim goes after so many seconds, and is not launched again until then."""
        self._doomed[claim.metadata.uid] = failure
        self.postpone(claim, seconds=seconds)

    def doomed(self, claim: NodeClaim) -> Failure | None:
        return self._doomed.get(claim.metadata.uid)

    def pool_changed(self, pool: PoolRef) -> None:
        """What made launches fail may be mended."""
        self._refusals.pop(pool, None)

    def forget(self, uid: str) -> None:
        kept: tuple[dict[str, CloudMachine] | dict[str, Backoff] | dict[str, float] | dict[str, Failure], ...]
        kept = (self._machines, self._retries, self._not_before, self._doomed)
        for memory in kept:
            memory.pop(uid, None)
