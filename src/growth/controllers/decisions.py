"""Decisions: what passes decided and why, kept as objects that people can read afterwards.

`record` returns at once; `run` writes in the background, so that no pass waits for its own history. A Decision is
written when a pass acts, or when what it would say is another thing than the last time; never for a repetition. The
newest are kept and the oldest deleted, in observe mode too: both are all that Growth writes there.
"""

import asyncio
import collections
import contextlib
import datetime as dt
import itertools
from typing import Final

import msgspec

from growth.api.decisions import DECISION, MAX_BYTES, Decision, DecisionSpec
from growth.api.meta import ObjectMeta
from growth.controllers.environment import Environment
from growth.kube.errors import (
    AlreadyExists,
    ApiError,
    ConfigError,
    Conflict,
    GateClosed,
    KubeError,
    NotFound,
    may_pass,
)
from growth.telemetry.logs import logger

_log = logger("decisions")

ACTED: Final = "Acted"
WOULD_ACT: Final = "WouldAct"
NOTHING: Final = "Nothing"
BLOCKED: Final = "Blocked"

# What waits to be written; the oldest are dropped where the server is slower than we decide.
_QUEUE: Final = 100
# How often the list of what is there is read again: others may write and delete Decisions too.
_RELIST: Final = 100
_ATTEMPTS: Final = 5
_RETRY_SECONDS: Final = 2.0
_SUMMARY: Final = 1024
_LISTS: Final = ("kept", "unschedulable", "actions")
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


class Decisions:
    """One per process, shared by all controllers that decide."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._last: dict[str, bytes] = {}  # by controller, what was said last
        self._before: dict[str, bytes] | None = None  # and what an earlier process said last, once it is read
        self._queue: collections.deque[DecisionSpec] = collections.deque(maxlen=_QUEUE)
        self._wake = asyncio.Event()
        self._names: collections.deque[str] = collections.deque()
        self._until_relist = 0
        self._told_missing = False

    def record(self, spec: DecisionSpec) -> bool:
        """Queues the Decision; False where it says what the controller's last one said."""
        content = _content(spec)
        if spec.outcome != ACTED and self._last.get(spec.controller) == content:
            return False
        self._last[spec.controller] = content
        self._queue.append(shortened(spec))
        self._wake.set()
        return True

    async def run(self) -> None:
        """Writes until cancelled, or until the gate is closed."""
        while True:
            while self._queue:
                try:
                    await self._write(self._queue.popleft())
                except (GateClosed, ConfigError):
                    raise
                except KubeError as error:
                    self._failed(error)
                except Exception:  # noqa: BLE001 - a history with a gap is better than no autoscaler
                    _log.exception("a bug in us: a decision was not written")
            self._wake.clear()
            if not self._queue:
                await self._wake.wait()

    def _failed(self, error: KubeError) -> None:
        if not isinstance(error, NotFound):
            _log.warning("a decision was not written", error=str(error))
        elif not self._told_missing:
            self._told_missing = True
            _log.warning(
                "decisions are not kept: their definition is not installed, see `growth crds`", error=str(error)
            )

    async def _write(self, spec: DecisionSpec) -> None:
        """Tried again, under the same name, where the trouble may pass: nobody will decide the same thing once more."""
        ending = "".join(self._env.random.choice(_LETTERS) for _ in range(5))
        name = f"{spec.controller}-{spec.at:%Y%m%d-%H%M%S}-{ending}"
        for attempt in itertools.count(1):
            try:
                await self._create(name, spec)
                break
            except Conflict as error:
                trouble: KubeError = error
            except KubeError as error:
                if not may_pass(error):
                    raise
                trouble = error
            if attempt == _ATTEMPTS:
                raise trouble
            pause = _RETRY_SECONDS * attempt
            await asyncio.sleep(trouble.pause(pause) if isinstance(trouble, ApiError) else pause)
        await self._delete_oldest()

    async def _create(self, name: str, spec: DecisionSpec) -> None:
        if self._until_relist <= 0:
            await self._list()
        before = self._before.pop(spec.controller, b"") if self._before else b""
        if spec.outcome != ACTED and before == _content(spec):
            return  # an earlier process said so
        self._until_relist -= 1
        body = msgspec.to_builtins(Decision(metadata=ObjectMeta(name=name), spec=spec))
        with contextlib.suppress(AlreadyExists):  # an answer was lost and the request repeated: it is there
            await self._env.api.create(DECISION, body)
        if name not in self._names:  # read since
            self._names.append(name)

    async def _delete_oldest(self) -> None:
        """Down to as many as are kept. One that cannot be deleted stays the oldest."""
        while len(self._names) > self._env.settings.decisions_kept:
            try:
                await self._env.api.delete(DECISION, self._names[0])
            except NotFound:
                pass
            except KubeError as error:
                if isinstance(error, GateClosed | ConfigError):
                    raise
                _log.warning("an old decision was not deleted", Decision=self._names[0], error=str(error))
                return
            self._names.popleft()

    async def _list(self) -> None:
        found: list[Decision] = []
        page = ""
        while True:
            answer = await self._env.api.list(DECISION, limit=500, page=page)
            found += answer.items
            page = answer.next
            if not page:
                break
        found.sort(key=lambda each: (each.spec.at, each.metadata.name))
        self._names = collections.deque(each.metadata.name for each in found)
        self._until_relist = _RELIST
        if self._before is None:
            self._before = {each.spec.controller: _content(each.spec) for each in found}


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def _content(spec: DecisionSpec) -> bytes:
    """What it says, whenever it says it."""
    return msgspec.json.encode(msgspec.structs.replace(spec, at=_EPOCH, revision=""))


def shortened(spec: DecisionSpec) -> DecisionSpec:
    """The Decision within its size: entries are left out from the ends of the lists, and counted."""
    if len(spec.summary) > _SUMMARY:
        spec = msgspec.structs.replace(spec, summary=spec.summary[: _SUMMARY - 1] + "…")
    limit = MAX_BYTES - 1024  # what the server adds
    while len(msgspec.json.encode(spec)) > limit:
        sizes = {name: len(msgspec.json.encode(getattr(spec, name))) for name in _LISTS}
        longest = max(_LISTS, key=lambda name: sizes[name])
        entries = getattr(spec, longest)
        if not entries:
            break
        kept = entries[: len(entries) * 3 // 4]
        spec = msgspec.structs.replace(spec, **{longest: kept}, omitted=spec.omitted + len(entries) - len(kept))
    return spec
