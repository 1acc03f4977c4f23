"""What a sweep may take, decided on plain values."""

import datetime as dt

import msgspec
import pytest

from growth.api.clouds import CloudMachine
from growth.api.karpenter import NodeClaim
from growth.planning.collecting import Sweep, sweep, unclaimed, without_machine
from tests.unit.planning.test_draining import NOW

GRACE = dt.timedelta(seconds=30)


def claim(
    name: str, *, uid: str = "", provider_id: str = "", deleting: bool = False, registered: bool = True
) -> NodeClaim:
    metadata = {"name": name, "uid": uid or f"uid-{name}"}
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-07T11:00:00Z"
    raw = {
        "metadata": metadata,
        "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []},
        "status": {
            "providerID": provider_id,
            "conditions": [{"type": "Registered", "status": "True" if registered else "Unknown"}],
        },
    }
    return msgspec.convert(raw, NodeClaim)


def machine(name: str, *, uid: str | None = None, age: float | None = 3600, deleting: bool = False) -> CloudMachine:
    return CloudMachine(
        provider_id=f"cloud://{name}",
        claim=name,
        claim_uid=f"uid-{name}" if uid is None else uid,
        created=None if age is None else NOW - dt.timedelta(seconds=age),
        deleting=deleting,
    )


def orphans(
    *machines: CloudMachine, claims: tuple[NodeClaim, ...] = (), seen: dict[str, float] | None = None
) -> list[str]:
    found = unclaimed(machines, claims, now=NOW, grace=GRACE, seen_for=seen or {})
    return [each.claim for each in found.orphans]


def test_whose_machine_it_is() -> None:
    """Name and UID, or the provider ID that the claim wrote down; a claim that is being deleted still owns its machine."""
    assert orphans(machine("a"), claims=(claim("a"),)) == []
    assert orphans(machine("a"), claims=(claim("a", deleting=True),)) == []
    assert orphans(machine("a"), claims=(claim("a", uid="another"),)) == ["a"]
    assert orphans(machine("a", uid=""), claims=(claim("a", uid="another"),)) == []
    assert orphans(machine("a"), claims=(claim("b", provider_id="cloud://a"),)) == []
    assert orphans(machine("a"), claims=(claim("b"),)) == ["a"]


def test_the_young_and_the_going_are_left() -> None:
    """Younger than the grace, of unknown age and not seen for so long, or on its way out: no leak yet."""
    assert orphans(machine("a", age=29)) == []
    assert orphans(machine("a", age=30)) == ["a"]
    assert orphans(machine("a", age=None)) == []
    assert orphans(machine("a", age=None), seen={"cloud://a": 29.0}) == []
    assert orphans(machine("a", age=None), seen={"cloud://a": 31.0}) == ["a"]
    assert orphans(machine("a", deleting=True)) == []


def test_claims_to_ask_about() -> None:
    """Their Nodes registered, nobody deletes them, and they are not in the list."""
    found = without_machine(
        (
            claim("a", provider_id="cloud://a"),
            claim("b", provider_id="cloud://b"),
            claim("c"),
            claim("d", provider_id="cloud://d", deleting=True),
            claim("e", provider_id="cloud://e", registered=False),
        ),
        (machine("a"),),
    )
    assert [each.metadata.name for each in found] == ["b"]


def of(machines: int, claims: int, *, known: int, claimed: int, strange: int | None = None) -> Sweep:
    return Sweep(
        machines=tuple(f"m{number}" for number in range(machines)),
        claims=tuple(f"c{number}" for number in range(claims)),
        machines_known=known,
        claims_known=claimed,
        strange=machines if strange is None else strange,
    )


@pytest.mark.parametrize(
    ("swept", "why"),
    [
        (of(0, 0, known=10, claimed=0), ""),
        (of(3, 0, known=5, claimed=2), ""),
        (of(4, 0, known=10, claimed=6), "4 of 10 machines would be removed, more than 3 and more than 20%"),
        (of(20, 0, known=100, claimed=80), ""),
        (of(21, 0, known=100, claimed=79), "21 of 100 machines would be removed, more than 3 and more than 20%"),
        (of(0, 4, known=0, claimed=4), "4 of 4 NodeClaims would be removed, more than 3 and more than 20%"),
        (of(0, 3, known=0, claimed=3), ""),
        (of(1, 0, known=1, claimed=0), "there are 1 machines and no NodeClaim at all: is this the right cluster?"),
        (of(1, 0, known=1, claimed=0, strange=0), ""),
        (
            of(2, 0, known=2, claimed=0, strange=1),
            "there are 2 machines and no NodeClaim at all: is this the right cluster?",
        ),
        (of(4, 0, known=4, claimed=0, strange=0), "4 of 4 machines would be removed, more than 3 and more than 20%"),
    ],
)
def test_no_sweep_takes_many(swept: Sweep, why: str) -> None:
    """More than three and more than a fifth, or machines without any claim: held back."""
    assert swept.why_held(few=3, share=0.2) == why


def test_the_hash_is_of_exactly_the_list() -> None:
    """In whatever order it was found; another machine, or a claim of the same name, is another list."""
    one = sweep((machine("a"), machine("b")), (claim("c"),), machines=2, claims=1, strange=0)
    same = sweep((machine("b"), machine("a")), (claim("c"),), machines=9, claims=9, strange=1)
    assert one.hash == same.hash
    others = (
        sweep((machine("a"),), (claim("c"),), machines=2, claims=1, strange=0),
        sweep((machine("a"), machine("b")), (), machines=2, claims=1, strange=0),
        sweep((machine("a"), machine("b")), (claim("c", uid="another"),), machines=2, claims=1, strange=0),
    )
    assert len({one.hash, *(each.hash for each in others)}) == 4
