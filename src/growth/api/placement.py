"""Where a pod may run: taints, tolerations, node and pod affinity, topology spread.

Operators and policies are plain strings: a server newer than we are may send others, and a value that we do not know
must not make the object unreadable. The constants name those that we act on.
"""

from typing import Annotated, ClassVar, Final

from growth.api.meta import LabelSelector, Struct
from growth.api.schema import Schema

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

# A label's or taint's key: an optional DNS name and a slash, then the name.
QUALIFIED_NAME: Final = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\/))?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
)


class Taint(Struct, frozen=True):
    """A taint is identified by key and effect. `timeAdded` is kept by servers and not read."""

    schema: ClassVar = Schema(
        "Keeps pods away from the node unless they tolerate it.",
        unread={"timeAdded": {"type": "string", "format": "date-time"}},
    )

    key: Annotated[str, Schema("The taint's name.", min_length=1, pattern=QUALIFIED_NAME)]
    effect: Annotated[
        str, Schema("What happens to pods that do not tolerate it.", enum=(NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE))
    ]
    value: Annotated[str, Schema("An optional value, matched by tolerations.", pattern=QUALIFIED_NAME)] = ""


class Toleration(Struct, frozen=True):
    """An empty key with operator Exists tolerates every taint; an empty effect, every effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorRequirement(Struct, frozen=True):
    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True):
    """All expressions and fields must hold; a term without any matches nothing."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(Struct, frozen=True):
    """One of the terms must hold."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredSchedulingTerm(Struct, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Struct, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredSchedulingTerm, ...] = ()


class PodAffinityTerm(Struct, frozen=True):
    """`namespaces` and `namespace_selector` add up; neither means the pod's own; an empty selector means all.

    A `label_selector` that is None selects no pod, an empty one every pod.
    """

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Affinity or anti-affinity: their shapes are equal."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()


class Affinity(Struct, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    """The policies are None where the pod leaves them out; kube-scheduler then honours affinity and ignores taints."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
