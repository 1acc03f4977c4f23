"""Who was planned for which claim, where that is to be told to kube-scheduler. A record, shared by all controllers of a process."""

from collections.abc import Iterable

from growth.cluster.shapes import CachedPod


class Planned:
    """Kept from the purchase to the moment when the claim's Node opens, and no longer."""

    def __init__(self) -> None:
        self.refused = False  # the server lets us tell nobody: tight plans are of no use then
        self._pods: dict[str, tuple[CachedPod, ...]] = {}

    def keep(self, claim: str, pods: Iterable[CachedPod]) -> None:
        self._pods[claim] = tuple(pods)

    def take(self, claim: str) -> tuple[CachedPod, ...]:
        """The pods of the claim, once."""
        return self._pods.pop(claim, ())

    def forget(self, claim: str) -> None:
        self._pods.pop(claim, None)
