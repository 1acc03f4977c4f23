"""What a claim that replaces others says of its move, beside `growth.dev/replaces`: the annotation `growth.dev/move`.

A JSON object, written when the claim is created: `{"reason": why they go, "at": since when, "with": [every claim that is
created for it, this one among them]}`. Together with the taint on the Nodes it is all that another process needs to go on,
or to take everything back.
"""

import datetime as dt
from typing import Final

import msgspec

from growth.api import names
from growth.api.meta import ObjectMeta, Struct

# Without a time that can be read nobody knows how long the move has taken: then it has taken too long.
LONG_AGO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Intent(Struct, frozen=True):
    """`group` are the names of all claims that come."""

    reason: str = ""
    at: dt.datetime = LONG_AGO
    group: tuple[str, ...] = msgspec.field(name="with", default=())


def annotation(intent: Intent) -> dict[str, str]:
    return {names.MOVE_ANNOTATION: msgspec.json.encode(intent).decode()}


def intent_of(metadata: ObjectMeta) -> Intent | None:
    """None where the claim was bought for no move. What cannot be read began long ago, for this claim alone."""
    text = metadata.annotations.get(names.MOVE_ANNOTATION)
    if text is None:
        return None
    try:
        intent = msgspec.json.decode(text, type=Intent)
    except msgspec.MsgspecError:
        intent = Intent()
    if intent.at.tzinfo is None:
        intent = msgspec.structs.replace(intent, at=LONG_AGO)
    return intent if metadata.name in intent.group else msgspec.structs.replace(intent, group=(metadata.name,))
