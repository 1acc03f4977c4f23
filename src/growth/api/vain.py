"""Two annotations about machines that were bought in vain.

`growth.dev/bought-for` on a claim: for which sorts of pods it was bought, most pods first, as `sort:rounds:pods` with commas
between. `rounds` is how many rounds of machines had been in vain for the sort before.

`growth.dev/in-vain` on a pool: a JSON object, sort → what is known of the last machine that came in vain for it.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from growth.api import names
from growth.api.meta import ObjectMeta, Struct

# The sort of machines that no pod asks for: replicas of static pools, and what growth pools keep without load.
STANDING: Final = "standing"
# A claim stays small: a machine for more sorts than that counts for those with the most pods.
MOST_SORTS: Final = 30
# A pool's annotation stays small: so many sorts, those that were tried last.
MOST_ENTRIES: Final = 50
MOST_CHARACTERS: Final = 400
_LONG_AGO: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class BoughtFor(Struct, frozen=True):
    """So many pods of one sort, after so many rounds in vain."""

    sort: str
    rounds: int = 0
    pods: int = 1


class InVain(Struct, frozen=True):
    """So many rounds of machines were in vain for one sort of pods; before `until` no other is bought.

    `claim` and `node` came last, `why` says what keeps the pods off. `basis` stands for the pool, its class and what was
    sold: when they change, one is bought before that.
    """

    rounds: int
    why: str = ""
    claim: str = ""
    node: str = ""
    basis: str = ""
    at: dt.datetime = _LONG_AGO
    until: dt.datetime = _LONG_AGO


def bought_for(metadata: ObjectMeta) -> tuple[BoughtFor, ...]:
    """What a claim or NodeRequest says; nothing of what cannot be read."""
    found = []
    for part in metadata.annotations.get(names.BOUGHT_FOR_ANNOTATION, "").split(","):
        sort, _, counts = part.partition(":")
        rounds, _, pods = counts.partition(":")
        if sort and rounds.isdecimal() and pods.isdecimal():
            found.append(BoughtFor(sort=sort, rounds=int(rounds), pods=int(pods)))
    return tuple(found)


def annotation(bought: Iterable[BoughtFor]) -> dict[str, str]:
    """The claim's annotation; none where it was bought for no pods."""
    most = sorted(bought, key=lambda each: (-each.pods, each.sort))[:MOST_SORTS]
    text = ",".join(f"{each.sort}:{each.rounds}:{each.pods}" for each in most)
    return {names.BOUGHT_FOR_ANNOTATION: text} if text else {}


def parse(text: str) -> dict[str, InVain]:
    """A pool's entries by sort. What cannot be read holds nothing back: at worst two rounds are bought again."""
    if not text:
        return {}
    try:
        found = msgspec.json.decode(text, type=dict[str, InVain])
    except msgspec.MsgspecError:
        return {}
    return {sort: each for sort, each in found.items() if each.at.tzinfo is not None and each.until.tzinfo is not None}


def printed(entries: Mapping[str, InVain]) -> str | None:
    """The annotation's text; None, which removes it, for nothing."""
    newest = sorted(entries, key=lambda sort: (entries[sort].at, sort), reverse=True)[:MOST_ENTRIES]
    return msgspec.json.encode({sort: entries[sort] for sort in newest}, order="sorted").decode() if newest else None
