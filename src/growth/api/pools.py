"""How a pool is named where Karpenter's and ours stand side by side."""

import dataclasses

from growth.api import names


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
