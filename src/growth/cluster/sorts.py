"""Sorts of pods: those that ask for the same, whatever they are called. Coarser than shapes."""

import hashlib
from collections.abc import Set
from typing import Final

import msgspec

from growth.api.meta import LabelSelector
from growth.api.placement import PodAffinityTerm
from growth.api.pods import PodSpec
from growth.cluster.shapes import PodShape

_REMEMBERED: Final = 20_000
# Of a sort's digest: few enough for the annotation of a claim with many sorts, and enough for a pool's sorts to differ.
DIGEST_BYTES: Final = 5


class Sorts:
    """Tells pods that ask for the same from others, coarser than shapes.

    Shapes differ by any label and by the names of volume claims: every pod of a StatefulSet has its own. Of labels only
    those count here that the pod's own selectors read, and of volumes none.
    """

    def __init__(self) -> None:
        self._known: dict[PodShape, bytes] = {}
        self._encode = msgspec.msgpack.Encoder(order="deterministic").encode

    def of(self, shape: PodShape) -> bytes:
        known = self._known.get(shape)
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            read = {key: value for key, value in shape.labels.items() if key in _read_labels(shape.spec)}
            spec = msgspec.structs.replace(shape.spec, volumes=())
            known = self._known[shape] = self._encode((shape.namespace, read, spec))
        return known

    def digest(self, shape: PodShape) -> str:
        """The sort in few characters, for annotations. Pods that a controller makes anew have that of those before them."""
        return hashlib.blake2s(self.of(shape), digest_size=DIGEST_BYTES).hexdigest()


def _read_labels(spec: PodSpec) -> Set[str]:
    """The keys of labels that the pod's own rules about other pods look at."""
    selectors = [constraint.label_selector for constraint in spec.topology_spread_constraints]
    keys = {key for constraint in spec.topology_spread_constraints for key in constraint.match_label_keys}
    if spec.affinity is not None:
        for both in (spec.affinity.pod_affinity, spec.affinity.pod_anti_affinity):
            if both is not None:
                preferred = (
                    each.pod_affinity_term for each in both.preferred_during_scheduling_ignored_during_execution
                )
                terms: list[PodAffinityTerm] = [*both.required_during_scheduling_ignored_during_execution, *preferred]
                selectors += [term.label_selector for term in terms]
                keys |= {key for term in terms for key in (*term.match_label_keys, *term.mismatch_label_keys)}
    for selector in selectors:
        keys |= _keys(selector)
    return keys


def _keys(selector: LabelSelector | None) -> Set[str]:
    if selector is None:
        return frozenset()
    return {*selector.match_labels, *(each.key for each in selector.match_expressions)}
