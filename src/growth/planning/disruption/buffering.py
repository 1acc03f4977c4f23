"""Room for the pods that CapacityBuffers stand for. No scheduler binds them: they have what the others leave, well packed.

A move that takes it away saves nothing, because somebody buys it anew.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from growth.api.requests import requests_of
from growth.cluster.counting import Books
from growth.cluster.shapes import PodShape
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.plan import PlannedClaim
from growth.planning.solve import Options, solve
from growth.units.resources import Amounts, add, subtract

_WITHOUT_WISHES: Final = Options(packer="first-fit", respect_preferences=False)


def without_room(snapshot: Snapshot, nodes: Iterable[NodeView], pods: Sequence[Demand]) -> list[str]:
    """For which of the pods a machine would be bought, or cannot be, with these nodes there.

    What they would merely rather have does not count: for that nothing is bought where there is room.
    """
    plan = solve(dataclasses.replace(snapshot, nodes=tuple(nodes)), pods, _WITHOUT_WISHES)
    return [*(each.pod for each in plan.unplaced), *(key for claim in plan.claims for key in claim.pods)]


def holding(nodes: Iterable[NodeView], pods: Mapping[str, Sequence[PodShape]]) -> tuple[NodeView, ...]:
    """The nodes with further pods on them, by the node's name."""
    books = Books()
    return tuple(books.holding(node, pods[node.name]) if node.name in pods else node for node in nodes)


def taken_by_daemons(planned: PlannedClaim, shapes: Mapping[str, PodShape]) -> Amounts:
    """What of a machine is not for the pods that it is planned for; `shapes` are theirs, by key, as far as known."""
    pods = [requests_of(shapes[key].spec) for key in planned.pods if key in shapes]
    left = subtract(planned.requests, add({}, *pods)) if pods else planned.requests
    return {resource: amount for resource, amount in left.items() if amount > 0}
