"""`karpenter.sh/v1` NodePool and NodeClaim, in full, and what of them `v1alpha1` shares.

Accepted is the union of Karpenter 1.14 and 1.15, and one field of ours: `spec.disruption.nodeLimitMode`. Durations stay
text in the structs («720h», «Never»), quantities as they came.
"""

import datetime as dt
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

from growth.api import names
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, ResourceList, Struct
from growth.api.placement import QUALIFIED_NAME, Taint
from growth.api.schema import Rule, Schema

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
NEVER: Final = "Never"

DURATION: Final = "^([0-9]+(s|m|h))+$"
DURATION_OR_NEVER: Final = "^(([0-9]+(s|m|h))+|Never)$"
LABEL_VALUE: Final = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$"

Duration: TypeAlias = Annotated[str, Schema(pattern=DURATION)]
DurationOrNever: TypeAlias = Annotated[str, Schema(pattern=DURATION_OR_NEVER)]

# A pool has at most this many requirements and labels; the server estimates the cost of the rules below by it.
MANY: Final = 100
# Values that no label can have are accepted, as by Karpenter, and told in the pool's condition. Without any bound the
# server refuses rules on them as too costly.
VALUE: Final = Schema(max_length=1024)


class NodeClassReference(Struct, frozen=True):
    schema: ClassVar = Schema("The node class that says how the cloud is to make the machines.")

    group: Annotated[
        str,
        Schema(
            "API group of the class, without its version.",
            pattern="^[^/]*$",
            rules=(Rule("self != ''", "group is empty: name the API group of the node class"),),
        ),
    ]
    kind: Annotated[
        str,
        Schema("Kind of the class.", rules=(Rule("self != ''", "kind is empty: name the kind of the node class"),)),
    ]
    name: Annotated[
        str,
        Schema("Name of the class.", rules=(Rule("self != ''", "name is empty: name the node class"),)),
    ]


class Requirement(Struct, frozen=True):
    """A requirement on a label of the node. `min_values` asks for that many distinct values among a claim's options."""

    schema: ClassVar = Schema(
        "What a label of the machines must or must not be.",
        rules=(
            Rule(
                "self.operator != 'In' || (has(self.values) && size(self.values) > 0)",
                "operator In needs at least one value",
                field=".values",
            ),
            Rule(
                "!(self.operator in ['Gt', 'Lt', 'Gte', 'Lte']) ||"
                " (has(self.values) && size(self.values) == 1 && self.values[0].matches('^[+]?[0-9]{1,18}$'))",
                "operators Gt, Lt, Gte and Lte need exactly one value, a whole number of 0 or more",
                field=".values",
            ),
            Rule(
                "self.operator != 'In' || !has(self.minValues) ||"
                " (has(self.values) && size(self.values) >= self.minValues)",
                "minValues asks for more values than are listed: list more or lower minValues",
                field=".minValues",
            ),
        ),
    )

    key: Annotated[
        str,
        Schema(
            "The label.",
            max_length=316,
            pattern=QUALIFIED_NAME,
            rules=(
                Rule(
                    'self in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"]'
                    ' || !self.find("^([^/]+)").endsWith("karpenter.sh")',
                    "labels of the domain karpenter.sh are restricted: only karpenter.sh/capacity-type may be required",
                ),
                Rule(
                    'self != "kubernetes.io/hostname"',
                    "label kubernetes.io/hostname is restricted: a node's name cannot be required in advance",
                ),
            ),
        ),
    ]
    operator: Annotated[str, Schema("How the label is compared with the values.", enum=OPERATORS)]
    values: Annotated[
        tuple[str, ...],
        Schema(
            "The values; none for Exists and DoesNotExist, one for Gt, Lt, Gte and Lte.",
            list_type="atomic",
            items=VALUE,
        ),
    ] = ()
    min_values: Annotated[
        int | None,
        Schema("How many distinct values must stay possible for a claim.", minimum=1, maximum=50),
    ] = None


# In a NodePool the pool's own label is given, not required.
NOT_NODE_POOL: Final = Rule(
    'self.key != "karpenter.sh/nodepool"',
    "label karpenter.sh/nodepool is restricted: every node of the pool gets it by itself",
    field=".key",
)

Taints: TypeAlias = Annotated[tuple[Taint, ...], Schema(list_type="atomic")]


class ResourceRequests(Struct, frozen=True):
    requests: Annotated[ResourceList, Schema("Resource by resource.")] = {}


class NodeClaimSpec(Struct, frozen=True):
    schema: ClassVar = Schema(
        "What the machine must be; fixed from the claim's creation.",
        rules=(Rule("self == oldSelf", "spec is immutable: delete the NodeClaim and make another"),),
    )

    node_class_ref: NodeClassReference
    requirements: Annotated[
        tuple[Requirement, ...],
        Schema("What the labels of the machine must be.", max_items=MANY, list_type="atomic"),
    ]
    resources: Annotated[ResourceRequests, Schema("What the pods for which the machine is bought ask for, in sum.")] = (
        ResourceRequests()
    )
    taints: Annotated[Taints, Schema("Taints of the node.")] = ()
    startup_taints: Annotated[Taints, Schema("Taints that something removes while the node starts.")] = ()
    expire_after: Annotated[
        DurationOrNever, Schema("The age at which the node is replaced; Never for no such age.", default="720h")
    ] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        Schema("How long draining may take before pods are deleted by force; unset: as long as it takes."),
    ] = None


class NodeClaimStatus(Struct, frozen=True):
    node_name: Annotated[str, Schema("The Node that the machine registered.")] = ""
    provider_id: Annotated[str, Schema("The machine, as the cloud and the Node call it.")] = msgspec.field(
        default="", name="providerID"
    )
    image_id: Annotated[str, Schema("The image that the machine was made from.")] = msgspec.field(
        default="", name="imageID"
    )
    capacity: Annotated[ResourceList, Schema("What the machine is expected to have.")] = {}
    allocatable: Annotated[ResourceList, Schema("What of it is expected to be left for pods.")] = {}
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()
    last_pod_event_time: Annotated[dt.datetime | None, Schema("When a pod last came to the node or left it.")] = None


class NodeClaim(Struct, frozen=True):
    """One machine: asked for, owned, and given back when the claim is deleted."""

    spec: NodeClaimSpec
    metadata: ObjectMeta = ObjectMeta()
    status: NodeClaimStatus = NodeClaimStatus()


class NodeClaimTemplateMetadata(Struct, frozen=True):
    """Labels and annotations; a template has no name."""

    labels: Annotated[
        dict[str, str],
        Schema(
            "Labels of every node of the pool.",
            map_type="atomic",
            max_properties=MANY,
            items=Schema(max_length=63, pattern=LABEL_VALUE),
            rules=(
                Rule(
                    'self.all(x, x in ["karpenter.sh/capacity-type", "karpenter.sh/nodepool"]'
                    ' || !x.find("^([^/]+)").endsWith("karpenter.sh"))',
                    "labels of the domain karpenter.sh are restricted: only karpenter.sh/capacity-type may be set",
                ),
                Rule(
                    'self.all(x, x != "karpenter.sh/nodepool")',
                    "label karpenter.sh/nodepool is restricted: every node of the pool gets it by itself",
                ),
                Rule(
                    'self.all(x, x != "kubernetes.io/hostname")',
                    "label kubernetes.io/hostname is restricted: each node has its own",
                ),
            ),
        ),
    ] = {}
    annotations: Annotated[dict[str, str], Schema("Annotations of every node of the pool.", map_type="granular")] = {}


class NodeClaimTemplateSpec(Struct, frozen=True):
    """As the spec of a NodeClaim, without what only a single machine has."""

    node_class_ref: Annotated[
        NodeClassReference,
        Schema(
            rules=(
                Rule(
                    "self.group == oldSelf.group",
                    "nodeClassRef.group is immutable: make another NodePool for another kind of node class",
                    field=".group",
                ),
                Rule(
                    "self.kind == oldSelf.kind",
                    "nodeClassRef.kind is immutable: make another NodePool for another kind of node class",
                    field=".kind",
                ),
            )
        ),
    ]
    requirements: Annotated[
        tuple[Requirement, ...],
        Schema(
            "What the labels of the machines must be.",
            max_items=MANY,
            list_type="atomic",
            items=Schema(rules=(NOT_NODE_POOL,)),
        ),
    ]
    taints: Annotated[Taints, Schema("Taints of every node of the pool.")] = ()
    startup_taints: Annotated[
        Taints, Schema("Taints that something removes while a node starts; pods need not tolerate them.")
    ] = ()
    expire_after: Annotated[
        DurationOrNever, Schema("The age at which a node is replaced; Never for no such age.", default="720h")
    ] = "720h"
    termination_grace_period: Annotated[
        Duration | None,
        Schema("How long draining may take before pods are deleted by force; unset: as long as it takes."),
    ] = None


class NodeClaimTemplate(Struct, frozen=True):
    schema: ClassVar = Schema("What every NodeClaim of the pool is made from.")

    spec: NodeClaimTemplateSpec
    metadata: NodeClaimTemplateMetadata = NodeClaimTemplateMetadata()


class Budget(Struct, frozen=True):
    """`nodes` is a count or a percentage; without a schedule the budget is always active, without reasons for all."""

    schema: ClassVar = Schema(
        "How many nodes of the pool may be disrupted at a time.",
        rules=(
            Rule(
                "has(self.schedule) == has(self.duration)",
                "schedule and duration must be set together: the one says when the budget starts, the other how long",
                field=".schedule",
            ),
        ),
    )

    nodes: Annotated[
        str,
        Schema(
            "A count, or a percentage of the pool's nodes.",
            default="10%",
            required=True,
            pattern="^((100|[0-9]{1,2})%|[0-9]+)$",
        ),
    ] = "10%"
    schedule: Annotated[
        str | None,
        Schema(
            "When the budget starts, as five fields of cron or a word such as @daily, in UTC.",
            pattern=r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$",
        ),
    ] = None
    duration: Annotated[
        str | None,
        Schema(
            "How long it then is active, in hours and minutes.",
            pattern="^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$",
        ),
    ] = None
    reasons: Annotated[
        tuple[str, ...],
        Schema(
            "The kinds of disruption that it counts for; none means all.",
            max_items=50,
            list_type="set",
            items=Schema(enum=(names.UNDERUTILIZED, names.EMPTY, names.DRIFTED_REASON, names.UNHEALTHY)),
        ),
    ] = ()


class Disruption(Struct, frozen=True):
    schema: ClassVar = Schema("When and how many nodes may be removed or replaced.")

    consolidate_after: Annotated[
        DurationOrNever,
        Schema("How long a node must have seen no pod come or go before it is considered; Never: not.", default="0s"),
    ] = "0s"
    consolidation_policy: Annotated[
        str,
        Schema(
            "Which nodes are considered for consolidation.",
            enum=("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
            default="WhenEmptyOrUnderutilized",
        ),
    ] = "WhenEmptyOrUnderutilized"
    budgets: Annotated[
        tuple[Budget, ...],
        Schema(
            "The smallest of the active budgets counts.",
            max_items=50,
            list_type="atomic",
            default=[{"nodes": "10%"}],
        ),
    ] = (Budget(),)
    node_limit_mode: Annotated[
        str,
        Schema(
            "Whether replacements must stay within limits.nodes too (Hard) or may pass it for a while (Soft).",
            enum=("Hard", "Soft"),
            default="Hard",
        ),
    ] = "Hard"


class NodePoolSpec(Struct, frozen=True):
    """With `replicas` the pool is static: it keeps that many nodes whatever pods there are."""

    schema: ClassVar = Schema(
        rules=(
            Rule(
                "has(self.replicas) == has(oldSelf.replicas)",
                "replicas can neither be added nor removed later: make another NodePool",
                field=".replicas",
            ),
            Rule(
                "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0"
                " || (size(self.limits) == 1 && 'nodes' in self.limits)",
                "with replicas only limits.nodes is possible: remove the other limits",
                field=".limits",
            ),
            Rule(
                "!has(self.replicas) || !has(self.weight)",
                "with replicas there is no weight: remove it",
                field=".weight",
            ),
        ),
    )

    template: NodeClaimTemplate
    disruption: Annotated[Disruption, Schema(default={"consolidateAfter": "0s"})] = Disruption()
    limits: Annotated[
        ResourceList,
        Schema("What all nodes of the pool may have in sum, by resource; `nodes` is their number."),
    ] = {}
    weight: Annotated[
        int | None,
        Schema("Pools of greater weight are tried first.", format="int32", minimum=1, maximum=100),
    ] = None
    replicas: Annotated[
        int | None, Schema("Keep this many nodes, whatever pods there are.", format="int64", minimum=0)
    ] = None


class NodePoolStatus(Struct, frozen=True):
    resources: Annotated[ResourceList, Schema("What the pool's nodes have in sum.")] = {}
    nodes: Annotated[int, Schema("The number of the pool's nodes.", format="int64", default=0)] = 0
    node_class_observed_generation: Annotated[
        int, Schema("The generation of the node class that was looked at.", format="int64")
    ] = 0
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()


class NodePool(Struct, frozen=True):
    """Machines that may be bought, of one kind of node class, and the rules of their lives."""

    spec: NodePoolSpec
    metadata: ObjectMeta = ObjectMeta()
    status: NodePoolStatus = NodePoolStatus()


NODE_POOL: Final = Kind(names.KARPENTER, "v1", "NodePool", "nodepools", namespaced=False, type=NodePool)
NODE_CLAIM: Final = Kind(names.KARPENTER, "v1", "NodeClaim", "nodeclaims", namespaced=False, type=NodeClaim)
