"""What can be made to go wrong with simulated machines, on demand: the ConfigMap `growth-kwok-faults`.

data:
noCapacity: |                 # TYPE/ZONE/CAPACITY-TYPE, each a pattern; with a time it passes by itself
c-4x-*/test-zone-a/spot until 2030-01-01T00:00:00Z
neverRegister: default-*      # patterns of claim names or instance types, one a line
neverReady: ""
vanish: "* after 10m"         # gone without a word, so long after its creation (at once without a time)
stuckDelete: ""               # accepted, and never done
refuseDelete: ""              # refused
slowAnswers: 2s               # every call of the cloud takes so much longer
lostAnswers: "0.1"            # this share of calls is done, and the answer lost
unavailable: "false"          # true: every call fails
"""

import dataclasses
import datetime as dt
import fnmatch
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from growth.api.core import CONFIG_MAP
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.ports import Clock
from growth.telemetry.logs import logger
from growth.units import Duration, UnitError, parse_time

T = TypeVar("T")

_log = logger("kwok")

FAULTS_CONFIG_MAP: Final = "growth-kwok-faults"
# A change counts for every call that begins so much later; in between the last look serves all of them.
LOOK_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class NoCapacity:
    """Offerings that cannot be had, until a moment or for ever."""

    pattern: tuple[str, str, str]
    until: dt.datetime | None = None

    def covers(self, offering: tuple[str, str, str], *, now: dt.datetime) -> bool:
        if self.until is not None and now >= self.until:
            return False
        return all(fnmatch.fnmatchcase(part, wanted) for part, wanted in zip(offering, self.pattern, strict=True))


@dataclasses.dataclass(frozen=True, slots=True)
class Vanish:
    """Machines that are gone so long after their creation."""

    pattern: str
    after: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """Everything that is wrong now. Patterns are a shell's; they name claims or instance types."""

    no_capacity: tuple[NoCapacity, ...] = ()
    never_register: tuple[str, ...] = ()
    never_ready: tuple[str, ...] = ()
    vanish: tuple[Vanish, ...] = ()
    stuck_delete: tuple[str, ...] = ()
    refuse_delete: tuple[str, ...] = ()
    slow_answers: float = 0.0
    lost_answers: float = 0.0
    unavailable: bool = False

    def lacks(self, offering: tuple[str, str, str], *, now: dt.datetime) -> bool:
        """Whether there is none of this offering."""
        return any(each.covers(offering, now=now) for each in self.no_capacity)

    def vanishes(self, claim: str, instance_type: str) -> float | None:
        """How long after its creation the machine is gone; None for never."""
        return min((each.after for each in self.vanish if _names(each.pattern, claim, instance_type)), default=None)

    def registers(self, claim: str, instance_type: str) -> bool:
        return not matches(self.never_register, claim, instance_type)

    def becomes_ready(self, claim: str, instance_type: str) -> bool:
        return not matches(self.never_ready, claim, instance_type)

    def can_be_deleted(self, claim: str, instance_type: str) -> bool:
        return not matches(self.stuck_delete, claim, instance_type)

    def may_be_deleted(self, claim: str, instance_type: str) -> bool:
        return not matches(self.refuse_delete, claim, instance_type)


NONE: Final = Faults()


def matches(patterns: tuple[str, ...], claim: str, instance_type: str) -> bool:
    return any(_names(pattern, claim, instance_type) for pattern in patterns)


def _names(pattern: str, claim: str, instance_type: str) -> bool:
    return fnmatch.fnmatchcase(claim, pattern) or fnmatch.fnmatchcase(instance_type, pattern)


def parse(data: Mapping[str, str]) -> tuple[Faults, tuple[str, ...]]:
    """The faults that a ConfigMap asks for, and what in it cannot be understood; the rest of it counts all the same."""
    problems = [f"{key} is not known: use one of {', '.join(_KEYS)}" for key in sorted(data) if key not in _KEYS]

    def lines(key: str, one: Callable[[str], T]) -> tuple[T, ...]:
        found: list[T] = []
        for line in (text.strip() for text in data.get(key, "").splitlines()):
            if not line or line.startswith("#"):
                continue
            try:
                found.append(one(line))
            except (ValueError, UnitError) as error:
                problems.append(f"{key}: {line!r}: {error}")
        return tuple(found)

    faults = Faults(
        no_capacity=lines("noCapacity", _no_capacity),
        never_register=lines("neverRegister", str),
        never_ready=lines("neverReady", str),
        vanish=lines("vanish", _vanish),
        stuck_delete=lines("stuckDelete", str),
        refuse_delete=lines("refuseDelete", str),
        slow_answers=max(lines("slowAnswers", _seconds), default=0.0),
        lost_answers=max(lines("lostAnswers", _share), default=0.0),
        unavailable=any(lines("unavailable", _switch)),
    )
    return faults, tuple(problems)


_KEYS: Final = (
    *("noCapacity", "neverRegister", "neverReady", "vanish", "stuckDelete", "refuseDelete"),
    *("slowAnswers", "lostAnswers", "unavailable"),
)


def _no_capacity(line: str) -> NoCapacity:
    offering, _, until = line.partition(" until ")
    parts = offering.strip().split("/")
    if len(parts) != 3:
        raise ValueError("write TYPE/ZONE/CAPACITY-TYPE, each a pattern such as *")
    return NoCapacity((parts[0], parts[1], parts[2]), parse_time(until.strip()) if until else None)


def _vanish(line: str) -> Vanish:
    pattern, _, after = line.partition(" after ")
    return Vanish(pattern.strip(), _seconds(after.strip()) if after else 0.0)


def _seconds(text: str) -> float:
    seconds = Duration.parse(text).seconds
    if seconds < 0:
        raise ValueError("a time cannot be negative")
    return seconds


def _share(text: str) -> float:
    share = float(text)
    if not 0.0 <= share <= 1.0:
        raise ValueError("a share lies between 0 and 1")
    return share


def _switch(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError("write true or false")
    return text == "true"


class FaultBook:
    """What is wrong now, by the ConfigMap, or by what a test set."""

    def __init__(self, api: Api, *, namespace: str, clock: Clock) -> None:
        self._api = api
        self._namespace = namespace
        self._clock = clock
        self._told = NONE
        self._revision = ""
        self._looked: float | None = None
        self.fixed: Faults | None = None
        """Where set, it counts and the ConfigMap is not read."""

    async def current(self) -> Faults:
        """As of at most a second ago. Failures of the server are the caller's."""
        if self.fixed is not None:
            return self.fixed
        now = self._clock.monotonic()
        if self._looked is not None and now - self._looked < LOOK_SECONDS:
            return self._told
        try:
            item = await self._api.get(CONFIG_MAP, FAULTS_CONFIG_MAP, namespace=self._namespace)
        except NotFound:
            self._told, self._revision = NONE, ""
        else:
            if item.metadata.resource_version != self._revision:
                self._told, problems = parse(item.data)
                self._revision = item.metadata.resource_version
                for problem in problems:
                    _log.warning("a line of the faults is ignored", ConfigMap=FAULTS_CONFIG_MAP, problem=problem)
        self._looked = now
        return self._told
