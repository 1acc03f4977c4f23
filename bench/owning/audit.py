"""What the server's audit log says: who wrote what, when, and with which answer.

The log has every write and no read. It is the witness of all counts and times of ownership: it is written by the API
server, whatever an autoscaler believes that it did.
"""

import collections
import dataclasses
import datetime as dt
import pathlib
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

# What the log calls it → what `Split` does.
NAMES: Final = {
    "nodeclaims": "claims",
    "nodes": "nodes",
    "events": "events",
    "leases": "leases",
    "decisions": "decisions",
    "nodepools": "pools",
}


class _User(msgspec.Struct):
    username: str = ""


class _Object(msgspec.Struct, rename="camel"):
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Entry(msgspec.Struct, rename="camel"):
    stage: str
    verb: str
    user: _User
    request_received_timestamp: str
    stage_timestamp: str
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write that the server answered, at the time of its answer (seconds since 1970)."""

    at: float
    user: str
    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int

    @property
    def applied(self) -> bool:
        """Whether the server did it."""
        return 200 <= self.code < 300


def writes(log: pathlib.Path) -> Iterator[Write]:
    """The writes so far, in the order of their answers. A line that is still being written is left for the next look."""
    decoder = msgspec.json.Decoder(_Entry)
    with log.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                return
            entry = decoder.decode(line)
            if entry.stage != "ResponseComplete":
                continue
            target = entry.object_ref
            yield Write(
                at=dt.datetime.fromisoformat(entry.stage_timestamp).timestamp(),
                user=entry.user.username,
                verb=entry.verb,
                resource=target.resource,
                subresource=target.subresource,
                namespace=target.namespace,
                name=target.name,
                code=entry.response_status.code,
            )


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Applied writes by what they were about."""

    claims: int
    nodes: int
    events: int
    leases: int
    decisions: int
    pools: int
    rest: int


def split(found: Iterable[Write]) -> Split:
    """Refused writes are no writes; they count for nobody."""
    counts = collections.Counter(NAMES.get(each.resource, "rest") for each in found if each.applied)
    return Split(**{field.name: counts[field.name] for field in dataclasses.fields(Split)})
