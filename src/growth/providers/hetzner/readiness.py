"""Node classes of Hetzner as they are used: read, checked against the account, and refused in clear words.

A class is usable when its condition Ready says so of its present generation. One that nobody has judged yet is judged on
the spot, so that a new class need not be waited for.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Final

from growth.api import names
from growth.api.clouds import NodeClassNotReady
from growth.api.conditions import FALSE, TRUE, find
from growth.api.karpenter import NodeClassReference
from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.kube.api import Api
from growth.kube.errors import NotFound
from growth.kube.whole import every
from growth.ports import Clock
from growth.providers.hetzner import classes
from growth.providers.hetzner.account import Account
from growth.providers.hetzner.classes import Problem
from growth.providers.hetzner.failures import REASONS, Meaning, in_words, meaning
from growth.providers.http import Refused
from growth.providers.joining import Credentials
from growth.providers.userdata import UserDataError

# A class that was read just now need not be read again for the next of a hundred purchases.
LOOK_SECONDS: Final = 1.0
# A refusal of the vendor that no check foresaw stands in the class' conditions for so long, and is then tried again.
COMPLAINT_SECONDS: Final = 300.0

USER_DATA_INVALID: Final = "UserDataInvalid"


@dataclasses.dataclass(frozen=True, slots=True)
class _Complaint:
    generation: int
    until: float
    problem: Problem


class Readiness:
    """One per process. Raises `KubeError` and `CallError` where what it needs cannot be read."""

    def __init__(self, api: Api, account: Account, credentials: Credentials, *, clock: Clock) -> None:
        self._api = api
        self._account = account
        self._credentials = credentials
        self._clock = clock
        self._read: dict[str, tuple[float, HetznerNodeClass]] = {}
        self._complaints: dict[str, _Complaint] = {}
        self._token: tuple[float, Problem] | None = None
        self._listeners: list[Callable[[str], None]] = []

    def listen(self, listener: Callable[[str], None]) -> None:
        """Called with the name of a class that must be judged anew; with an empty one for all of them."""
        self._listeners.append(listener)

    async def classes(self) -> Sequence[HetznerNodeClass]:
        try:
            return await every(self._api, HETZNER_NODE_CLASS)
        except NotFound:
            return ()  # the definition is not installed: there are none

    async def found(self, uses: NodeClassReference) -> HetznerNodeClass | None:
        """The class; None where there is none, or it is another cloud's."""
        if (uses.group, uses.kind) != (HETZNER_NODE_CLASS.group, HETZNER_NODE_CLASS.kind):
            return None
        now = self._clock.monotonic()
        known = self._read.get(uses.name)
        if known is not None and now - known[0] < LOOK_SECONDS:
            return known[1]
        try:
            found = await self._api.get(HETZNER_NODE_CLASS, uses.name)
        except NotFound:
            self._read.pop(uses.name, None)
            return None
        self._read[uses.name] = (now, found)
        return found

    async def usable(self, uses: NodeClassReference) -> HetznerNodeClass:
        """The class, fit to make machines of. `NodeClassNotReady` says why it is not."""
        kind = HETZNER_NODE_CLASS.kind
        if (uses.group, uses.kind) != (HETZNER_NODE_CLASS.group, kind):
            raise NodeClassNotReady(
                f"{uses.kind} of group {uses.group} is not served by the Hetzner provider:"
                f" use {kind} of {HETZNER_NODE_CLASS.group}"
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
                checked = find(found.status.conditions, names.VALIDATION_SUCCEEDED)
                told = checked.message if checked is not None and checked.message else ready.message
                raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {told}")
        problem = next(iter(await self.problems(found)), None)
        if problem is not None:
            raise NodeClassNotReady(f"{kind} {uses.name!r} is not ready: {problem.message}")
        return found

    async def problems(self, node_class: HetznerNodeClass) -> Sequence[Problem]:
        """Everything that keeps machines of the class from being made, the most telling first."""
        now = self._clock.monotonic()
        if self._token is not None and self._token[0] > now:
            return [self._token[1]]
        found = list(classes.problems(node_class.spec))
        if not found:
            found += await self._lacking(node_class)
        try:
            await self._credentials.check(node_class.spec.user_data, max_pods=node_class.spec.max_pods)
        except UserDataError as error:
            found.append(Problem(USER_DATA_INVALID, str(error)))
        complaint = self._complaints.get(node_class.metadata.name)
        if complaint is not None and complaint.until > now and complaint.generation == node_class.metadata.generation:
            found.append(complaint.problem)
        return found

    async def _lacking(self, node_class: HetznerNodeClass) -> Sequence[Problem]:
        """What the account lacks of what the class names. A refusal of the question itself is an answer too."""
        try:
            return await self._account.problems(node_class.spec, ())
        except Refused as error:
            said = in_words(error.code, error.message)
            match meaning(error.code, error.message):
                case Meaning.CONFIG as found:
                    return [Problem(REASONS[found], f"Hetzner does not understand what the class names: {said}")]
                case Meaning.FATAL as found:
                    return [Problem(REASONS[found], said)]
                case _:
                    raise

    def complain(self, node_class: HetznerNodeClass, said: str) -> None:
        """The vendor refused a machine of the class for what the class asks for."""
        self._complaints[node_class.metadata.name] = _Complaint(
            node_class.metadata.generation,
            self._clock.monotonic() + COMPLAINT_SECONDS,
            Problem(REASONS[Meaning.CONFIG], f"Hetzner refused a machine of this class: {said}"),
        )
        self._tell(node_class.metadata.name)

    def token_refused(self, said: str) -> None:
        """No class can be used with this token."""
        now = self._clock.monotonic()
        known = self._token is not None and self._token[0] > now
        self._token = (now + COMPLAINT_SECONDS, Problem(REASONS[Meaning.FATAL], said))
        if not known:
            self._tell("")

    def _tell(self, name: str) -> None:
        for listener in self._listeners:
            listener(name)
