"""Tells people what happened, in Events beside the objects concerned, without ever getting in the way.

`Recorder.event` returns at once and never raises; `Recorder.run` writes in the background. Equal events (object, reason,
message) within a time are one Event whose `count` grows; an object that is talked about too much is cut short; a full
queue drops. What was not told is counted: `statistics()`.
"""

import asyncio
import collections
import dataclasses
import datetime as dt
import math
from collections.abc import Mapping
from typing import Any, Final

from growth.api.events import EVENT, NORMAL
from growth.api.meta import ObjectReference
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, Conflict, GateClosed, KubeError, NotFound, TooManyRequests
from growth.ports import Clock, Random
from growth.telemetry.redaction import redacted_text
from growth.units import print_time

# The API server refuses longer messages.
MESSAGE_BYTES: Final = 1024
# Events of objects without a namespace live here, as kubectl expects.
CLUSTER_NAMESPACE: Final = "default"
# The server's limit is 253; the rest is for the random part.
NAME_CHARACTERS: Final = 230


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecorderSettings:
    component: str = "growth"
    # The pod or host that reports; people ask it when two replicas disagree.
    instance: str = "growth"
    # Equal events within this time are written once; what was held back is added to the count at its end.
    repeat_seconds: float = 120.0
    # By reason, where another time is better.
    repeat_seconds_of: Mapping[str, float] = dataclasses.field(default_factory=dict)
    # A bucket for each object: so many new events at once, and one more every so often.
    burst_per_object: int = 25
    refill_seconds: float = 30.0
    queue_length: int = 1000
    # Remembered events and buckets; the oldest are forgotten first.
    memory: int = 4096
    attempts: int = 5
    retry_seconds: float = 2.0


DEFAULT_RECORDER: Final = RecorderSettings()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RecorderStatistics:
    """`created` and `counted` were written; the others were not: held back as repeats, too many, no room, failed."""

    created: int = 0
    counted: int = 0
    repeated: int = 0
    limited: int = 0
    dropped: int = 0
    failed: int = 0


@dataclasses.dataclass(slots=True)
class _Known:
    """An event that has been told: where it stands and what came since."""

    about: ObjectReference
    type: str
    reason: str
    message: str
    first: dt.datetime
    last: dt.datetime
    until: float
    name: str = ""
    told: int = 0
    count: int = 1
    queued: bool = False

    @property
    def namespace(self) -> str:
        return self.about.namespace or CLUSTER_NAMESPACE


_Key = tuple[str, str, str, str, str, str, str]


class Recorder:
    """One per process; `run` must be running for anything to be written."""

    def __init__(
        self, api: Api, *, clock: Clock, random: Random, settings: RecorderSettings = DEFAULT_RECORDER
    ) -> None:
        self._api = api
        self._clock = clock
        self._random = random
        self._settings = settings
        self._known: collections.OrderedDict[_Key, _Known] = collections.OrderedDict()
        self._buckets: collections.OrderedDict[str, tuple[float, float]] = collections.OrderedDict()
        self._queue: collections.deque[_Known] = collections.deque()
        self._soonest = math.inf  # before this nobody's time has come
        self._wake = asyncio.Event()
        self._counts: dict[str, int] = {}

    def statistics(self) -> RecorderStatistics:
        return RecorderStatistics(**self._counts)

    def event(self, about: ObjectReference, reason: str, message: str, *, type: str = NORMAL) -> None:  # noqa: A002 - the field's name
        """Tells something about an object: `reason` in CamelCase, `message` for people, at most 1024 bytes of it.

        Secrets that can be recognised are cut out, so that an error of the outside may be told as it is.
        """
        message = _shortened(redacted_text(message))
        key = (about.api_version, about.kind, about.namespace, about.name, about.uid, reason, message)
        now, wall = self._clock.monotonic(), self._clock.now()
        known = self._known.get(key)
        if known is not None:
            known.count += 1
            known.last = wall
            self._add("repeated")
            self._wake.set()
            return
        if not self._spend(f"{about.kind}/{about.namespace}/{about.name}/{about.uid}", now):
            self._add("limited")
            return
        if len(self._queue) >= self._settings.queue_length:
            self._add("dropped")
            return
        known = _Known(about, type, reason, message, wall, wall, until=now + self._repeat_seconds(reason))
        self._known[key] = known
        self._soonest = min(self._soonest, known.until)
        while len(self._known) > self._settings.memory:
            self._known.popitem(last=False)
        self._enqueue(known)

    async def run(self) -> None:
        """Writes what was told, one after the other, until cancelled."""
        while True:
            while self._queue:
                known = self._queue.popleft()
                known.queued = False
                await self._write(known)
            self._wake.clear()
            due = self._sweep()
            if self._queue:
                continue
            try:
                async with asyncio.timeout(None if due is None else max(0.0, due - self._clock.monotonic())):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _sweep(self) -> float | None:
        """Queues the counts whose time has come, forgets what was not repeated; when to look again.

        Whatever is told wakes us: all that is known is gone through only when somebody's time may have come.
        """
        now = self._clock.monotonic()
        if self._soonest <= now:
            self._soonest = math.inf
            for key, known in list(self._known.items()):
                if known.until <= now and not known.queued:
                    if known.count <= known.told:
                        del self._known[key]
                        continue
                    known.until = now + self._repeat_seconds(known.reason)
                    self._enqueue(known)
                self._soonest = min(self._soonest, known.until)
        return None if self._soonest == math.inf else self._soonest

    def _enqueue(self, known: _Known) -> None:
        known.queued = True
        self._queue.append(known)
        self._wake.set()

    async def _write(self, known: _Known) -> None:
        for attempt in range(1, self._settings.attempts + 1):
            count = known.count
            try:
                if known.told:
                    await self._bump(known, count)
                else:
                    await self._create(known, count)
                known.told = count
                return
            except GateClosed:  # not ours to write any more
                known.told = count
                break
            except AlreadyExists:  # an earlier try was written, and its answer lost: the name is its own
                known.told = count
                return
            except NotFound:
                # The server forgets Events after an hour; a namespace may be gone too, and then this fails again.
                known.told, known.name = 0, ""
                continue
            except TooManyRequests as error:
                await asyncio.sleep(error.pause(self._settings.retry_seconds * attempt))
            except KubeError as error:
                if not _worth_another(error):
                    known.told = count
                    break
                await asyncio.sleep(self._settings.retry_seconds * attempt)
        self._add("failed")

    async def _create(self, known: _Known, count: int) -> None:
        about = known.about
        known.name = known.name or f"{about.name[:NAME_CHARACTERS]}.{self._random.uuid().replace('-', '')[:16]}"
        body: dict[str, Any] = {
            "apiVersion": EVENT.api_version,
            "kind": EVENT.kind,
            "metadata": {"name": known.name, "namespace": known.namespace},
            "involvedObject": {
                name: value
                for name, value in (
                    ("apiVersion", about.api_version),
                    ("kind", about.kind),
                    ("namespace", about.namespace),
                    ("name", about.name),
                    ("uid", about.uid),
                    ("resourceVersion", about.resource_version),
                    ("fieldPath", about.field_path),
                )
                if value
            },
            "type": known.type,
            "reason": known.reason,
            "message": known.message,
            "count": count,
            "firstTimestamp": print_time(known.first),
            "lastTimestamp": print_time(known.last),
            "source": {"component": self._settings.component},
            "reportingComponent": self._settings.component,
            "reportingInstance": self._settings.instance,
        }
        await self._api.create(EVENT, body, namespace=known.namespace)
        self._add("created")

    async def _bump(self, known: _Known, count: int) -> None:
        patch = {"count": count, "lastTimestamp": print_time(known.last)}
        await self._api.patch(EVENT, known.name, patch, namespace=known.namespace)
        self._add("counted")

    def _spend(self, bucket: str, now: float) -> bool:
        """Takes one from the object's bucket, if there is one."""
        full = float(self._settings.burst_per_object)
        left, at = self._buckets.pop(bucket, (full, now))
        left = min(full, left + (now - at) / self._settings.refill_seconds)
        self._buckets[bucket] = (left - 1.0 if left >= 1.0 else left, now)
        while len(self._buckets) > self._settings.memory:
            self._buckets.popitem(last=False)
        return left >= 1.0

    def _repeat_seconds(self, reason: str) -> float:
        return self._settings.repeat_seconds_of.get(reason, self._settings.repeat_seconds)

    def _add(self, what: str) -> None:
        self._counts[what] = self._counts.get(what, 0) + 1


def _worth_another(error: KubeError) -> bool:
    """Refusals (RBAC, a namespace that is going) repeat themselves; a server in trouble recovers, and so does one that
    counts this Event and others against a quota at the same time, which is a conflict.
    """
    code = getattr(error, "code", 500)
    return code >= 500 or isinstance(error, Conflict)


def _shortened(message: str) -> str:
    """At most 1024 bytes, cut between characters, the cut shown."""
    raw = message.encode()
    if len(raw) <= MESSAGE_BYTES:
        return message
    mark = "…"
    return raw[: MESSAGE_BYTES - len(mark.encode())].decode(errors="ignore") + mark
