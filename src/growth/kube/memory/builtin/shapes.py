"""The outlines of built-in kinds: which types their fields have, as far as the rules here look at them.

The real server decodes into full types and refuses a wrong one. Here the fields that defaults and rules walk are
checked first, so that those may trust what they find; other fields are kept as they come.
"""

from typing import Annotated, Any, TypeVar

import msgspec

from growth.api.kinds import Json
from growth.kube.memory.fields import Undecodable

T = TypeVar("T")

Amount = str | int | float
Amounts = dict[str, Amount] | None
Texts = dict[str, str] | None
Int = int | None
Text = str | None
Flag = bool | None
Many = list[Json] | None
IntOrPercent = int | str | None


class Outline(msgspec.Struct, rename="camel", gc=False):
    """Base: camelCase on the wire, unknown fields left alone."""


class Selector(Outline):
    match_labels: Texts = None
    match_expressions: Many = None


class Resources(Outline):
    requests: Amounts = None
    limits: Amounts = None


class Port(Outline):
    container_port: int = 0
    host_port: int = 0
    name: str = ""
    protocol: str = ""


class Container(Outline):
    name: str = ""
    image: str = ""
    resources: Resources | None = None
    ports: list[Port] | None = None
    env: Many = None
    volume_mounts: Many = None
    image_pull_policy: str = ""
    restart_policy: Text = None


class Toleration(Outline):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int = None


class Gate(Outline):
    name: str = ""


class Spread(Outline):
    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    min_domains: Int = None
    label_selector: Selector | None = None


class Requirement(Outline):
    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(Outline):
    match_expressions: list[Requirement] | None = None
    match_fields: list[Requirement] | None = None


class NodeTerms(Outline):
    node_selector_terms: list[NodeTerm] | None = None


class PreferredNodeTerm(Outline):
    weight: int = 0
    preference: NodeTerm | None = None


class NodeAffinity(Outline):
    required_during_scheduling_ignored_during_execution: NodeTerms | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredNodeTerm] | None = None


class PodTerm(Outline):
    topology_key: str = ""
    label_selector: Selector | None = None


class WeightedPodTerm(Outline):
    weight: int = 0
    pod_affinity_term: PodTerm | None = None


class PodAffinity(Outline):
    required_during_scheduling_ignored_during_execution: list[PodTerm] | None = None
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodTerm] | None = None


class Affinity(Outline):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class PodSpec(Outline):
    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    restart_policy: str = ""
    dns_policy: str = ""
    node_name: str = ""
    node_selector: Texts = None
    affinity: Affinity | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[Spread] | None = None
    termination_grace_period_seconds: Int = None
    active_deadline_seconds: Int = None
    priority: Int = None
    priority_class_name: str = ""
    scheduling_gates: list[Gate] | None = None
    overhead: Amounts = None
    volumes: Many = None
    hostname: str = ""
    resources: Resources | None = None


class Pod(Outline):
    spec: PodSpec | None = None
    status: Json | None = None


class Template(Outline):
    metadata: Json | None = None
    spec: PodSpec | None = None


class WorkloadSpec(Outline):
    replicas: Int = None
    min_ready_seconds: Int = None
    selector: Selector | None = None
    template: Template | None = None
    strategy: Json | None = None
    update_strategy: Json | None = None


class Workload(Outline):
    spec: WorkloadSpec | None = None
    status: Json | None = None


class PodTemplate(Outline):
    template: Template | None = None


class JobSpec(Outline):
    parallelism: Int = None
    completions: Int = None
    backoff_limit: Int = None
    template: Template | None = None
    selector: Selector | None = None


class Job(Outline):
    spec: JobSpec | None = None


class JobTemplate(Outline):
    spec: JobSpec | None = None


class CronJobSpec(Outline):
    schedule: str = ""
    job_template: JobTemplate | None = None


class CronJob(Outline):
    spec: CronJobSpec | None = None


class Taint(Outline):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Outline):
    provider_id: str = msgspec.field(default="", name="providerID")
    unschedulable: Flag = None
    taints: list[Taint] | None = None
    pod_cidr: str = msgspec.field(default="", name="podCIDR")


class NodeStatus(Outline):
    capacity: Amounts = None
    allocatable: Amounts = None
    conditions: Many = None


class Node(Outline):
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class ConfigMap(Outline):
    data: Texts = None
    immutable: Flag = None


class Secret(Outline):
    data: Texts = None
    string_data: Texts = None
    type: str = ""


class Service(Outline):
    class Spec(Outline):
        ports: Many = None
        selector: Texts = None
        type: str = ""
        cluster_ip: str = msgspec.field(default="", name="clusterIP")

    spec: Spec | None = None


class Event(Outline):
    involved_object: Json | None = None
    reason: str = ""
    message: str = ""
    type: str = ""
    count: Int = None


MicroTime = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)$")]


class Lease(Outline):
    class Spec(Outline):
        holder_identity: Text = None
        lease_duration_seconds: Int = None
        lease_transitions: Int = None
        acquire_time: MicroTime | None = None
        renew_time: MicroTime | None = None

    spec: Spec | None = None


class Budget(Outline):
    class Spec(Outline):
        min_available: IntOrPercent = None
        max_unavailable: IntOrPercent = None
        selector: Selector | None = None

    class Status(Outline):
        disruptions_allowed: Int = None
        current_healthy: Int = None
        desired_healthy: Int = None
        observed_generation: Int = None
        disrupted_pods: Texts = None
        conditions: Many = None

    spec: Spec | None = None
    status: Status | None = None


class Claim(Outline):
    class Spec(Outline):
        access_modes: list[str] | None = None
        resources: Resources | None = None
        storage_class_name: Text = None
        volume_name: str = ""

    spec: Spec | None = None


class Volume(Outline):
    class Spec(Outline):
        access_modes: list[str] | None = None
        capacity: Amounts = None
        node_affinity: Json | None = None
        claim_ref: Json | None = None

    spec: Spec | None = None


class StorageClass(Outline):
    provisioner: str = ""
    volume_binding_mode: Text = None
    reclaim_policy: Text = None
    allowed_topologies: Many = None
    parameters: Texts = None


class Attachment(Outline):
    class Spec(Outline):
        attacher: str = ""
        node_name: str = ""
        source: Json | None = None

    spec: Spec | None = None


class Driver(Outline):
    name: str = ""
    node_id: str = msgspec.field(default="", name="nodeID")
    allocatable: dict[str, int | None] | None = None
    topology_keys: list[str] | None = None


class CsiNode(Outline):
    class Spec(Outline):
        drivers: list[Driver] | None = None

    spec: Spec | None = None


class PriorityClass(Outline):
    value: int = 0
    global_default: Flag = None
    preemption_policy: Text = None


class Namespace(Outline):
    class Spec(Outline):
        finalizers: list[str] | None = None

    spec: Spec | None = None


def read(whole: Any, outline: type[T], kind: str) -> T:
    """The object's outline, or `Undecodable` where a field has the wrong type."""
    try:
        return msgspec.convert(whole, outline)
    except msgspec.ValidationError as error:
        raise Undecodable(f'{kind} in version "v1" cannot be handled as a {kind}: {error}') from error
