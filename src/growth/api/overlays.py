"""`karpenter.sh/v1alpha1` NodeOverlay: corrections of price and capacity, laid over what the cloud says of its types."""

from typing import Annotated, ClassVar, Final

from growth.api import names
from growth.api.karpenter import MANY, OPERATORS, VALUE, Requirement
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, ResourceList, Struct
from growth.api.placement import QUALIFIED_NAME
from growth.api.schema import Rule, Schema


class OverlayRequirement(Struct, frozen=True):
    """As a pool's requirement, without `minValues`."""

    schema: ClassVar = Schema(
        "What a label of the instance types must or must not be.",
        rules=(
            Rule(
                "!(self.operator in ['In', 'NotIn']) || (has(self.values) && size(self.values) > 0)",
                "operators In and NotIn need at least one value",
                field=".values",
            ),
            Requirement.schema.rules[1],
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
                    "labels of the domain karpenter.sh are restricted:"
                    " only karpenter.sh/capacity-type and karpenter.sh/nodepool may be required",
                ),
                Rule(
                    'self != "kubernetes.io/hostname"',
                    "label kubernetes.io/hostname is restricted: instance types have no node's name",
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


class NodeOverlaySpec(Struct, frozen=True):
    """Where two overlays touch the same thing, the one of greater weight counts; equal weights are a conflict."""

    schema: ClassVar = Schema(
        rules=(
            Rule(
                "!has(self.price) || !has(self.priceAdjustment)",
                "price and priceAdjustment exclude each other: keep one of them",
                field=".price",
            ),
        ),
    )

    requirements: Annotated[
        tuple[OverlayRequirement, ...],
        Schema("The instance types and offerings that are meant.", max_items=MANY, list_type="atomic"),
    ]
    price: Annotated[str | None, Schema("The price an hour, instead of the cloud's.", pattern=r"^\d+(\.\d+)?$")] = None
    price_adjustment: Annotated[
        str | None,
        Schema(
            "A sum with its sign to add to the price, or a percentage with its sign, -100% at the lowest.",
            pattern=r"^(([+-]{1}(\d*\.?\d+))|(\+{1}\d*\.?\d+%)|(^(-\d{1,2}(\.\d+)?%)$)|(-100%))$",
        ),
    ] = None
    capacity: Annotated[
        ResourceList,
        Schema(
            "Resources that the machines have beyond those that the cloud knows.",
            rules=(
                Rule(
                    "self.all(x, !(x in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
                    "cpu, memory, ephemeral-storage and pods are the cloud's to say: only other resources may be given",
                ),
            ),
        ),
    ] = {}
    weight: Annotated[
        int | None,
        Schema("Of two overlays on one thing the greater weight counts.", format="int32", minimum=1, maximum=10000),
    ] = None


class NodeOverlayStatus(Struct, frozen=True):
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()


class NodeOverlay(Struct, frozen=True):
    """A correction of the price or the capacity of instance types."""

    spec: NodeOverlaySpec
    metadata: ObjectMeta = ObjectMeta()
    status: NodeOverlayStatus = NodeOverlayStatus()


NODE_OVERLAY: Final = Kind(
    names.KARPENTER, "v1alpha1", "NodeOverlay", "nodeoverlays", namespaced=False, type=NodeOverlay
)
