"""Whose machines are where tags say it, which can change hands: two leaders may write theirs one after the other.

The claim that names a machine has it, whatever its tags say. A machine that none names is of the claim whose tags it has. A
claim has one machine here: of two with its tags the one that was its own already, or the first, and the other waits until that
one is not. A machine that goes stays whose it was, and so does one whose claim is gone.
"""

import dataclasses
from collections.abc import Iterable, Mapping


@dataclasses.dataclass(frozen=True, slots=True)
class Tagged:
    """`claim` is the UID in its tags, or empty; `going`: its end is under way."""

    number: int
    claim: str
    going: bool = False


def owners(
    machines: Iterable[Tagged], *, names: Mapping[str, int | None], were: Mapping[int, str]
) -> Mapping[int, str]:
    """The claims' UIDs by the numbers of their machines.

    `names` are all claims that there are, with the number of the machine that each names; `were` is whose machines were until
    now.
    """
    there = {each.number: each for each in sorted(machines, key=lambda each: each.number)}
    found = {number: were[number] for number, each in there.items() if each.going and number in were}
    staying = {number: each for number, each in there.items() if not each.going}
    for uid, number in sorted(names.items(), key=lambda each: were.get(each[1] or 0) != each[0]):
        if number in staying and number not in found and uid not in found.values():
            found[number] = uid
    for number, each in sorted(staying.items(), key=lambda each: were.get(each[0]) != each[1].claim):
        known = were.get(number) == each.claim or (each.claim in names and names[each.claim] not in there)
        if each.claim and known and number not in found and each.claim not in found.values():
            found[number] = each.claim
    return found
