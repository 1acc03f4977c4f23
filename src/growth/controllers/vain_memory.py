"""What one process knows of machines that were bought in vain, beyond the objects. A record, shared by all controllers of a process."""

import dataclasses

from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodePool
from growth.api.pools import PoolRef
from growth.cluster.machines import Machine
from growth.cluster.sorts import Sorts


@dataclasses.dataclass(slots=True)
class VainMemory:
    """All of it may be lost.

    `up` is since when a claim's Node can take pods (monotonic), by the claim's UID; `served` the sorts whose pods ran there.
    `ended` are machines that went lately, and when they were seen to go. `written` are pools as they were last written, which
    the watch may not show yet. `judged` are Nodes that were compared with their plan, by (UID, revision, sort).
    """

    sorts: Sorts = dataclasses.field(default_factory=Sorts)
    up: dict[str, float] = dataclasses.field(default_factory=dict)
    served: dict[tuple[str, str], None] = dataclasses.field(default_factory=dict)
    ended: dict[str, tuple[Machine, float]] = dataclasses.field(default_factory=dict)
    written: dict[PoolRef, NodePool | GrowthPool] = dataclasses.field(default_factory=dict)
    judged: dict[tuple[str, str, str], str] = dataclasses.field(default_factory=dict)
