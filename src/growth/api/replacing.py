"""What a claim says of the machines that it takes the place of: two annotations, written when it is created.

`growth.dev/replaces` names the claims that go once it is up, with commas between them. `growth.dev/move` is a JSON object:
`{"reason": why they go, "at": since when, "with": [all claims that are created for it, this one among them]}`. Together
with the taint on the Nodes they are all that another process needs to go on, or to take everything back.
"""

import datetime as dt
from typing import Final

import msgspec

from growth.api import names
from growth.api.meta import ObjectMeta, Struct

# Without an «at» that can be read nobody knows how long it has taken: then it has taken too long.
LONG_AGO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Replacing(Struct, frozen=True):
    """`claims` are those that go, `group` those that come."""

    claims: tuple[str, ...]
    group: tuple[str, ...]
    reason: str
    at: dt.datetime


class _Move(Struct, frozen=True):
    reason: str = ""
    at: dt.datetime | None = None
    with_: tuple[str, ...] = msgspec.field(name="with", default=())


def annotations(replacing: Replacing) -> dict[str, str]:
    """The two annotations."""
    move = _Move(reason=replacing.reason, at=replacing.at, with_=replacing.group)
    return {
        names.REPLACES_ANNOTATION: ",".join(replacing.claims),
        names.MOVE_ANNOTATION: msgspec.json.encode(move).decode(),
    }


def replaced_by(metadata: ObjectMeta) -> tuple[str, ...]:
    """The names of the claims whose place this one takes; none where it takes nobody's."""
    text = metadata.annotations.get(names.REPLACES_ANNOTATION, "")
    return tuple(name for name in text.split(",") if name)


def parse(metadata: ObjectMeta) -> Replacing | None:
    """None where the claim was not bought for a move. What cannot be read began long ago, with nobody else."""
    claims, text = replaced_by(metadata), metadata.annotations.get(names.MOVE_ANNOTATION)
    if not claims or text is None:
        return None
    try:
        move = msgspec.json.decode(text, type=_Move)
    except msgspec.MsgspecError:
        move = _Move()
    at = move.at if move.at is not None and move.at.tzinfo is not None else LONG_AGO
    return Replacing(claims=claims, group=move.with_ or (metadata.name,), reason=move.reason, at=at)
