"""What a launch that failed means for its claim. No I/O.

| error                | Launched               | then                                                        |
|----------------------|------------------------|-------------------------------------------------------------|
| InsufficientCapacity | -                      | the claim goes at once; its offerings are left out of plans |
|                      | False                  | as below, where it allows nothing that is known to be sold  |
| NodeClassNotReady    | False                  | the claim goes; the more in a row in a pool, the later      |
| CreateError, final   | False, its reason      | the claim goes; the more in a row in a pool, the later      |
| CreateError          | Unknown, its reason    | tried again, later and later, until the launch TTL; at      |
|                      |                        | once where the next attempt goes on with other offerings    |
| QuotaExceeded        | Unknown, QuotaExceeded | tried again every minute until the launch TTL               |
| InvariantViolation   | False                  | tried again every five minutes: people must look            |
| anything else        | Unknown, LaunchFailed  | tried again, later and later, until the launch TTL          |
"""

import dataclasses
import enum
import re
from typing import Final

from growth.api import names
from growth.api.clouds import (
    CloudError,
    CreateError,
    InsufficientCapacity,
    InvariantViolation,
    NodeClassNotReady,
    QuotaExceeded,
)
from growth.api.conditions import FALSE, UNKNOWN
from growth.telemetry.redaction import redacted_text

# Conditions and events are read by people, and a claim stays small.
MESSAGE_CHARACTERS: Final = 300
QUOTA_SECONDS: Final = 60.0
INVARIANT_SECONDS: Final = 300.0
# Claims of a pool that fail for good would otherwise be made, refused and deleted as fast as plans are made.
FIRST_DELAY_SECONDS: Final = 5.0
LONGEST_DELAY_SECONDS: Final = 300.0

_REASON: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_]*[A-Za-z0-9])?", re.ASCII)


class Then(enum.Enum):
    END = "the claim goes now, if its offerings can be left out of plans"
    END_LATER = "the claim goes, after a while if the pool's last claim went so too"
    RETRY = "try again, later and later, or after `seconds` where that is known"
    RETRY_SLOWLY = "try again after `seconds`"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """`status` is that of Launched, while the claim stays. `word` is the metric's, for claims that go."""

    then: Then
    reason: str
    message: str
    status: str
    word: str = ""
    seconds: float = 0.0


def failure_of(error: CloudError) -> Failure:
    message = shortened(redacted_text(str(error)) or type(error).__name__)
    match error:
        case InsufficientCapacity():
            reason = names.INSUFFICIENT_CAPACITY_ERROR
            return Failure(then=Then.END, reason=reason, message=message, status=FALSE, word="insufficient_capacity")
        case NodeClassNotReady():
            reason = names.NODE_CLASS_NOT_READY
            return Failure(
                then=Then.END_LATER, reason=reason, message=message, status=FALSE, word="nodeclass_not_ready"
            )
        case InvariantViolation():
            return Failure(
                then=Then.RETRY_SLOWLY,
                reason=names.INVARIANT_VIOLATION,
                message=message,
                status=FALSE,
                seconds=INVARIANT_SECONDS,
            )
        case QuotaExceeded():
            return Failure(
                then=Then.RETRY_SLOWLY,
                reason=names.QUOTA_EXCEEDED,
                message=message,
                status=UNKNOWN,
                seconds=QUOTA_SECONDS,
            )
        case CreateError(reason=reason, retryable=retryable, seconds=seconds):
            reason = reason if _REASON.fullmatch(reason) else names.LAUNCH_FAILED
            if retryable:
                return Failure(then=Then.RETRY, reason=reason, message=message, status=UNKNOWN, seconds=seconds)
            return Failure(then=Then.END_LATER, reason=reason, message=message, status=FALSE, word="launch_failed")
        case _:
            return Failure(then=Then.RETRY, reason=names.LAUNCH_FAILED, message=message, status=UNKNOWN)


def delay_before_end(before: int) -> float:
    """How long a claim that failed for good is kept, after `before` others of its pool in a row that did."""
    return 0.0 if not before else min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2.0 ** min(before - 1, 16))


def shortened(message: str) -> str:
    return message if len(message) <= MESSAGE_CHARACTERS else message[: MESSAGE_CHARACTERS - 1] + "…"
