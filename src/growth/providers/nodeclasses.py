"""What is said of a node class of any vendor. Pure."""

import dataclasses
from typing import Final, Protocol

from growth.api.meta import Condition, ObjectMeta

# Reasons of the condition ValidationSucceeded that every vendor's classes have.
USER_DATA_INVALID: Final = "UserDataInvalid"
REFUSED: Final = "Refused"
TOKEN_REFUSED: Final = "TokenRefused"  # noqa: S105 - a reason
NOT_JUDGED: Final = "NotJudged"


@dataclasses.dataclass(frozen=True, slots=True)
class Problem:
    """`reason` for programs, `message` for people: what, where, what to do."""

    reason: str
    message: str


class Status(Protocol):
    @property
    def conditions(self) -> tuple[Condition, ...]: ...


class NodeClass(Protocol):
    """What the classes of all vendors have."""

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def status(self) -> Status: ...
