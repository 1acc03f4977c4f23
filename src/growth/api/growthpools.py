"""`growth.dev/v1alpha1`: pools of server types, requests for machines, requests for their removal."""

import datetime as dt
from typing import Annotated, ClassVar, Final

import msgspec

from growth.api import names
from growth.api.karpenter import LABEL_VALUE, MANY, Budget, Duration, NodeClassReference, Requirement, Taints
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, Struct
from growth.api.schema import Rule, Schema

WHEN_EMPTY: Final = "WhenEmpty"
CONTINUOUS: Final = "Continuous"

# Phases of a NodeRequest; a new one has none yet and counts as Pending.
PENDING: Final = "Pending"
PROVISIONING: Final = "Provisioning"
READY: Final = "Ready"
UNMET: Final = "Unmet"
DEPROVISIONING: Final = "Deprovisioning"

# Phases of a NodeRemovalRequest, beside Pending and Deprovisioning.
COULD_NOT_REMOVE: Final = "CouldNotRemove"
REMOVAL_FAILED: Final = "RemovalFailed"

# Why a machine is to go.
EMPTY: Final = "Empty"
NOT_READY: Final = "NotReady"
UNDERUTILIZED: Final = "Underutilized"
OVER_LIMIT: Final = "OverLimit"
DRIFTED: Final = names.DRIFTED_REASON
# Reasons of moves: pods are asked to leave, and what replaces is up before.
MOVED: Final = frozenset({UNDERUTILIZED, DRIFTED})


class ServerType(Struct, frozen=True):
    schema: ClassVar = Schema(
        "A type of machine that the pool may buy.",
        rules=(Rule("self.max >= self.min", "max is less than min: raise max or lower min", field=".max"),),
    )

    name: Annotated[
        str,
        Schema(
            "The cloud's name for the type, without regard to case.",
            min_length=1,
            max_length=63,
            pattern="^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        ),
    ]
    max: Annotated[int, Schema("At most this many machines of the type.", format="int32", minimum=0)]
    min: Annotated[
        int, Schema("At least this many, kept warm without any load.", format="int32", minimum=0, default=0)
    ] = 0
    priority: Annotated[
        int,
        Schema("Types of greater priority are bought first; among equals the cheapest mix.", format="int32", default=0),
    ] = 0


class GrowthPoolTemplate(Struct, frozen=True):
    schema: ClassVar = Schema("What every node of the pool gets.")

    labels: Annotated[
        dict[str, str],
        Schema(
            "Labels of every node of the pool.",
            map_type="granular",
            max_properties=MANY,
            items=Schema(max_length=63, pattern=LABEL_VALUE),
            rules=(
                Rule(
                    'self.all(x, !x.find("^([^/]+)").endsWith("karpenter.sh"))',
                    "labels of the domain karpenter.sh are restricted: use another domain",
                ),
                Rule(
                    'self.all(x, x != "growth.dev/pool" && x != "kubernetes.io/hostname")',
                    "labels growth.dev/pool and kubernetes.io/hostname are restricted: every node gets its own",
                ),
            ),
        ),
    ] = {}
    taints: Annotated[Taints, Schema("Taints of every node of the pool.")] = ()
    startup_taints: Annotated[
        Taints, Schema("Taints that something removes while a node starts; pods need not tolerate them.")
    ] = ()


class GrowthPoolDisruption(Struct, frozen=True):
    schema: ClassVar = Schema(
        "How many nodes may be replaced or moved at a time. Scale-down of empty nodes is not bounded."
    )

    budgets: Annotated[
        tuple[Budget, ...],
        Schema(
            "The smallest of the active budgets counts.",
            max_items=50,
            list_type="atomic",
            default=[{"nodes": "10%"}],
        ),
    ] = (Budget(),)


class GrowthPoolLimits(Struct, frozen=True):
    nodes: Annotated[int | None, Schema("At most this many nodes over all types.", format="int32", minimum=0)] = None


class GrowthPoolSpec(Struct, frozen=True):
    """Which machines the pool may buy, how many, and when they go again."""

    server_types: Annotated[
        tuple[ServerType, ...],
        Schema(
            "The types of machines that the pool may buy.",
            min_items=1,
            max_items=MANY,
            list_type="atomic",
            rules=(
                Rule(
                    "self.all(x, self.exists_one(y, y.name.lowerAscii() == x.name.lowerAscii()))",
                    "serverTypes name a type twice (case does not count): keep one entry a type",
                ),
            ),
        ),
    ]
    node_class_ref: Annotated[
        NodeClassReference | None, Schema("The node class; without it the provider's class `default`.")
    ] = None
    template: GrowthPoolTemplate = GrowthPoolTemplate()
    optimise: Annotated[
        str,
        Schema(
            "WhenEmpty removes empty nodes; Continuous also moves pods to cheaper machines.",
            enum=(WHEN_EMPTY, CONTINUOUS),
            default=WHEN_EMPTY,
        ),
    ] = WHEN_EMPTY
    scale_down_after: Annotated[
        Duration, Schema("How long a node must have been empty before it is removed.", default="10m")
    ] = "10m"
    disruption: GrowthPoolDisruption = GrowthPoolDisruption()
    limits: Annotated[GrowthPoolLimits, Schema("Limits over all types.")] = GrowthPoolLimits()


class ServerTypeStatus(Struct, frozen=True):
    name: Annotated[str, Schema("The type, in lower case.")]
    ready: Annotated[int, Schema("Nodes of the type that can take pods.", format="int32")] = 0
    in_flight: Annotated[int, Schema("Machines of the type on their way.", format="int32")] = 0
    unmet_until: Annotated[
        dt.datetime | None,
        Schema("Until when the type is not asked for anywhere, because every location of the node class had none."),
    ] = None


class UnmetOffering(Struct, frozen=True):
    type: Annotated[str, Schema("The type, in lower case.")]
    location: Annotated[str, Schema("Where the cloud refused it.")]
    until: Annotated[dt.datetime, Schema("Until when the pool does not ask for it there.")]
    capacity_type: Annotated[
        str, Schema("The capacity type that was refused; without it every one that the location sells.")
    ] = ""


class GrowthPoolStatus(Struct, frozen=True):
    nodes: Annotated[int, Schema("Machines of the pool, those on their way included.", format="int32")] = 0
    server_types: Annotated[
        tuple[ServerTypeStatus, ...], Schema("Type by type.", list_type="map", list_map_keys=("name",))
    ] = ()
    unmet_offerings: Annotated[
        tuple[UnmetOffering, ...],
        Schema("Types that the cloud refused, location by location; plans leave these out.", list_type="atomic"),
    ] = ()
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()


class GrowthPool(Struct, frozen=True):
    """A pool of machines by server type, with minimum and maximum. Its kind is NodePool; kubectl calls it growthpool."""

    spec: GrowthPoolSpec
    metadata: ObjectMeta = ObjectMeta()
    status: GrowthPoolStatus = GrowthPoolStatus()


class StoryEvent(Struct, frozen=True):
    at: Annotated[dt.datetime, Schema("When.")]
    name: Annotated[str, Schema("What happened.", min_length=1)]
    reason: Annotated[str, Schema("Why.")] = ""


Story = Annotated[tuple[StoryEvent, ...], Schema("What happened to the request so far.", list_type="atomic")]


class NodeRequestSpec(Struct, frozen=True):
    schema: ClassVar = Schema(
        rules=(Rule("self == oldSelf", "spec is immutable: delete the NodeRequest and make another"),),
    )

    target_offering: Annotated[
        str,
        Schema(
            "What is asked for: cloud and server type, such as hetzner-cax11.",
            min_length=1,
            max_length=253,
            pattern="^[a-z0-9]+-[a-z0-9]([-a-z0-9_.]*[a-z0-9])?$",
        ),
    ]
    pool: Annotated[str, Schema("The growth NodePool for which it is asked.", min_length=1, max_length=253)]
    requirements: Annotated[
        tuple[Requirement, ...],
        Schema(
            "What else the pods need of the machine, such as a zone; without it any machine of the type will do.",
            max_items=MANY,
            list_type="atomic",
        ),
    ] = ()


class NodeRequestStatus(Struct, frozen=True):
    phase: Annotated[
        str,
        Schema(
            "How far the request has come.",
            enum=(PENDING, PROVISIONING, READY, UNMET, DEPROVISIONING),
        ),
    ] = ""
    node_id: Annotated[str, Schema("The machine, as the cloud and the Node call it.")] = msgspec.field(
        default="", name="nodeID"
    )
    node_claim_name: Annotated[str, Schema("The NodeClaim that fulfils the request.")] = ""
    unmet_until: Annotated[dt.datetime | None, Schema("With phase Unmet: until when nobody asks again.")] = None
    events: Story = ()


class NodeRequest(Struct, frozen=True):
    """One machine asked for by a growth pool."""

    spec: NodeRequestSpec
    metadata: ObjectMeta = ObjectMeta()
    status: NodeRequestStatus = NodeRequestStatus()


class NodeRemovalRequestSpec(Struct, frozen=True):
    schema: ClassVar = Schema(
        rules=(
            Rule("self == oldSelf", "spec is immutable: delete the NodeRemovalRequest and make another"),
            Rule(
                "has(self.nodeName) || has(self.nodeClaimName)",
                "nodeClaimName and nodeName are both missing: say which machine is to go",
                field=".nodeClaimName",
            ),
        ),
    )

    reason: Annotated[
        str, Schema("Why the machine is to go.", enum=(EMPTY, NOT_READY, UNDERUTILIZED, OVER_LIMIT, DRIFTED))
    ]
    node_name: Annotated[str | None, Schema("The Node, where the machine has registered one.", min_length=1)] = None
    node_claim_name: Annotated[str | None, Schema("The NodeClaim that owns the machine.", min_length=1)] = None


class NodeRemovalRequestStatus(Struct, frozen=True):
    phase: Annotated[
        str,
        Schema(
            "How far the removal has come.",
            enum=(PENDING, DEPROVISIONING, COULD_NOT_REMOVE, REMOVAL_FAILED),
        ),
    ] = ""
    removal_attempt: Annotated[int, Schema("How often the cloud was asked.", format="int32", minimum=0)] = 0
    remove_attempted_at: Annotated[dt.datetime | None, Schema("When it was last asked.")] = None
    events: Story = ()


class NodeRemovalRequest(Struct, frozen=True):
    """One machine that is to go."""

    spec: NodeRemovalRequestSpec
    metadata: ObjectMeta = ObjectMeta()
    status: NodeRemovalRequestStatus = NodeRemovalRequestStatus()


GROWTH_POOL: Final = Kind(names.GROWTH, "v1alpha1", "NodePool", "growthpools", namespaced=False, type=GrowthPool)
NODE_REQUEST: Final = Kind(names.GROWTH, "v1alpha1", "NodeRequest", "noderequests", namespaced=False, type=NodeRequest)
NODE_REMOVAL_REQUEST: Final = Kind(
    names.GROWTH, "v1alpha1", "NodeRemovalRequest", "noderemovalrequests", namespaced=False, type=NodeRemovalRequest
)
