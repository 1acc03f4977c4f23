"""Which pods have a machine coming: so that the next plan keeps their room and buys nothing for them again.

A pod keeps its place until it is bound, changes or goes, until the claim goes, or until the machine is ready and
kube-scheduler gave the room to others or left it for a while. Only this process knows of it: after a restart the pods
are planned for again, and find the room of the claims that are in flight.
"""

import dataclasses
from collections.abc import Collection, Mapping, Set

from growth.api.requests import requests_of
from growth.cluster.assemble import Picture
from growth.cluster.counting import Counted
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import Demand
from growth.cluster.wanting import is_done, key_of
from growth.kube.store import Store
from growth.ports import Clock
from growth.units.resources import fits, subtract


@dataclasses.dataclass(frozen=True, slots=True)
class Hold:
    """`pod` None is a pod of a buffer, which exists nowhere."""

    claim: str
    shape: PodShape
    pod: CachedPod | None


@dataclasses.dataclass(frozen=True, slots=True)
class Sifted:
    """The holds that stand: pods by key, shapes by claim. `released` lost theirs; `settling` waits for the scheduler."""

    keys: Set[str]
    shapes: Mapping[str, tuple[PodShape, ...]]
    released: int
    settling: bool


class Holds:
    def __init__(self, pods: Store[CachedPod], clock: Clock, *, patience: float) -> None:
        self._pods = pods
        self._clock = clock
        self._patience = patience
        self._holds: dict[str, Hold] = {}
        self._ready: dict[str, float] = {}  # since when a claim's machine is ready
        self._expected: dict[str, tuple[CachedPod, ...]] = {}

    def __len__(self) -> int:
        return len(self._holds)

    def hold(self, pod: CachedPod, claim: str) -> None:
        self._holds[key_of(pod)] = Hold(claim, pod.shape, pod)

    def hold_virtual(self, demand: Demand, claim: str) -> None:
        self._holds[demand.key] = Hold(claim, demand.shape, None)

    def expect(self, rooms: Mapping[str, tuple[CachedPod, ...]]) -> None:
        """Which pods have room on nodes that exist, by the last plan."""
        self._expected = dict(rooms)

    def expecting(self) -> tuple[str, ...]:
        """Those nodes, as long as one of the pods waits: kube-scheduler may want another machine to be up first."""
        self._expected = {node: pods for node, pods in self._expected.items() if any(map(self._waits, pods))}
        return tuple(self._expected)

    def sift(self, picture: Picture, virtual: Collection[str]) -> Sifted:
        """Drops what is over. `virtual` are the keys of the buffers' pods that are wanted now."""
        now = self._clock.monotonic()
        counted = {
            each.machine.claim.metadata.name: each
            for each in picture.counted.values()
            if each.machine.claim is not None
        }
        room: dict[str, dict[str, int]] = {}
        kept: dict[str, Hold] = {}
        released = 0
        settling = False
        for key, hold in self._holds.items():
            if not (key in virtual if hold.pod is None else self._waits(hold.pod)):
                continue
            found = counted.get(hold.claim)
            ready = found is not None and found.machine.initialized
            if found is None or found.view is None or (ready and not self._settles(hold, found, room, now)):
                released += 1
                continue
            settling = settling or ready
            kept[key] = hold
        self._holds = kept
        self._ready = {claim: at for claim, at in self._ready.items() if claim in counted}
        shapes: dict[str, list[PodShape]] = {}
        for hold in kept.values():
            shapes.setdefault(hold.claim, []).append(hold.shape)
        return Sifted(frozenset(kept), {claim: tuple(each) for claim, each in shapes.items()}, released, settling)

    def _waits(self, pod: CachedPod) -> bool:
        """Whether it is the pod that was planned for, still where it was."""
        now = self._pods.get(pod.name, pod.namespace)
        return (
            now is not None
            and now.uid == pod.uid
            and now.node_name == pod.node_name
            and now.shape is pod.shape
            and now.deleting is None
            and not is_done(now)
        )

    def _settles(self, hold: Hold, found: Counted, room: dict[str, dict[str, int]], now: float) -> bool:
        """Whether there is room for the pod on the machine that is ready, and it has not been left there for long."""
        if hold.pod is None or now - self._ready.setdefault(hold.claim, now) > self._patience:
            return False  # nobody binds the pods of buffers: from now on they find room as everything else does
        assert found.view is not None
        left = room.setdefault(hold.claim, subtract(found.view.allocatable, found.view.requested))
        needs = requests_of(hold.shape.spec)
        if not fits(needs, left):
            return False
        room[hold.claim] = subtract(left, needs)
        return True
