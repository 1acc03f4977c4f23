"""Nodes that come otherwise than planned: kubelets, agents and controller managers label, taint and size them in their own way.

What a kubelet says is in the Node from its first moment; what a controller manager writes comes when the Node has registered,
since Growth writes the claim's labels then. Each is put right a while later, or when the disturbances end.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Final

from growth.api import names
from growth.api.edits import add_taint, remove_taint
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import KubeError
from growth.sim.ports import SimRandom
from growth.sim.world.nodes import AGENT_AWAY_ANNOTATION

STRAY_TAINT: Final = "simulated.dev/stray"
# How long a Node stays as it came.
LEAST_SECONDS: Final = 300.0
MOST_SECONDS: Final = 1500.0

Edit = Callable[[Json], None]
Later = Callable[[float, Callable[[], Any]], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Strange:
    """How a Node comes: `make` changes it and returns what puts it right. `status`: it is the status that says it.

    `registered`: it happens when the Node has registered.
    """

    make: Callable[[Json], Edit | None]
    status: bool = False
    registered: bool = False


def _labelled(key: str, value: Callable[[str], str | None]) -> Callable[[Json], Edit | None]:
    def make(draft: Json) -> Edit | None:
        was = draft["metadata"]["labels"].get(key)
        if was is None:
            return None
        _set(draft, key, value(was))
        return lambda later: _set(later, key, was)

    return make


def _set(draft: Json, key: str, value: str | None) -> None:
    if value is None:
        draft["metadata"]["labels"].pop(key, None)
    else:
        draft["metadata"]["labels"][key] = value


def _own_label_lost(draft: Json) -> Edit | None:
    """A label that is neither the cluster's nor the cloud's: of the pool's template."""
    own = sorted(key for key in draft["metadata"]["labels"] if "/" not in key)
    return _labelled(own[0], lambda _: None)(draft) if own else None


def _tainted(draft: Json) -> Edit:
    add_taint(draft, key=STRAY_TAINT, effect="NoSchedule")
    return _untaint


def _untaint(draft: Json) -> None:
    remove_taint(draft, key=STRAY_TAINT, effect="NoSchedule")


def _without_agent(draft: Json) -> Edit:
    annotations = draft["metadata"].setdefault("annotations", {})
    annotations[AGENT_AWAY_ANNOTATION] = "true"
    return _with_agent


def _with_agent(draft: Json) -> None:
    draft["metadata"].get("annotations", {}).pop(AGENT_AWAY_ANNOTATION, None)


def _sized(resource: str, quantity: str) -> Callable[[Json], Edit | None]:
    def make(draft: Json) -> Edit | None:
        was = draft["status"]["allocatable"].get(resource)
        if was is None:
            return None
        draft["status"]["allocatable"][resource] = quantity
        return lambda later: later["status"]["allocatable"].__setitem__(resource, was)

    return make


def _without_device(draft: Json) -> Edit | None:
    devices = sorted(each for each in draft["status"]["allocatable"] if "/" in each)
    return _sized(devices[0], "0")(draft) if devices else None


WAYS: Final = {
    "zone-relabelled": Strange(_labelled(names.ZONE_LABEL, lambda was: f"{was}-dc14"), registered=True),
    "region-relabelled": Strange(_labelled(names.REGION_LABEL, lambda was: f"{was}-network"), registered=True),
    "type-relabelled": Strange(_labelled(names.INSTANCE_TYPE_LABEL, lambda _: "virtual-machine"), registered=True),
    "wrong-arch": Strange(_labelled(names.ARCH_LABEL, lambda _: "x86_64"), registered=True),
    "wrong-os": Strange(_labelled(names.OS_LABEL, lambda _: "Linux"), registered=True),
    "hostname-differs": Strange(_labelled(names.HOSTNAME_LABEL, lambda was: f"{was}.internal")),
    "label-lost": Strange(_own_label_lost, registered=True),
    "stray-taint": Strange(_tainted),
    "agent-away": Strange(_without_agent),
    "less-memory": Strange(_sized("memory", "300Mi"), status=True),
    "fewer-pods": Strange(_sized("pods", "1"), status=True),
    "device-missing": Strange(_without_device, status=True),
}


class StrangeNodes:
    """`distort` a Node that is about to join; `registered` is called when it has registered."""

    def __init__(self, *, strike: Callable[[str], bool], random: SimRandom, later: Later) -> None:
        self._strike = strike
        self._random = random
        self._later = later
        self._waiting: dict[str, list[Strange]] = {}  # by the Node's name

    def distort(self, api: Api, body: Json) -> None:
        name = body["metadata"]["name"]
        self._waiting.pop(name, None)
        for kind, way in WAYS.items():
            if not self._strike(kind):
                continue
            if way.registered:
                self._waiting.setdefault(name, []).append(way)
            else:
                self._mend(api, name, way, way.make(body))

    def registered(self, api: Api, name: str) -> None:
        for way in self._waiting.pop(name, ()):
            self._later(0.0, functools.partial(self._edit, api, name, way))

    async def _edit(self, api: Api, name: str, way: Strange) -> None:
        undo: list[Edit] = []

        def make(draft: Json) -> None:
            undo[:] = [each for each in (way.make(draft),) if each is not None]

        await _change(api, name, make, status=way.status)
        for each in undo:
            self._mend(api, name, way, each)

    def _mend(self, api: Api, name: str, way: Strange, undo: Edit | None) -> None:
        if undo is not None:
            seconds = self._random.uniform(LEAST_SECONDS, MOST_SECONDS)
            self._later(seconds, lambda: _change(api, name, undo, status=way.status))


async def _change(api: Api, name: str, edit: Edit, *, status: bool) -> None:
    try:
        await change(api, NODE, name, edit, subresource="status" if status else "")
    except (KubeError, KeyError):
        return  # it has gone, or is another one by now
