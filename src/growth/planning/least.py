"""What the whole cluster could cost at least: a bound for all of its pods, as if every machine of ours were bought anew.

The bound is `planning.bound`'s: no set of machines that these pools can buy holds these pods for less. Pods that no pool
could buy a machine for are left out, which can only lower it. Nodes that are nobody's keep their pods and offer their room.
"""

import dataclasses
from collections.abc import Sequence

from growth.cluster.snapshot import Demand, Snapshot
from growth.planning.cost import certificate
from growth.planning.existing import Existing
from growth.planning.placing import Placing
from growth.planning.solve import Options, Pass


def least_hourly(snapshot: Snapshot, pods: Sequence[Demand]) -> int | None:
    """Billionths an hour; None where the solver did not finish.

    `pods` are all that our machines are there for: those that wait, and those on machines of ours but for DaemonSets'.
    """
    if not pods or not snapshot.pools:
        return 0
    others = tuple(node for node in snapshot.nodes if node.pool is None)
    wanted = Pass(dataclasses.replace(snapshot, nodes=others), pods, Options(packer="cost"))
    context = wanted.compiled(Existing)
    asking = wanted.packer(context, Placing, wanted.ledgers())
    counted = {each: len(each.pods) for each in context.classes if each.refusal is None and asking.farthest(each)[1]}
    least, _ = certificate(context.existing, asking, counted, node_cost=0)
    return least
