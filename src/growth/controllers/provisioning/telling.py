"""Events on pods: where they will go, or why they cannot. Modest: a burst of thousands of pods is not told one by one."""

import dataclasses
from collections.abc import Sequence
from typing import Final

from growth.api import names
from growth.api.events import NORMAL, WARNING
from growth.api.meta import ObjectReference
from growth.cluster.shapes import CachedPod
from growth.controllers.provisioning.story import failure
from growth.kube.events import Recorder
from growth.planning.plan import Filter, Reason
from growth.ports import Clock

# As Karpenter's: so many nominations are told in a second, with a burst of twice as many.
NOMINATIONS_PER_SECOND: Final = 5.0
NOMINATIONS_AT_ONCE: Final = 10.0
# Failures are worth more: people look for them.
FAILURES_PER_SECOND: Final = 10.0
FAILURES_AT_ONCE: Final = 100.0
# What is told of a pod is told again after this long, as Karpenter does; of a place only where it is another one.
NOMINATION_SECONDS: Final = 120.0
FAILURE_SECONDS: Final = 300.0
# A place that was not planned for so long is forgotten. A drain that waits for a budget is planned for every minute.
REMEMBERED_SECONDS: Final = 600.0


class _Bucket:
    """So many a second, and at most so many at once."""

    def __init__(self, clock: Clock, *, rate: float, burst: float) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._left = burst
        self._at = clock.monotonic()

    def take(self) -> bool:
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class _Placed:
    """Where a pod was told to go and when, and when that was last planned."""

    place: str
    told: float
    planned: float


class Teller:
    """Tells through the recorder, which never blocks."""

    def __init__(self, recorder: Recorder, clock: Clock) -> None:
        self._recorder = recorder
        self._clock = clock
        self._nominations = _Bucket(clock, rate=NOMINATIONS_PER_SECOND, burst=NOMINATIONS_AT_ONCE)
        self._failures = _Bucket(clock, rate=FAILURES_PER_SECOND, burst=FAILURES_AT_ONCE)
        self._failed: dict[
            tuple[str, str], float
        ] = {}  # when it was told, by the pod's uid and what came in vain for it
        self._placed: dict[str, _Placed] = {}

    def nominated(self, pod: CachedPod, *, claim: str = "", node: str = "") -> None:
        """The pod has a place on this claim's machine or this node."""
        now = self._clock.monotonic()
        places = [f"nodeclaim/{claim}"] if claim else []
        places += [f"node/{node}"] if node else []
        place = ", ".join(places)
        known = self._placed.get(pod.uid)
        if known is not None and now - known.planned < REMEMBERED_SECONDS and known.place == place:
            self._placed[pod.uid] = dataclasses.replace(known, planned=now)
            return
        if (known is not None and now - known.told < NOMINATION_SECONDS) or not self._nominations.take():
            return
        self._placed = {uid: each for uid, each in self._placed.items() if now - each.planned < REMEMBERED_SECONDS}
        self._placed[pod.uid] = _Placed(place, told=now, planned=now)
        self._recorder.event(_about(pod), names.NOMINATED, f"Room is there or on its way on {place}", type=NORMAL)

    def failed(self, pod: CachedPod, reasons: Sequence[Reason], *, instead: tuple[str, str] | None = None) -> None:
        """The pod has no place; told once in a while, and when another machine came in vain for it. `instead` is another reason
        and message for it.
        """
        now = self._clock.monotonic()
        key = pod.uid, next((each.message for each in reasons if each.filter is Filter.IN_VAIN), "")
        if now - self._failed.get(key, -FAILURE_SECONDS) < FAILURE_SECONDS or not self._failures.take():
            return
        self._failed = {each: at for each, at in self._failed.items() if now - at < FAILURE_SECONDS}
        self._failed[key] = now
        reason, message = instead or (names.FAILED_SCHEDULING, failure(reasons))
        self._recorder.event(_about(pod), reason, message, type=WARNING)


def _about(pod: CachedPod) -> ObjectReference:
    return ObjectReference(api_version="v1", kind="Pod", namespace=pod.namespace, name=pod.name, uid=pod.uid)
