"""Who may write: a process whose Lease is young enough, by a clock that its machine's suspension does not stop."""

import math
from collections.abc import Iterator
from typing import Final

from growth.api import names
from growth.operator.wiring import Role
from growth.sim.invariants.invariant import Case, Complaint, Quiet
from growth.sim.seams import Step

LEASES: Final = ("coordination.k8s.io", "leases")


class Led(Quiet):
    """A renewal counts from when the server performed it, later than its sender counts: what is complained of is certain."""

    name = "lease"
    promise = "no process writes whose last renewal of the Lease is older than the renew deadline, sleep counted"

    def __init__(self, deadline_seconds: float = 10.0) -> None:
        self._deadline = deadline_seconds
        self._renewed: dict[str, float] = {}  # by process, on its machine's boot clock

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        actor = step.actor
        if not math.isfinite(case.boot):
            return  # nobody knows when it left
        if actor.role is Role.ELECTOR:
            held = step.which == LEASES and step.key[1] == names.LEADER_LEASE and step.new is not None
            if held and step.last["spec"].get("holderIdentity") == actor.process:
                self._renewed[actor.process] = case.boot + (step.at - case.sent)
        elif actor.is_growth and actor.process in self._renewed:
            age = case.boot - self._renewed[actor.process]
            if age >= self._deadline:
                what = f"{step.verb} {step.which[1]} {step.key[1]}"
                yield Complaint(f"{actor.process} sent {what} {age:.1f} s after its last renewal", (step.key[1],))
