"""Whether machines can be made of a node class: checked, told in its conditions, read from them, and refused in clear words.

A class is usable when its condition Ready says so of its present generation. One that nobody has judged yet is judged on
the spot, so that a new class need not be waited for. A vendor adds what it checks.
"""

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

from growth.api import names
from growth.api.clouds import CloudError, NodeClassNotReady
from growth.api.conditions import FALSE, TRUE, UNKNOWN, find, set_ready
from growth.api.edits import set_condition
from growth.api.karpenter import NodeClassReference
from growth.api.kinds import Json, Kind
from growth.api.nodeclasses import HetznerUserData as UserData
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import Conflict, NotFound
from growth.kube.whole import every
from growth.ports import Clock
from growth.providers.http import CallError
from growth.providers.joining import Credentials
from growth.providers.nodeclasses import NOT_JUDGED, REFUSED, TOKEN_REFUSED, USER_DATA_INVALID, NodeClass, Problem
from growth.providers.userdata import UserDataError
from growth.telemetry.logs import logger

_log = logger("nodeclass")

C = TypeVar("C", bound=NodeClass)

# A class that was read just now need not be read again for the next of a hundred purchases.
LOOK_SECONDS: Final = 1.0
# A refusal of the vendor that no check foresaw stands in the class' conditions for so long, and is then tried again.
COMPLAINT_SECONDS: Final = 300.0
# How often a class is judged again, and how often one that is not ready.
JUDGED_SECONDS: Final = 300.0
UNREADY_SECONDS: Final = 30.0


@dataclasses.dataclass(frozen=True, slots=True)
class _Complaint:
    generation: int
    until: float
    problem: Problem


@dataclasses.dataclass(frozen=True, slots=True)
class _TokenRefused:
    until: float
    exchanges: int
    problem: Problem


class Readiness(abc.ABC, Generic[C]):
    """One per process. Raises `KubeError` and `CallError` where what it needs cannot be read.

    `exchanges` says how often people exchanged the token by now.
    """

    def __init__(
        self,
        api: Api,
        kind: Kind[C],
        *,
        vendor: str,
        credentials: Credentials,
        clock: Clock,
        exchanges: Callable[[], int],
        token_seconds: float = COMPLAINT_SECONDS,
    ) -> None:
        self._api = api
        self._kind = kind
        self._vendor = vendor
        self._credentials = credentials
        self._clock = clock
        self._exchanges = exchanges
        self._token_seconds = token_seconds
        self._read: dict[str, tuple[float, C]] = {}
        self._complaints: dict[str, _Complaint] = {}
        self._token: _TokenRefused | None = None
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[str], None]) -> None:
        """Called with the name of a class that must be judged anew; with an empty one for all of them."""
        self._listeners.append(listener)

    # Reading.

    async def classes(self) -> Sequence[C]:
        try:
            return await every(self._api, self._kind)
        except NotFound:
            return ()  # the definition is not installed: there are none

    async def found(self, uses: NodeClassReference) -> C | None:
        """The class; None where there is none, or it is another cloud's."""
        if not self._serves(uses):
            return None
        now = self._clock.monotonic()
        known = self._read.get(uses.name)
        if known is not None and now - known[0] < LOOK_SECONDS:
            return known[1]
        try:
            found = await self._api.get(self._kind, uses.name)
        except NotFound:
            self._read.pop(uses.name, None)
            return None
        self._read[uses.name] = (now, found)
        return found

    async def usable(self, uses: NodeClassReference) -> C:
        """The class, fit to make machines of. `NodeClassNotReady` says why it is not."""
        kind = self._kind.kind
        if not self._serves(uses):
            raise NodeClassNotReady(
                f"{uses.kind} of group {uses.group} is not served by the {self._vendor} provider:"
                f" use {kind} of {self._kind.group}"
            )
        found = await self.found(uses)
        if found is None:
            raise NodeClassNotReady(f"there is no {kind} {uses.name!r}")
        if found.metadata.deletion_timestamp is not None:
            raise NodeClassNotReady(f"{kind} {uses.name!r} is being deleted")
        ready = find(found.status.conditions, names.READY)
        if ready is not None and ready.observed_generation == found.metadata.generation:
            if ready.status == TRUE:
                return found
            if ready.status == FALSE:
                raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {ready.message}")
        problem = next(iter(await self.problems(found)), None)
        if problem is not None:
            raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {problem.message}")
        return found

    async def is_refused(self, node_class: C) -> bool:
        """Whether the class, as it is now, says what no machine can be made with. Then none is old beside it: a machine that
        goes for such a class has no successor. That the token is refused says nothing of the class.
        """
        judged = find(node_class.status.conditions, names.VALIDATION_SUCCEEDED)
        if judged is not None and judged.observed_generation == node_class.metadata.generation:
            return judged.status == FALSE and judged.reason != TOKEN_REFUSED
        return any(each.reason != TOKEN_REFUSED for each in await self.problems(node_class))

    def _serves(self, uses: NodeClassReference) -> bool:
        return (uses.group, uses.kind) == (self._kind.group, self._kind.kind)

    # Checking.

    async def problems(self, node_class: C) -> Sequence[Problem]:
        """Everything that keeps machines of the class from being made, the most telling first."""
        refused = self._refused_token()
        if refused is not None:
            return [refused]
        now = self._clock.monotonic()
        found = await self._checked(node_class)
        complaint = self._complaints.get(node_class.metadata.name)
        if complaint is not None and complaint.until > now and complaint.generation == node_class.metadata.generation:
            found.append(complaint.problem)
        return found

    @abc.abstractmethod
    async def _checked(self, node_class: C) -> list[Problem]:
        """What is wrong with the class by itself, or for the account."""

    async def _remark(self, node_class: C) -> str:  # noqa: ARG002 - most vendors have nothing to say
        """What people should know of a class of which machines can be made; empty where there is nothing."""
        return ""

    async def _of_user_data(self, asked: UserData | None, *, max_pods: int | None) -> list[Problem]:
        try:
            await self._credentials.check(asked, max_pods=max_pods)
        except UserDataError as error:
            return [Problem(USER_DATA_INVALID, str(error))]
        return []

    # What no check foresaw.

    def complain(self, node_class: C, message: str) -> None:
        """The vendor refused a machine of the class for what the class asks for."""
        self._complaints[node_class.metadata.name] = _Complaint(
            node_class.metadata.generation,
            self._clock.monotonic() + COMPLAINT_SECONDS,
            Problem(REFUSED, message),
        )
        self._tell(node_class.metadata.name)

    def token_refused(self, said: str) -> None:
        """No class can be used with this token."""
        known = self._refused_token() is not None
        self._token = _TokenRefused(
            self._clock.monotonic() + self._token_seconds, self._exchanges(), Problem(TOKEN_REFUSED, said)
        )
        if not known:
            self._tell("")

    def _refused_token(self) -> Problem | None:
        """As long as it is the same: that the vendor answers it says nothing, it may be one that only reads."""
        told = self._token
        if told is None or told.until <= self._clock.monotonic():
            return None
        if told.exchanges != self._exchanges():
            self._token = None
            self._ask_anew()
            return None
        return told.problem

    def _ask_anew(self) -> None:
        """The token is another: what was read of the account with the one before is not known of this one."""

    def _tell(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)

    # Telling.

    async def judge(self, known: C) -> bool:
        """Writes what `problems` finds into the class' conditions; whether it is ready.

        Where the account cannot be asked, the error goes on to the caller.
        """
        name = known.metadata.name
        try:
            problems = await self.problems(known)
            remark = "" if problems else await self._remark(known)
        except (CallError, CloudError) as error:
            await self._tell_unknown(known, str(error))
            raise
        first = problems[0] if problems else None
        message = "; ".join(each.message for each in problems)
        now = self._clock.now()

        def edit(draft: Json) -> None:
            if draft["metadata"].get("generation") != known.metadata.generation:
                raise Conflict(f"{self._kind.kind} {name} has changed")
            set_condition(
                draft,
                names.VALIDATION_SUCCEEDED,
                status=TRUE if first is None else FALSE,
                reason="" if first is None else first.reason,
                message=message,
                now=now,
            )
            set_ready(draft, (names.VALIDATION_SUCCEEDED,), now=now)
            if first is None:
                set_condition(draft, names.READY, status=TRUE, message=remark, now=now)
            else:
                set_condition(draft, names.READY, status=FALSE, reason=first.reason, message=message, now=now)

        await change(self._api, self._kind, name, edit, subresource="status")
        if first is not None:
            _log.warning("no machines can be made of a node class", **{self._kind.kind: name}, error=message)
        return first is None

    async def _tell_unknown(self, known: C, error: str) -> None:
        """Of a class that was never judged; what was said of others stands."""
        told = find(known.status.conditions, names.VALIDATION_SUCCEEDED)
        if told is not None and told.status != UNKNOWN:
            return
        now = self._clock.now()

        def edit(draft: Json) -> None:
            message = f"the account cannot be asked: {error}"
            set_condition(
                draft, names.VALIDATION_SUCCEEDED, status=UNKNOWN, reason=NOT_JUDGED, message=message, now=now
            )
            set_ready(draft, (names.VALIDATION_SUCCEEDED,), now=now)

        await change(self._api, self._kind, known.metadata.name, edit, subresource="status")
