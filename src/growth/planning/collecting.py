"""What a sweep may remove: machines without a claim and claims without a machine, and when it must remove nothing.

A list that is wrong looks like a fleet of leaks. So a sweep that would take many takes none until somebody confirms
exactly that list; so does one that finds machines and no claim at all: a restored or a wrong cluster looks like this.
"""

import dataclasses
import datetime as dt
import hashlib
from collections.abc import Iterable, Mapping, Sequence

from growth.api import names
from growth.api.clouds import CloudMachine
from growth.api.conditions import is_true
from growth.api.karpenter import NodeClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Unclaimed:
    """Machines that no claim stands for.

    `orphans` may be removed; `young` are left for now; so are `disputed`, until people have resolved what is wrong around them; of
    `nameless` nobody can read whose they were, so that no look at their claims is possible: people must decide.
    """

    orphans: tuple[CloudMachine, ...] = ()
    young: tuple[CloudMachine, ...] = ()
    disputed: tuple[CloudMachine, ...] = ()
    nameless: tuple[CloudMachine, ...] = ()


def unclaimed(
    machines: Iterable[CloudMachine],
    claims: Iterable[NodeClaim],
    *,
    now: dt.datetime,
    grace: dt.timedelta,
    seen_for: Mapping[str, float],
) -> Unclaimed:
    """Machines of which no claim is the one that they were made for, by name and UID or by provider ID.

    `claims` must have been listed after `machines`: a claim is always older than its machine. `seen_for` is for how many
    seconds a machine has been known to be without a claim: its age where the cloud does not tell.
    """
    listed = list(claims)
    uids = {claim.metadata.name: claim.metadata.uid for claim in listed}
    provider_ids = {claim.status.provider_id for claim in listed if claim.status.provider_id}
    orphans: list[CloudMachine] = []
    young: list[CloudMachine] = []
    disputed: list[CloudMachine] = []
    nameless: list[CloudMachine] = []
    for machine in sorted(machines, key=lambda each: each.provider_id):
        if machine.deleting or machine.provider_id in provider_ids:
            continue
        if machine.claim and machine.claim_uid in {"", uids.get(machine.claim)} and machine.claim in uids:
            continue
        age = now - machine.created if machine.created is not None else _seconds(seen_for.get(machine.provider_id, 0.0))
        if age < grace:
            young.append(machine)
        elif machine.disputed:
            disputed.append(machine)
        elif machine.claim:
            orphans.append(machine)
        else:
            nameless.append(machine)
    return Unclaimed(tuple(orphans), tuple(young), tuple(disputed), tuple(nameless))


def without_machine(claims: Iterable[NodeClaim], machines: Iterable[CloudMachine]) -> tuple[NodeClaim, ...]:
    """Claims whose Node registered, that are not being deleted, and whose machine the cloud did not list.

    Each must be asked for. A machine that is still coming up has a time of its own, and young ones are what a cloud's lists
    know least of.
    """
    known = {machine.provider_id for machine in machines}
    return tuple(
        claim
        for claim in sorted(claims, key=lambda claim: claim.metadata.name)
        if claim.status.provider_id
        and is_true(claim.status.conditions, names.REGISTERED)
        and claim.status.provider_id not in known
        and claim.metadata.deletion_timestamp is None
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Sweep:
    """What would be removed, of how much. Machines by provider ID, claims by name and UID."""

    machines: tuple[str, ...]
    claims: tuple[str, ...]
    machines_known: int
    claims_known: int
    strange: int
    """Of the machines, those whose claims were not ended here: they are all that says which cluster this is."""

    @property
    def empty(self) -> bool:
        return not self.machines and not self.claims

    @property
    def hash(self) -> str:
        """Of exactly this list."""
        text = "\n".join((*(f"machine {each}" for each in self.machines), *(f"claim {each}" for each in self.claims)))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def why_held(self, *, few: int, share: float) -> str:
        """Why nothing of it may be removed unconfirmed; empty when it may."""
        if self.strange and not self.claims_known:
            return f"there are {self.machines_known} machines and no NodeClaim at all: is this the right cluster?"
        for what, going, known in (
            ("machines", self.machines, self.machines_known),
            ("NodeClaims", self.claims, self.claims_known),
        ):
            if len(going) > max(few, share * known):
                return f"{len(going)} of {known} {what} would be removed, more than {few} and more than {share:.0%}"
        return ""


def sweep(
    orphans: Sequence[CloudMachine], gone: Sequence[NodeClaim], *, machines: int, claims: int, strange: int
) -> Sweep:
    """`machines` and `claims` are how many there are in all; `strange` are orphans whose claims were not ended here."""
    return Sweep(
        machines=tuple(sorted(each.provider_id for each in orphans)),
        claims=tuple(sorted(f"{each.metadata.name} {each.metadata.uid}" for each in gone)),
        machines_known=machines,
        claims_known=claims,
        strange=strange,
    )


def _seconds(seconds: float) -> dt.timedelta:
    return dt.timedelta(seconds=seconds)
