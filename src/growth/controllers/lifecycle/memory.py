"""What the lifecycle remembers of claims between two looks. All of it may be lost with the process.

Whether a launch was tried; a machine that was bought while the status that names it could not be written yet; when a
launch may be tried again; claims that are kept for a while only so that their pool does not make the next one at once;
when a claim's Node appeared, and when it was taken, while the claim does not say so yet; since when it is waited for.
"""

import datetime as dt
from typing import Any, Final

from growth.api.clouds import CloudMachine
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.pools import PoolRef
from growth.controllers.lifecycle.failures import Failure
from growth.controllers.ownership import pool_of
from growth.controllers.waits import Waits
from growth.kube.backoff import Backoff, BackoffSettings
from growth.ports import Clock, Random

LAUNCH_RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=60.0, jitter=0.2)
# A node that comes up so soon after it appeared is taken in one write. Longer it is not left: what makes it ready (a CNI's
# DaemonSet) may wait for the labels that we put on it.
APPEARING_SECONDS: Final = 2.0
# A claim that a contradiction stops is wanted as long as pods are planned for it; no plan is further from the next one.
UNWANTED_SECONDS: Final = 120.0
# A node that is usable so soon after it registered is told of in one write, registered and initialised together.
TOGETHER_SECONDS: Final = 5.0
# A reason that goes away by itself within moments is not worth a write.
STANDING_SECONDS: Final = 10.0


class Memory:
    """Claims are told apart by uid: a claim made again under its name is another one."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._tried: dict[str, None] = {}
        self._machines: dict[str, CloudMachine] = {}
        self._retries: dict[str, Backoff] = {}
        self._not_before: dict[str, float] = {}
        self._doomed: dict[str, Failure] = {}
        self._appeared: dict[str, float] = {}
        self._taken: dict[str, tuple[dt.datetime, float]] = {}
        self._written: dict[str, Json] = {}
        self._obstacles: dict[str, tuple[str, float]] = {}
        self._unwanted: dict[str, float] = {}
        self._refusals: dict[PoolRef | None, int] = {}
        self._waits = Waits(clock)

    def now(self, claim: NodeClaim, stage: str, *, began: dt.datetime | None) -> dt.datetime:
        """The time by which it is judged how long the claim has been in its stage."""
        return self._waits.now(claim.metadata.uid, stage, began=began)

    def trying(self, claim: NodeClaim) -> None:
        """A launch begins; it may yet turn out that none is wanted."""
        self._tried[claim.metadata.uid] = None

    def tried(self, claim: NodeClaim) -> bool:
        return claim.metadata.uid in self._tried

    def bought(self, claim: NodeClaim, machine: CloudMachine) -> None:
        self._machines[claim.metadata.uid] = machine
        self._refusals.pop(pool_of(claim), None)

    def machine(self, claim: NodeClaim) -> CloudMachine | None:
        return self._machines.get(claim.metadata.uid)

    def wrote(self, claim: NodeClaim, raw: Json) -> None:
        """What the server answered to the last write: where nobody else writes, the next one needs no read."""
        self._written[claim.metadata.uid] = raw

    def written(self, claim: NodeClaim) -> Json | None:
        return self._written.get(claim.metadata.uid)

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

    def try_now(self, uid: str) -> None:
        """What made the last launch fail is over."""
        self._not_before.pop(uid, None)

    def is_wanted(self, claim: NodeClaim, *, nominated: bool) -> bool:
        """Whether pods have been planned for the claim of late; `nominated` says whether they are now. Ask now and then."""
        uid, now = claim.metadata.uid, self._clock.monotonic()
        if nominated:
            self._unwanted.pop(uid, None)
            return True
        return now - self._unwanted.setdefault(uid, now) < UNWANTED_SECONDS

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

    def seconds_to_appear(self, claim: NodeClaim) -> float | None:
        """How long the claim's Node, which is seen now, may be left to come up; None when it must be taken."""
        now = self._clock.monotonic()
        left = self._appeared.setdefault(claim.metadata.uid, now) + APPEARING_SECONDS - now
        return left if left > 0 else None

    def took(self, claim: NodeClaim) -> bool:
        """The claim's Node was taken just now; whether that was the first time."""
        if claim.metadata.uid in self._taken:
            return False
        self._taken[claim.metadata.uid] = (self._clock.now(), self._clock.monotonic() + TOGETHER_SECONDS)
        return True

    def taken_at(self, claim: NodeClaim) -> dt.datetime | None:
        known = self._taken.get(claim.metadata.uid)
        return None if known is None else known[0]

    def seconds_until_told(self, claim: NodeClaim) -> float | None:
        """How long the claim need not say that it is registered; None when it must, or when it is not."""
        known = self._taken.get(claim.metadata.uid)
        left = 0.0 if known is None else known[1] - self._clock.monotonic()
        return left if left > 0 else None

    def seconds_until_standing(self, claim: NodeClaim, reason: str) -> float | None:
        """How long the reason must still stand before it is told; None when it has stood long enough."""
        known = self._obstacles.get(claim.metadata.uid)
        now = self._clock.monotonic()
        if known is None or known[0] != reason:
            known = self._obstacles[claim.metadata.uid] = (reason, now)
        left = known[1] + STANDING_SECONDS - now
        return left if left > 0 else None

    def no_obstacle(self, claim: NodeClaim) -> None:
        """Nothing new stands in the way."""
        self._obstacles.pop(claim.metadata.uid, None)

    def forget(self, uid: str) -> None:
        kept: tuple[dict[str, Any], ...]
        kept = (
            self._tried,
            self._machines,
            self._retries,
            self._not_before,
            self._doomed,
            self._appeared,
            self._taken,
            self._written,
            self._obstacles,
            self._unwanted,
        )
        for memory in kept:
            memory.pop(uid, None)
        self._waits.forget(uid)
