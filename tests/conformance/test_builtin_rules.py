"""Laws of built-in kinds that Growth and its users lean on: owners, priorities, workloads, leases, events, budgets."""

import pytest

from growth.api.kinds import Json, Kind
from growth.kube.errors import BadRequest, Forbidden, Invalid, TooManyRequests
from tests.conformance.kinds import BUDGET, CONFIG_MAP, DEPLOYMENT, EVENT, LEASE, NODE, POD, POD_TEMPLATE, REPLICA_SET
from tests.conformance.test_patches import deployment
from tests.conformance.world import World, name_of, refused

PRIORITY_CLASS: Kind[Json] = Kind(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False, type=dict
)
DAEMON_SET: Kind[Json] = Kind("apps", "v1", "DaemonSet", "daemonsets", namespaced=True, type=dict)
STORAGE_CLASS: Kind[Json] = Kind("storage.k8s.io", "v1", "StorageClass", "storageclasses", namespaced=False, type=dict)
CLAIM: Kind[Json] = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", namespaced=True, type=dict)

OWNER: Json = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u-1"}


@pytest.mark.parametrize(
    ("owners", "field"),
    [
        ([{**OWNER, "uid": ""}], "metadata.ownerReferences.uid"),
        ([{**OWNER, "name": ""}], "metadata.ownerReferences.name"),
        ([{**OWNER, "kind": ""}], "metadata.ownerReferences.kind"),
        ([{**OWNER, "controller": True}, {**OWNER, "uid": "u-2", "controller": True}], "metadata.ownerReferences"),
    ],
)
async def test_owners_are_named_in_full(world: World, owners: list[Json], field: str) -> None:
    """An owner has a kind, a name and a uid, and at most one owner controls."""
    await refused(Invalid, world.config_map(ownerReferences=owners), field=field)


async def test_a_priority_comes_from_its_class(world: World) -> None:
    """A pod gets the value of the class that it names, and of the default class otherwise zero."""
    name = world.name("class")
    await world.api.create(PRIORITY_CLASS, {"metadata": {"name": name}, "value": 77})
    assert (await world.pod(spec={"priorityClassName": name}))["spec"]["priority"] == 77
    assert (await world.pod())["spec"]["priority"] == 0


async def test_an_unknown_priority_class_is_forbidden(world: World) -> None:
    """A pod that names a class that does not exist is refused."""
    error = await refused(Forbidden, world.pod(spec={"priorityClassName": "no-such-class"}))
    assert "no-such-class" in error.message


async def test_the_systems_priorities_exist(world: World) -> None:
    """system-node-critical stands above system-cluster-critical, and both above what users may set."""
    node = await world.api.get(PRIORITY_CLASS, "system-node-critical")
    cluster = await world.api.get(PRIORITY_CLASS, "system-cluster-critical")
    assert node["value"] > cluster["value"] > 1_000_000_000


async def test_a_workload_selects_its_own_pods(world: World) -> None:
    """A Deployment whose template lacks the labels of its selector is refused."""
    body = deployment(world.name("d"))
    body["spec"]["template"]["metadata"]["labels"] = {"app": "other"}
    call = world.api.create(DEPLOYMENT, body, namespace=world.namespace)
    await refused(Invalid, call, field="spec.template.metadata.labels")


async def test_a_workloads_selector_stands(world: World) -> None:
    """A Deployment's selector cannot change."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    labels = {"app": "other"}
    patch = {"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}}
    call = world.api.patch(DEPLOYMENT, name_of(made), patch, namespace=world.namespace)
    await refused(Invalid, call, field="spec.selector")


async def test_a_workload_gets_the_usual_defaults(world: World) -> None:
    """A Deployment has one replica and a rolling update of a quarter unless it says otherwise."""
    made = await world.api.create(DEPLOYMENT, deployment(world.name("d")), namespace=world.namespace)
    assert made["spec"]["replicas"] == 1
    rolling = {"maxSurge": "25%", "maxUnavailable": "25%"}
    assert made["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"


@pytest.mark.parametrize("kind", [REPLICA_SET, DAEMON_SET], ids=str)
async def test_other_workloads_count_generations_too(world: World, kind: Kind[Json]) -> None:
    """ReplicaSets and DaemonSets count changes of their specs."""
    made = await world.api.create(kind, deployment(world.name("w")), namespace=world.namespace)
    assert made["metadata"]["generation"] == 1
    changed = await world.api.patch(kind, name_of(made), {"spec": {"minReadySeconds": 5}}, namespace=world.namespace)
    assert changed["metadata"]["generation"] == 2


async def test_a_template_of_pods_counts_its_generations(world: World) -> None:
    """A PodTemplate gets the defaults of a pod's spec; its generation grows with its template and with nothing else."""
    body = {"metadata": {"name": world.name("t")}, "template": deployment("t")["spec"]["template"]}
    made = await world.api.create(POD_TEMPLATE, body, namespace=world.namespace)
    assert made["metadata"]["generation"] == 1
    assert made["template"]["spec"]["restartPolicy"] == "Always"
    change: Json = {"metadata": {"labels": {"a": "b"}}}
    labelled = await world.api.patch(POD_TEMPLATE, name_of(made), change, namespace=world.namespace)
    assert labelled["metadata"]["generation"] == 1
    change = {"template": {"spec": {"terminationGracePeriodSeconds": 5}}}
    changed = await world.api.patch(POD_TEMPLATE, name_of(made), change, namespace=world.namespace)
    assert changed["metadata"]["generation"] == 2


async def test_a_template_of_pods_has_pods_that_can_be(world: World) -> None:
    """A PodTemplate without containers is refused, naming the field."""
    body = {"metadata": {"name": world.name("t")}, "template": {"spec": {"containers": []}}}
    call = world.api.create(POD_TEMPLATE, body, namespace=world.namespace)
    await refused(Invalid, call, field="template.spec.containers")


async def test_a_lease_keeps_its_times(world: World) -> None:
    """A Lease's times keep their microseconds."""
    spec = {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "leaseTransitions": 3,
        "acquireTime": "2026-01-02T03:04:05.678901Z",
        "renewTime": "2026-01-02T03:04:06.000000Z",
    }
    made = await world.api.create(LEASE, {"metadata": {"name": "l"}, "spec": spec}, namespace=world.namespace)
    assert made["spec"] == spec


async def test_a_lease_has_a_duration_above_zero(world: World) -> None:
    """A duration of zero is refused, naming the field."""
    body = {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 0, "holderIdentity": "me"}}
    call = world.api.create(LEASE, body, namespace=world.namespace)
    await refused(Invalid, call, field="spec.leaseDurationSeconds")


async def test_an_event_is_about_something_in_its_namespace(world: World) -> None:
    """An event about an object of another namespace than its own is refused."""
    about = {"kind": "Pod", "name": "p", "namespace": "elsewhere"}
    body = {"metadata": {"name": "e"}, "involvedObject": about, "reason": "R", "type": "Normal"}
    await refused(Invalid, world.api.create(EVENT, body, namespace=world.namespace), field="involvedObject.namespace")


async def test_an_event_about_the_cluster_lives_in_default(world: World) -> None:
    """Events about cluster-scoped objects carry no namespace of the object and live in `default`."""
    about = {"kind": "Node", "name": "n"}
    name = world.name("event")
    body = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "type": "Normal"}
    made = await world.api.create(EVENT, body, namespace="default")
    assert name_of(made) == name
    await world.api.delete(EVENT, name, namespace="default")


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec"),
        ({"minAvailable": -1}, "spec.minAvailable"),
        ({"maxUnavailable": "150%"}, "spec.maxUnavailable"),
        ({"minAvailable": "half"}, "spec.minAvailable"),
    ],
)
async def test_a_budget_is_checked(world: World, spec: Json, field: str) -> None:
    """A budget has one bound, a count or a percentage."""
    body = {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, **spec}}
    await refused(Invalid, world.api.create(BUDGET, body, namespace=world.namespace), field=field)


async def test_an_empty_selector_of_a_budget_means_all(world: World) -> None:
    """A budget with an empty selector holds every pod of its namespace."""
    made = await world.pod(spec={"nodeName": "n"}, labels={"any": "thing"})
    ready = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    await world.api.patch(POD, name_of(made), ready, namespace=world.namespace, subresource="status")
    body = {"metadata": {"name": "all"}, "spec": {"maxUnavailable": 0, "selector": {}}}
    held = await world.api.create(BUDGET, body, namespace=world.namespace)
    seen = {"status": {"disruptionsAllowed": 0, "observedGeneration": held["metadata"]["generation"]}}
    await world.api.patch(BUDGET, "all", seen, namespace=world.namespace, subresource="status")
    await refused(TooManyRequests, world.api.evict(name_of(made), namespace=world.namespace))


async def test_quantities_are_written_the_usual_way(world: World) -> None:
    """What a person writes as 1000m or 1024Mi is kept in its shortest form."""
    name = world.name("node")
    capacity = {"cpu": "1000m", "memory": "1024Mi", "pods": "110", "example.com/gpu": "2", "ephemeral-storage": "1e3"}
    made = await world.api.create(NODE, {"metadata": {"name": name}, "status": {"capacity": capacity}})
    assert made["status"]["capacity"] == {
        "cpu": "1",
        "memory": "1Gi",
        "pods": "110",
        "example.com/gpu": "2",
        "ephemeral-storage": "1e3",
    }


async def test_a_quantity_that_is_none_is_refused(world: World) -> None:
    """A request that is no quantity cannot be read: BadRequest."""
    resources = {"requests": {"cpu": "lots"}}
    call = world.pod(spec={"containers": [{"name": "main", "image": "img", "resources": resources}]})
    await refused(BadRequest, call)


async def test_a_field_of_a_wrong_type_is_a_bad_request(world: World) -> None:
    """A built-in object that cannot be decoded is a BadRequest, not an Invalid one."""
    body = {"metadata": {"name": "x"}, "data": {"a": 1}}
    await refused(BadRequest, world.api.create(CONFIG_MAP, body, namespace=world.namespace))
    await refused(BadRequest, world.pod(spec={"terminationGracePeriodSeconds": "30"}))


async def test_a_null_among_texts_is_an_empty_text(world: World) -> None:
    """In a map of texts of a built-in kind, a null at creation is stored as an empty text."""
    assert (await world.config_map(data={"a": None}))["data"] == {"a": ""}


async def test_what_is_empty_is_left_out(world: World) -> None:
    """Empty maps and lists of built-in kinds are not kept."""
    made = await world.config_map(data={}, labels={}, annotations={}, finalizers=[], ownerReferences=[])
    assert "data" not in made
    assert {"labels", "annotations", "finalizers", "ownerReferences"}.isdisjoint(made["metadata"])


async def test_a_storage_class_binds_at_once_unless_told(world: World) -> None:
    """volumeBindingMode is Immediate and reclaimPolicy Delete by default."""
    made = await world.api.create(STORAGE_CLASS, {"metadata": {"name": world.name("sc")}, "provisioner": "x.invalid/y"})
    assert (made["volumeBindingMode"], made["reclaimPolicy"]) == ("Immediate", "Delete")


async def test_a_volume_claim_starts_pending(world: World) -> None:
    """A new claim is Pending, and guarded by the finalizer that keeps volumes in use."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made = await world.api.create(CLAIM, {"metadata": {"name": "c"}, "spec": spec}, namespace=world.namespace)
    assert made["status"]["phase"] == "Pending"
    assert made["spec"]["volumeMode"] == "Filesystem"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
