"""Limits of pools and caps of the cluster: counted by the ledger of machines, which shares nothing with those who buy."""

from collections.abc import Iterator
from typing import Final

from growth.api.kinds import Json
from growth.sim.invariants.books import (
    CLAIMS,
    CONFIG_MAPS,
    FOLLOWED,
    GROWTH_POOLS,
    MACHINE_LABEL,
    NODES,
    POOLS,
    labels,
    version_of,
)
from growth.sim.invariants.invariant import Case, Complaint, Quiet, went_by_our_hand
from growth.sim.ledger import Caps, Ledger
from growth.sim.seams import Step

# What the ledger follows, by what a step calls it.
KINDS: Final = {
    each: (each[0], version_of(each[0]), each[1]) for each in (CLAIMS, POOLS, GROWTH_POOLS, NODES, CONFIG_MAPS)
}
assert set(KINDS) <= set(FOLLOWED)


class Limits(Quiet):
    name = "limit"
    promise = (
        "a pool never has more claims, reserved names and machines than its limit, nor the cluster than its cap;"
        " what was granted before a limit was lowered may still come"
    )
    rules: tuple[str, ...] = ("limit",)

    def __init__(self, caps: Caps) -> None:
        self._caps = caps
        self._ledger = Ledger(caps=caps, late_writes=True, minima=False)
        self._read = 0

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        which = KINDS.get(step.which)
        if which is None:
            return
        if not _is_ours(step.last, case):
            return
        change = "DELETED" if step.new is None else "ADDED" if step.old is None else "MODIFIED"
        self._ledger.see(which, change, step.last, by_others=not went_by_our_hand(step))
        yield from self._new(case)

    def state(self, case: Case) -> Iterator[Complaint]:
        """Counted anew: a ledger that is handed everything at once must come to the same numbers."""
        anew = Ledger(late_writes=True, minima=False)
        for which, name in KINDS.items():
            for body in case.books.all(which):
                if _is_ours(body, case):
                    anew.keep(name, body)
        if anew.count() != self._ledger.count():
            yield Complaint(
                f"machines, claims and Nodes are {anew.count()}, and were counted as {self._ledger.count()}"
            )

    def _new(self, case: Case) -> Iterator[Complaint]:
        del case
        complaints = self._ledger.complaints
        for each in complaints[self._read :]:
            if each.rule in self.rules:
                yield Complaint(each.said)
        self._read = len(complaints)


def _is_ours(body: Json, case: Case) -> bool:
    """Machines of another cluster in the same project are nobody's here."""
    return labels(body).get(MACHINE_LABEL, case.books.cluster) == case.books.cluster


class Money(Limits):
    """Judged where the cluster has such a cap."""

    name = "cap"
    promise = "what runs and what is under way never costs more an hour than the cap"
    rules = ("money",)

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if self._caps.max_hourly is not None:
            yield from super().step(step, case)

    def state(self, case: Case) -> Iterator[Complaint]:
        if self._caps.max_hourly is not None:
            yield from super().state(case)
