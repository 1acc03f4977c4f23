"""Shapes: what two pods have in common when they are alike to a scheduler.

Thousands of pods share a few hundred shapes. Interning them once, where pods enter the cache, makes «are these two
alike?» a comparison of identities, and everything that planning computes of a pod is computed once a shape.
"""

import msgspec

from growth.api.pods import Pod, PodSpec
from growth.api.resizing import current_spec


class Shape:
    """The parts of a pod that decide where it fits: namespace, labels, spec. Equal shapes of one `Shapes` are one object."""

    __slots__ = ("labels", "namespace", "spec")

    def __init__(self, namespace: str, labels: dict[str, str], spec: PodSpec) -> None:
        self.namespace = namespace
        self.labels = labels
        self.spec = spec

    def __repr__(self) -> str:
        return f"Shape({self.namespace}, {self.labels})"


class Shapes:
    """The interning table. Grows with the number of different shapes seen."""

    def __init__(self) -> None:
        self._known: dict[bytes, Shape] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: Pod) -> Shape:
        """The shape of a pod; of a bound one with what the kubelet has granted it while a resize goes on."""
        spec = current_spec(pod)
        if spec.node_name:
            spec = msgspec.structs.replace(spec, node_name="")
        metadata = pod.metadata
        key = self._encode((metadata.namespace, metadata.labels, spec))
        shape = self._known.get(key)
        if shape is None:
            shape = self._known[key] = Shape(metadata.namespace, metadata.labels, spec)
        return shape

    def __len__(self) -> int:
        return len(self._known)
