"""How a pool is named where Karpenter's and ours stand side by side, and what its annotations add to it."""

import dataclasses
from typing import Final

from growth.api import names
from growth.api.karpenter import NodePool

HARD: Final = "Hard"
SOFT: Final = "Soft"


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class PoolRef:
    """A pool of either API. Two pools of one name in different groups are different pools: limits, locks, tags."""

    group: str
    name: str

    @classmethod
    def karpenter(cls, name: str) -> "PoolRef":
        return cls(names.KARPENTER, name)

    @classmethod
    def growth(cls, name: str) -> "PoolRef":
        return cls(names.GROWTH, name)

    @classmethod
    def parse(cls, text: str) -> "PoolRef":
        """The reverse of `str`."""
        group, slash, name = text.rpartition("/")
        return cls(group if slash else names.KARPENTER, name)

    def __str__(self) -> str:
        """NAME for a Karpenter pool, `growth.dev/NAME` for ours: in JSON, metrics and cloud tags."""
        return self.name if self.group == names.KARPENTER else f"{self.group}/{self.name}"


def node_limit_mode(pool: NodePool) -> str:
    """`Hard` or `Soft`. Karpenter's own definition of a NodePool drops the field, hence the annotation, which counts more.

    A word that is neither counts as `Hard`: the pool's condition tells of it.
    """
    word = pool.metadata.annotations.get(names.NODE_LIMIT_MODE_ANNOTATION, pool.spec.disruption.node_limit_mode)
    return SOFT if word == SOFT else HARD
