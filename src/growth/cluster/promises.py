"""Room on a machine that pods of other machines are to have: they run elsewhere still, and their machine is to go.

A promise holds while the pod is where it was and its machine is not on its way out: from then on the pod is demand like
any other, and finds the room by itself.
"""

from collections.abc import Mapping, Sequence

from growth.cluster.counting import Counted
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.wanting import is_done
from growth.kube.store import Store


class Promises:
    """For one process; whoever plans asks `held`."""

    def __init__(self, pods: Store[CachedPod]) -> None:
        self._pods = pods
        self._promised: dict[str, tuple[CachedPod, ...]] = {}

    def __len__(self) -> int:
        return len(self._promised)

    def promise(self, claim: str, pods: Sequence[CachedPod]) -> None:
        """The pods are to go to the claim's machine."""
        self._promised[claim] = tuple(pods)

    def withdraw(self, claim: str) -> None:
        self._promised.pop(claim, None)

    def held(self, counted: Mapping[str, Counted]) -> dict[str, tuple[PodShape, ...]]:
        """By claim, what is to be taken for used there. Promises that are over are forgotten."""
        kept = {
            claim: tuple(pod for pod in pods if self._holds(pod, counted)) for claim, pods in self._promised.items()
        }
        self._promised = {claim: pods for claim, pods in kept.items() if pods}
        return {claim: tuple(pod.shape for pod in pods) for claim, pods in self._promised.items()}

    def _holds(self, pod: CachedPod, counted: Mapping[str, Counted]) -> bool:
        now, host = self._pods.get(pod.name, pod.namespace), counted.get(pod.node_name)
        return (
            now is not None
            and now.uid == pod.uid
            and now.node_name == pod.node_name
            and now.deleting is None
            and not is_done(now)
            and host is not None
            and host.view is not None
        )
