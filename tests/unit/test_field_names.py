"""Every field that we read exists upstream under that very name.

Kubernetes' own kinds are held to the models generated from its OpenAPI document (read as source: the models cannot be
imported without the client that they belong to). Karpenter's kinds and the providers' are held to their field paths,
written down here as facts.
"""

import ast
import functools
import importlib.util
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any, Union

import msgspec
import pytest

from growth.api import (
    buffers,
    coordination,
    core,
    events,
    karpenter,
    linodeclasses,
    nodeclasses,
    nodes,
    overlays,
    pods,
    policy,
    volumes,
    workloads,
)
from growth.api.crds import all_crds
from growth.api.kinds import Json, Kind
from growth.api.meta import Struct

CORE_KINDS: dict[Kind[Any], str] = {
    pods.POD: "core_v1",
    pods.POD_TEMPLATE: "core_v1",
    nodes.NODE: "core_v1",
    core.NAMESPACE: "core_v1",
    core.CONFIG_MAP: "core_v1",
    core.SECRET: "core_v1",
    core.SERVICE: "core_v1",
    events.EVENT: "core_v1",
    volumes.PERSISTENT_VOLUME: "core_v1",
    volumes.PERSISTENT_VOLUME_CLAIM: "core_v1",
    volumes.STORAGE_CLASS: "storage_v1",
    volumes.CSI_NODE: "storage_v1",
    volumes.CSI_DRIVER: "storage_v1",
    volumes.VOLUME_ATTACHMENT: "storage_v1",
    policy.POD_DISRUPTION_BUDGET: "policy_v1",
    policy.PRIORITY_CLASS: "scheduling_v1",
    coordination.LEASE: "coordination_v1",
    workloads.DEPLOYMENT: "apps_v1",
    workloads.REPLICA_SET: "apps_v1",
    workloads.STATEFUL_SET: "apps_v1",
    workloads.DAEMON_SET: "apps_v1",
    workloads.JOB: "batch_v1",
    workloads.CRON_JOB: "batch_v1",
}
# Of a job's condition we read what all conditions share; this one it does not have.
LACKING = {"Job.status.conditions.observedGeneration"}

Model = dict[str, str]


@functools.cache
def models(module: str) -> dict[str, Model]:
    """The classes of one upstream module: field name to annotation."""
    package = importlib.util.find_spec("lightkube.models")
    assert package is not None
    assert package.submodule_search_locations
    source = pathlib.Path(next(iter(package.submodule_search_locations)), f"{module}.py").read_text()
    return {
        node.name: {
            field.target.id: ast.literal_eval(field.annotation)
            for field in node.body
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        }
        for node in ast.parse(source).body
        if isinstance(node, ast.ClassDef)
    }


def structs_in(hint: Any) -> Iterator[type[Struct]]:
    """The structs that a type is made of, whatever lists, maps and choices are around them."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    elif typing.get_origin(hint) in (Union, types.UnionType, tuple, dict, typing.Annotated):
        for argument in typing.get_args(hint):
            yield from structs_in(argument)


def unknown_fields(struct: type[Struct], *, module: str, model: str, path: str) -> Iterator[str]:
    """The paths of our fields that the upstream model lacks, down through nested structs."""
    fields = models(module)[model]
    hints = typing.get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        here = f"{path}.{field.encode_name}"
        # The generator of the models puts an underscore behind Python's keywords.
        upstream = fields.get(field.encode_name, fields.get(f"{field.encode_name}_"))
        if upstream is None:
            yield here
            continue
        for inner in structs_in(hints[field.name]):
            named = re.findall(r"(?:(\w+)\.)?(\w+)", re.sub(r"\b(Optional|List|Dict)\b", "", upstream))
            inner_module, inner_model = next((m or module, c) for m, c in named if c in models(m or module))
            yield from unknown_fields(inner, module=inner_module, model=inner_model, path=here)


@pytest.mark.parametrize(("kind", "module"), CORE_KINDS.items(), ids=str)
def test_kubernetes_knows_every_field_that_we_read(kind: Kind[Any], module: str) -> None:
    """A name that upstream does not have would silently read as empty for ever."""
    found = unknown_fields(kind.type, module=module, model=kind.kind, path=kind.kind)
    assert set(found) - LACKING == set()


def test_a_wrong_name_deep_inside_is_found() -> None:
    """The walk goes through lists, maps and choices: it would notice."""

    class Inner(Struct, frozen=True):
        cpu_amount: int = 0

    class Spec(Struct, frozen=True):
        containers: tuple[Inner, ...] = ()
        node_name: str | None = None

    class Planted(Struct, frozen=True):
        spec: Spec | None = None

    found = list(unknown_fields(Planted, module="core_v1", model="Pod", path="Pod"))
    assert found == ["Pod.spec.containers.cpuAmount"]


def test_every_kind_is_served_where_we_look_for_it() -> None:
    """Group and version of our constants are those of the upstream module, the plural is the one that all such kinds have."""
    for kind, module in CORE_KINDS.items():
        group = kind.group.split(".")[0] or "core"
        assert f"{group}_{kind.version}" == module
        assert kind.plural == re.sub(r"s$", "se", kind.kind.lower()) + "s"


# --- Karpenter's kinds and the providers', as facts

CONDITION = "type status reason message lastTransitionTime observedGeneration"
TAINT = "key value effect timeAdded"
CLASS_REF = "group kind name"
DISK = "diskID size label filesystem"


def paths(prefix: str, fields: str) -> set[str]:
    """`prefix` itself and its fields below it."""
    return {prefix, *(f"{prefix}.{field}" for field in fields.split())}


STATUS = {"status", *paths("status.conditions", CONDITION)}
FACTS: dict[Kind[Any], set[str]] = {
    karpenter.NODE_POOL: {
        *paths("spec", "template disruption limits weight replicas"),
        *paths("spec.template", "metadata spec"),
        *paths("spec.template.metadata", "labels annotations"),
        *paths(
            "spec.template.spec", "requirements nodeClassRef taints startupTaints expireAfter terminationGracePeriod"
        ),
        *paths("spec.template.spec.requirements", "key operator values minValues"),
        *paths("spec.template.spec.nodeClassRef", CLASS_REF),
        *paths("spec.template.spec.taints", TAINT),
        *paths("spec.template.spec.startupTaints", TAINT),
        *paths("spec.disruption", "consolidateAfter consolidationPolicy budgets"),
        *paths("spec.disruption.budgets", "nodes schedule duration reasons"),
        *paths("status", "resources nodes nodeClassObservedGeneration"),
        *STATUS,
        "spec.disruption.nodeLimitMode",  # ours
    },
    karpenter.NODE_CLAIM: {
        *paths("spec", "requirements resources nodeClassRef taints startupTaints expireAfter terminationGracePeriod"),
        *paths("spec.requirements", "key operator values minValues"),
        *paths("spec.resources", "requests"),
        *paths("spec.nodeClassRef", CLASS_REF),
        *paths("spec.taints", TAINT),
        *paths("spec.startupTaints", TAINT),
        *paths("status", "nodeName providerID imageID capacity allocatable lastPodEventTime"),
        *STATUS,
    },
    overlays.NODE_OVERLAY: {
        *paths("spec", "requirements price priceAdjustment capacity weight"),
        *paths("spec.requirements", "key operator values"),
        *STATUS,
    },
    buffers.CAPACITY_BUFFER: {
        *paths("spec", "provisioningStrategy podTemplateRef scalableRef replicas percentage limits"),
        *paths("spec.podTemplateRef", "name"),
        *paths("spec.scalableRef", "apiGroup kind name"),
        *paths("status", "podTemplateRef replicas podTemplateGeneration provisioningStrategy"),
        *paths("status.podTemplateRef", "name"),
        *STATUS,
    },
    nodeclasses.KWOK_NODE_CLASS: {*paths("spec", "nodeRegistrationDelay"), *STATUS},
    nodeclasses.HETZNER_NODE_CLASS: {
        *paths("spec", "locations image sshKeys networks firewalls placementGroup publicNet backups maxPods labels"),
        *paths("spec", "userData inventory"),
        *paths("spec.image", "name selector"),
        *paths("spec.publicNet", "ipv4 ipv6"),
        *paths("spec.userData", "mode secretRef cloudProvider"),
        *paths("spec.userData.secretRef", "name"),
        *paths("spec.inventory", "name serverNumber serverType capacity architecture location monthlyPrice"),
        *paths("status", "learnedTypes"),
        *paths("status.learnedTypes", "name hash capacity allocatable"),
        *STATUS,
    },
    linodeclasses.LINODE_NODE_CLASS: {
        *paths("spec", "authorizedKeys authorizedUsers image backupsEnabled tags firewallID osDisk dataDisks"),
        *paths("spec", "diskEncryption configuration placementGroup vpcID ipv6Options swap_size kubelet lkeK8sVersion"),
        *paths("spec", "userData"),  # ours: upstream's instances cannot join
        *paths("spec.userData", "mode secretRef cloudProvider"),
        *paths("spec.userData.secretRef", "name"),
        *paths("spec.osDisk", DISK),
        *paths("spec.dataDisks", "sdb sdc sdd sde sdf sdg sdh"),
        *(path for letter in "bcdefgh" for path in paths(f"spec.dataDisks.sd{letter}", DISK)),
        *paths("spec.configuration", "kernel"),
        *paths("spec.placementGroup", "id compliant_only"),
        *paths("spec.ipv6Options", "enableSLAAC enableRanges isPublicIPv6"),
        *paths("spec.kubelet", "clusterDNS maxPods podsPerCore systemReserved kubeReserved evictionHard evictionSoft"),
        *paths("spec.kubelet", "evictionSoftGracePeriod evictionMaxPodGracePeriod cpuCFSQuota"),
        *paths("status", "linodeImages learnedTypes appliedTags"),
        *paths("status.learnedTypes", "name hash capacity allocatable"),  # ours
        *paths("status.linodeImages", "id label deprecated requirements"),
        *paths("status.linodeImages.requirements", "key operator values"),
        *STATUS,
    },
}


def declared(schema: Json, prefix: str = "") -> Iterator[str]:
    """The field paths of a CRD's schema."""
    for name, inner in schema.get("properties", {}).items():
        here = f"{prefix}.{name}" if prefix else name
        yield here
        yield from declared(inner.get("items", inner), here)


@pytest.mark.parametrize("kind", FACTS, ids=str)
def test_karpenters_kinds_have_karpenters_fields(kind: Kind[Any]) -> None:
    """No field less, so that no manifest loses one; no field more but those that are said to be ours."""
    (definition,) = (crd for crd in all_crds() if crd["metadata"]["name"] == str(kind))
    (version,) = definition["spec"]["versions"]
    found = set(declared(version["schema"]["openAPIV3Schema"]))
    assert found == FACTS[kind] | {"apiVersion", "kind", "metadata"}
