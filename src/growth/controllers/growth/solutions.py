"""What a plan comes to, in one word: for logs and Decisions."""

import enum

from growth.planning.plan import Plan


class Solution(enum.StrEnum):
    ALL_PLACED = "AllPlaced"
    NO_DEMANDS = "NoDemands"
    INCOMPLETE_PLACEMENT = "IncompletePlacement"


def solution_of(plan: Plan | None) -> Solution:
    """A plan for nobody has no demands; one pod without a place makes it incomplete."""
    if plan is None or not (plan.order or plan.unplaced):
        return Solution.NO_DEMANDS
    return Solution.INCOMPLETE_PLACEMENT if plan.unplaced else Solution.ALL_PLACED
