"""What the promises share: when a change is a decision of Growth, and what its sender can have known."""

from typing import Final

from growth.api.kinds import Json
from growth.sim.invariants.books import CLAIMS, DISRUPTED, REMOVALS, deleting, has_condition, tainted
from growth.sim.invariants.invariant import Case
from growth.sim.invariants.sizes import of_age, surplus
from growth.sim.seams import Step

# Why a NodeRemovalRequest is made of a machine that is well, and not one too many.
CHOSEN: Final = frozenset({"Empty", "Underutilized", "Drifted"})
# A write that was on its way for longer than this was decided in another world.
LATE_SECONDS: Final = 3.0
# So long the news of what others did may take to reach a decision: watches are late, and a removal takes seconds.
NEWS_SECONDS: Final = 30.0


def begins_to_go(step: Step) -> bool:
    """Whether the change is the request that the object go."""
    return (
        step.verb == "delete"
        and step.direct
        and (step.new is None or deleting(step.new))
        and (step.old is None or not deleting(step.old))
    )


def voluntary(step: Step, case: Case) -> Json | None:
    """The Node of a claim that Growth asks to go although all is well with claim, machine and Node; None otherwise.

    Nor is it well with a claim that is one too many in its pool, or that has reached its age: nobody chose to end it. In a
    growth pool the claim goes last: what asks it to go is the NodeRemovalRequest of its name.
    """
    if not step.actor.is_growth:
        return None
    if step.which == CLAIMS and begins_to_go(step):
        claim = step.last
    elif step.which == REMOVALS and step.verb == "create" and step.last["spec"]["reason"] in CHOSEN:
        found = case.books.find(CLAIMS, step.key[1])
        if found is None:
            return None
        claim = found
    else:
        return None
    machine = case.books.machine_of(claim)
    if not has_condition(claim, "Initialized") or machine is None or machine["data"].get("state") == "deleting":
        return None
    nodes = case.books.nodes_of(claim)
    if len(nodes) != 1 or deleting(nodes[0]) or not has_condition(nodes[0], "Ready"):
        return None
    if not tainted(nodes[0], DISRUPTED) and (surplus(claim, case) or of_age(claim, step.at)):
        return None
    return nodes[0]
