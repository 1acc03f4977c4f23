"""The CustomResourceDefinitions of every kind that Growth brings along, made from the structs.

`all_crds` is what `growth crds` prints and the chart installs. Karpenter's kinds have Karpenter's columns, categories and
short names, so that `kubectl get nodepools` looks as it always did.
"""

import dataclasses
from typing import Final

from growth.api import buffers, decisions, growthpools, karpenter, linodeclasses, nodeclasses, overlays
from growth.api.crds.structural import root_schema
from growth.api.kinds import Json, Kind
from growth.api.meta import Struct


@dataclasses.dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; `wide` shows it with `-o wide` only. Of a path with many values servers show the first."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False

    def as_json(self) -> Json:
        column: Json = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return {**column, "priority": 1} if self.wide else column


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a kind's definition says beyond its struct. `scale` is the pair of paths of the scale subresource."""

    kind: Kind[Struct]
    singular: str = ""
    category: str
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    scale: tuple[str, str] | None = None
    has_status: bool = True


def _condition(name: str, *, wide: bool = False) -> Column:
    return Column(name, f'.status.conditions[?(@.type=="{name}")].status', wide=wide)


_READY: Final = _condition("Ready")
_AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")

DEFINITIONS: Final = (
    Definition(
        kind=karpenter.NODE_POOL,
        category="karpenter",
        columns=(
            Column("NodeClass", ".spec.template.spec.nodeClassRef.name"),
            Column("Nodes", ".status.nodes"),
            _READY,
            _AGE,
            Column("Weight", ".spec.weight", "integer", wide=True),
            Column("CPU", ".status.resources.cpu", wide=True),
            Column("Memory", ".status.resources.memory", wide=True),
        ),
        scale=(".spec.replicas", ".status.nodes"),
    ),
    Definition(
        kind=karpenter.NODE_CLAIM,
        category="karpenter",
        columns=(
            Column("Type", r".metadata.labels.node\.kubernetes\.io/instance-type"),
            Column("Capacity", r".metadata.labels.karpenter\.sh/capacity-type"),
            Column("Zone", r".metadata.labels.topology\.kubernetes\.io/zone"),
            Column("Node", ".status.nodeName"),
            _READY,
            _AGE,
            Column("ImageID", ".status.imageID", wide=True),
            Column("ID", ".status.providerID", wide=True),
            Column("NodePool", r".metadata.labels.karpenter\.sh/nodepool", wide=True),
            Column("NodeClass", ".spec.nodeClassRef.name", wide=True),
            _condition("Drifted", wide=True),
        ),
    ),
    Definition(
        kind=overlays.NODE_OVERLAY,
        category="karpenter",
        short_names=("overlays",),
        columns=(_READY, _AGE, Column("Weight", ".spec.weight", "integer", wide=True)),
    ),
    Definition(
        kind=buffers.CAPACITY_BUFFER,
        category="autoscaling",
        short_names=("cb",),
        columns=(
            Column("Strategy", ".spec.provisioningStrategy"),
            Column("PodTemplate", ".status.podTemplateRef.name"),
            Column("Replicas", ".status.replicas", "integer"),
            Column("ConditionsType", ".status.conditions[*].type"),
            Column("ConditionsStatus", ".status.conditions[*].status"),
            Column("ConditionsReason", ".status.conditions[*].reason"),
            _AGE,
        ),
    ),
    Definition(
        kind=growthpools.GROWTH_POOL,
        singular="growthpool",
        category="growth",
        short_names=("gpool",),
        columns=(
            Column("Nodes", ".status.nodes", "integer"),
            Column("Limit", ".spec.limits.nodes", "integer"),
            Column("After", ".spec.scaleDownAfter"),
            Column("Optimise", ".spec.optimise"),
            _READY,
            _AGE,
            Column("NodeClass", ".spec.nodeClassRef.name", wide=True),
        ),
    ),
    Definition(
        kind=growthpools.NODE_REQUEST,
        category="growth",
        short_names=("nreq",),
        columns=(
            Column("Pool", ".spec.pool"),
            Column("Offering", ".spec.targetOffering"),
            Column("Phase", ".status.phase"),
            Column("Last", ".status.events[-1].name"),
            Column("Machine", ".status.nodeID"),
            _AGE,
            Column("Why", ".status.events[-1].reason", wide=True),
            Column("NodeClaim", ".status.nodeClaimName", wide=True),
            Column("UnmetUntil", ".status.unmetUntil", wide=True),
        ),
    ),
    Definition(
        kind=growthpools.NODE_REMOVAL_REQUEST,
        category="growth",
        short_names=("nrem",),
        columns=(
            Column("Node", ".spec.nodeName"),
            Column("Reason", ".spec.reason"),
            Column("Phase", ".status.phase"),
            Column("Attempts", ".status.removalAttempt", "integer"),
            Column("Last", ".status.events[-1].name"),
            _AGE,
            Column("Why", ".status.events[-1].reason", wide=True),
            Column("NodeClaim", ".spec.nodeClaimName", wide=True),
        ),
    ),
    Definition(
        kind=decisions.DECISION,
        category="growth",
        short_names=("gdec",),
        columns=(
            Column("Controller", ".spec.controller"),
            Column("Outcome", ".spec.outcome"),
            Column("Summary", ".spec.summary"),
            _AGE,
        ),
        has_status=False,
    ),
    Definition(
        kind=nodeclasses.HETZNER_NODE_CLASS,
        category="growth",
        columns=(Column("Locations", ".spec.locations"), _READY, _AGE),
    ),
    Definition(
        kind=linodeclasses.LINODE_NODE_CLASS,
        category="karpenter",
        short_names=("lnc", "lncs"),
        columns=(_READY, _AGE),
    ),
    Definition(
        kind=nodeclasses.KWOK_NODE_CLASS,
        category="karpenter",
        short_names=("kwoknc", "kwokncs"),
        columns=(_READY, _AGE),
    ),
)


def all_crds() -> list[Json]:
    """Every definition, ready to be applied; a fresh copy at each call."""
    return [crd(definition) for definition in DEFINITIONS]


def crd(definition: Definition) -> Json:
    """One CustomResourceDefinition."""
    kind = definition.kind
    names: Json = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": definition.singular or kind.kind.lower(),
        "categories": [definition.category],
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    subresources: Json = {"status": {}} if definition.has_status else {}
    if definition.scale:
        subresources["scale"] = dict(zip(("specReplicasPath", "statusReplicasPath"), definition.scale, strict=True))
    version: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.as_json() for column in definition.columns],
        "schema": {"openAPIV3Schema": root_schema(kind.type)},
    }
    if subresources:
        version["subresources"] = subresources
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version],
        },
    }
