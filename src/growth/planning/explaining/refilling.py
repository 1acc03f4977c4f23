"""What static pools lack: they buy it at once, whatever pods there are."""

import dataclasses

from growth.api.karpenter import NodePool
from growth.api.pools import PoolRef
from growth.planning.disruption.static import Sold
from growth.planning.plan import PlannedClaim


@dataclasses.dataclass(frozen=True, slots=True)
class Lack:
    """So many machines are missing in the pool; `planned` is what each of them will be, None where none can be bought, and
    `why` says why.
    """

    pool: PoolRef
    number: int
    planned: PlannedClaim | None
    why: str = ""

    @property
    def hourly(self) -> int:
        """What they will cost, in billionths of the currency."""
        return self.number * self.planned.price if self.planned is not None else 0


def lack(pool: NodePool, number: int, found: Sold | str) -> Lack:
    """`found` is what the pool buys, or why it can buy nothing."""
    ref = PoolRef.karpenter(pool.metadata.name)
    return Lack(ref, number, None, found) if isinstance(found, str) else Lack(ref, number, found.plan.claims[0])
