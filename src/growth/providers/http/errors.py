"""What can come of a call of a cloud's API instead of an answer.

    CallError
    ├── Refused            the cloud answered and said no: status, code, message, details
    └── Unanswered         no whole answer came: whether it took effect is unknown
        └── NotSent        … but nothing left this process, so it did not
            └── BudgetSpent    the account's calls are used up until later than the caller can wait

A provider turns them into `growth.api.clouds`; it classifies a refusal by its code. Texts never hold the token.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any


class CallError(Exception):
    """A call that did not end well, after all its attempts."""

    def __init__(self, message: str, *, attempts: int = 1) -> None:
        super().__init__(message)
        self.attempts = attempts


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What a cloud's error says, in its own words. An empty code: the body was not of the cloud's making (a proxy's)."""

    code: str
    message: str = ""
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict)


class Refused(CallError):
    """The cloud said no.

    `unsure`: an attempt of this call may have taken effect nevertheless, because an earlier one was not answered or
    because this answer is a server's failure (5xx). A refusal without a code is no word of the cloud's: a proxy's 404 does
    not mean that anything is gone.
    """

    def __init__(
        self,
        what: str,
        *,
        status: int,
        problem: Problem,
        retry_after_seconds: float | None = None,
        request_id: str = "",
        attempts: int = 1,
        unsure: bool = False,
    ) -> None:
        said = f"{problem.code}: {problem.message}" if problem.code else (problem.message or "no reason")
        super().__init__(f"{what} was answered {status}, {said}", attempts=attempts)
        self.status = status
        self.code = problem.code
        self.message = problem.message
        self.details = problem.details
        self.retry_after_seconds = retry_after_seconds
        self.request_id = request_id
        self.unsure = unsure


class Unanswered(CallError):
    """No whole answer that can be read. A write may or may not have been done."""


class NotSent(Unanswered):
    """No attempt of this call left the process: nothing was done."""


class BudgetSpent(NotSent):
    """The account has no call left until `retry_after_seconds` from now, and the caller cannot wait so long."""

    def __init__(self, message: str, *, retry_after_seconds: float, attempts: int = 1) -> None:
        super().__init__(message, attempts=attempts)
        self.retry_after_seconds = retry_after_seconds
