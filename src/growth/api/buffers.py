"""`autoscaling.x-k8s.io/v1beta1` CapacityBuffer: room kept free for pods that do not exist yet."""

from typing import Annotated, ClassVar, Final

from growth.api import names
from growth.api.kinds import Kind
from growth.api.meta import CONDITIONS, Condition, ObjectMeta, ResourceList, Struct
from growth.api.schema import Rule, Schema


class LocalObjectReference(Struct, frozen=True):
    name: Annotated[str, Schema("Its name, in the buffer's namespace.", min_length=1)]


class ScalableReference(Struct, frozen=True):
    """A Deployment, StatefulSet or ReplicaSet of the buffer's namespace."""

    kind: Annotated[str, Schema("Its kind.", min_length=1)]
    name: Annotated[str, Schema("Its name, in the buffer's namespace.", min_length=1)]
    api_group: Annotated[str, Schema("Its API group.")] = ""


class CapacityBufferSpec(Struct, frozen=True):
    """The number of pods is the greater of `replicas` and `percentage`, as far as `limits` allow."""

    schema: ClassVar = Schema(
        rules=(
            Rule(
                "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
                "podTemplateRef alone does not say how much room: set replicas or limits",
                field=".podTemplateRef",
            ),
            Rule(
                "!(has(self.podTemplateRef) && has(self.scalableRef))",
                "podTemplateRef and scalableRef exclude each other: keep one of them",
                field=".scalableRef",
            ),
        ),
    )

    provisioning_strategy: Annotated[str, Schema("How the room is kept.", default=names.ACTIVE_CAPACITY_STRATEGY)] = (
        names.ACTIVE_CAPACITY_STRATEGY
    )
    pod_template_ref: Annotated[
        LocalObjectReference | None, Schema("The PodTemplate of the pods for which room is kept.")
    ] = None
    scalable_ref: Annotated[
        ScalableReference | None, Schema("The workload whose pods are the measure of the room.")
    ] = None
    replicas: Annotated[int | None, Schema("Room for this many pods.", format="int32", minimum=0)] = None
    percentage: Annotated[
        int | None, Schema("Room for this many per cent of the workload's pods.", format="int32", minimum=0)
    ] = None
    limits: Annotated[ResourceList, Schema("The room has at most this size in sum.")] = {}


class CapacityBufferStatus(Struct, frozen=True):
    pod_template_ref: Annotated[LocalObjectReference | None, Schema("The PodTemplate that is used.")] = None
    replicas: Annotated[int | None, Schema("For how many pods room is kept.", format="int32")] = None
    pod_template_generation: Annotated[
        int | None, Schema("The generation of the template that was looked at.", format="int64")
    ] = None
    provisioning_strategy: Annotated[str, Schema("The strategy that is used.")] = ""
    conditions: Annotated[tuple[Condition, ...], CONDITIONS] = ()


class CapacityBuffer(Struct, frozen=True):
    """Room for pods that do not exist yet, bought in advance."""

    spec: CapacityBufferSpec
    metadata: ObjectMeta = ObjectMeta()
    status: CapacityBufferStatus = CapacityBufferStatus()


CAPACITY_BUFFER: Final = Kind(
    names.AUTOSCALING, "v1beta1", "CapacityBuffer", "capacitybuffers", namespaced=True, type=CapacityBuffer
)
