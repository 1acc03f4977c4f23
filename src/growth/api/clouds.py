"""Machines as a cloud knows them, and everything that a cloud can answer instead of one.

    CloudError                 what a cloud call may raise; anything else is a bug
    ├── MachineNotFound        there is no such machine: it is gone, or never was
    ├── InsufficientCapacity   none of the claim's offerings can be had now; for a while nobody asks for them
    ├── NodeClassNotReady      the claim's node class is missing or not ready
    ├── QuotaExceeded          the account may hold no more; retrying soon does not help
    ├── CreateError            anything else that kept a machine from being made; `retryable` says whether to try again
    ├── InvariantViolation     two truths that exclude each other (two machines of one claim, …): touch nothing, tell people
    └── CloudUnavailable       no usable answer came: what the cloud holds is unknown, which is not nothing

Messages are for people, and never hold a secret.
"""

import dataclasses
import datetime as dt
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from growth.units.resources import Amounts

IsOver: TypeAlias = Callable[[], Awaitable[bool]]


class CloudError(Exception):
    """A cloud did not do what it was asked."""


class MachineNotFound(CloudError):
    """The machine is gone, or never was. From `delete`: it is gone for good."""


class InsufficientCapacity(CloudError):
    """None of the offerings that the claim allows can be had now. The claim goes, and its pods are planned again."""


class NodeClassNotReady(CloudError):
    """The node class of the claim is missing or not ready. The claim goes."""


class QuotaExceeded(CloudError):
    """The account may hold no more machines of that kind."""


class CreateError(CloudError):
    """The machine was not made. `reason` is one CamelCase word for the condition.

    `seconds`: the next attempt comes after so long and goes on where this one ended; 0: later and later.
    """

    def __init__(
        self, message: str, *, reason: str = "LaunchFailed", retryable: bool = True, seconds: float = 0.0
    ) -> None:
        super().__init__(message)
        self.reason = reason
        self.retryable = retryable
        self.seconds = seconds


class InvariantViolation(CloudError):
    """What the cloud holds contradicts itself or the claim: buy nothing and delete nothing for this claim.

    `is_over` asks the cloud whether people have resolved it meanwhile; None where nobody can be asked.
    """

    is_over: "IsOver | None" = None


class CloudUnavailable(CloudError):
    """No usable answer: timeout, 5xx, 429, a list that broke off."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CloudMachine:
    """One machine that the account holds for this cluster.

    `claim` and `claim_uid` are the claim that it was made for, as its name or tags say; empty where they are unreadable.
    `labels` are those that the Node will have because of what the machine is (type, zone, architecture, …). `created` is
    None where the cloud does not say. `deleting` is a machine that the cloud is taking down already, `stopped` one that is there
    and off. `disputed` says why nobody collects it although it may have no claim: what the cloud holds around it contradicts
    itself. Else it is empty.
    """

    provider_id: str
    claim: str
    claim_uid: str = ""
    instance_type: str = ""
    zone: str = ""
    capacity_type: str = ""
    image_id: str = ""
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    capacity: Amounts = dataclasses.field(default_factory=dict)
    allocatable: Amounts = dataclasses.field(default_factory=dict)
    created: dt.datetime | None = None
    deleting: bool = False
    disputed: str = ""
    stopped: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class RepairPolicy:
    """A Node whose condition has had this status for `toleration` is not going to recover."""

    condition: str
    status: str
    toleration: dt.timedelta
