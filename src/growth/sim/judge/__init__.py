"""The judge of plans: is every placement one that kube-scheduler would make, and does the plan keep its own promises?

Replays a plan in its recorded order on the nodes of the snapshot and the planned machines, with the slow predicates of
`growth.sim.predicates`, and then goes through the books. Of planning it reads the data types of a plan and no more, so
that a mistake there is not made here again.

What it does not judge: whether the plan is cheap, and the order of pods in the queue.
"""

from collections.abc import Sequence

from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.plan import Plan
from growth.sim.judge.books import accounts, books
from growth.sim.judge.complaint import Complaint
from growth.sim.judge.replay import replay
from growth.sim.judge.stage import Stage

__all__ = ["Complaint", "judge"]


def judge(
    snapshot: Snapshot, demands: Sequence[Demand], plan: Plan, *, strict_min_values: bool = True
) -> list[Complaint]:
    """What is wrong with the plan; empty: nothing. `strict_min_values` False lets claims have fewer values."""
    stage = Stage(snapshot, demands, placed=(key for key, _ in plan.order))
    wrong = list(accounts(stage, plan))
    if wrong:
        return wrong  # the plan contradicts itself: there is nothing to replay
    return [*books(stage, plan, strict_min_values=strict_min_values), *replay(stage, plan)]
