"""A machine with its pods counted: what planning sees of it, made once and kept until something about it changes."""

import collections
import dataclasses
from collections.abc import Mapping, Sequence

import msgspec

from growth.api.instance_types import InstanceType
from growth.api.pods import Pod, PodSpec, PodStatus
from growth.api.requests import requests_of
from growth.api.resizing import current_spec
from growth.cluster.attachments import Attachments
from growth.cluster.machines import Machine
from growth.cluster.pricing import price_of, type_of
from growth.cluster.shapes import CachedPod, PodShape
from growth.cluster.snapshot import NodeView
from growth.cluster.wanting import is_done, movable, of_daemon_set
from growth.units.errors import QuantityError
from growth.units.resources import Amounts, add

# Sums of more shapes than that are not remembered: shapes come and go with rollouts.
_REMEMBERED = 20_000


class Counted(msgspec.Struct, frozen=True, gc=False):
    """`view` is None for a machine on its way out: then `moving` are the pods that want another place."""

    machine: Machine
    view: NodeView | None
    moving: tuple[CachedPod, ...] = ()
    warning: str = ""


class Books:
    """Adds up what pods hold on nodes; each shape is summed once."""

    def __init__(self) -> None:
        self._requests: dict[PodShape, Amounts] = {}

    def count(
        self,
        machine: Machine,
        pods: Sequence[CachedPod],
        *,
        attachments: Attachments,
        types: Mapping[str, InstanceType],
    ) -> Counted:
        """The machine as planning may fill it. A quantity that cannot be read makes it full, and a warning says so."""
        pods = [pod for pod in pods if not is_done(pod)]
        if machine.leaving:
            return Counted(machine, None, tuple(pod for pod in pods if movable(pod)))
        warning = ""
        try:
            allocatable = machine.allocatable
            requested = self._sum(pods)
            daemons = self._sum([pod for pod in pods if of_daemon_set(pod)])
        except QuantityError as error:
            # How much is free there is not known, so nothing may be placed there.
            warning = f"node {machine.name} is taken as full: {error}"
            allocatable, requested, daemons = {}, {}, {}
        labels = machine.labels
        view = NodeView(
            name=machine.name,
            labels=labels,
            taints=machine.taints,
            allocatable=allocatable,
            requested=requested,
            daemon_requested=daemons,
            pods=tuple(collections.Counter(pod.shape for pod in pods).items()),
            uncounted=tuple(collections.Counter(pod.shape for pod in pods if pod.deleting is not None).items()),
            volumes=attachments.on(machine.name, pods),
            initialized=machine.initialized,
            pool=machine.pool,
            price=price_of(labels, type_of(labels, types)),
        )
        return Counted(machine, view, (), warning)

    def holding(self, view: NodeView, shapes: Sequence[PodShape], promised: Sequence[PodShape] = ()) -> NodeView:
        """The view with further pods on it, as if they were bound there, and with those of `promised`, that are to come from
        other nodes and count there.
        """
        try:
            requested = add(view.requested, *(self._of(shape) for shape in (*shapes, *promised)))
        except QuantityError:
            return view  # such a pod was never placed
        pods = collections.Counter(dict(view.pods))
        pods.update((*shapes, *promised))
        uncounted = collections.Counter(dict(view.uncounted))
        uncounted.update(promised)
        return dataclasses.replace(
            view, requested=requested, pods=tuple(pods.items()), uncounted=tuple(uncounted.items())
        )

    def _sum(self, pods: Sequence[CachedPod]) -> Amounts:
        shapes = collections.Counter(pod.shape for pod in pods if not pod.resized)
        total: dict[str, int] = {}
        for shape, number in shapes.items():
            for name, amount in self._of(shape).items():
                total[name] = total.get(name, 0) + amount * number
        resized = [requests_of(_current(pod)) for pod in pods if pod.resized]
        return add(total, *resized) if resized else total

    def _of(self, shape: PodShape) -> Amounts:
        known = self._requests.get(shape)
        if known is None:
            if len(self._requests) >= _REMEMBERED:
                self._requests.clear()
            try:
                known = self._requests[shape] = requests_of(shape.spec)
            except QuantityError as error:
                raise QuantityError(f"a pod of namespace {shape.namespace} there: {error}") from error
        return known


def _current(pod: CachedPod) -> PodSpec:
    return current_spec(Pod(spec=pod.shape.spec, status=PodStatus(container_statuses=pod.resized)))
