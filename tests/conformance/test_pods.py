"""Laws of pods: defaults, binding, eviction with disruption budgets, graceful deletion."""

import pytest

from growth.api.kinds import Json
from growth.kube.errors import Conflict, Invalid, NotFound, ServerError, TooManyRequests
from tests.conformance.kinds import BUDGET, NODE, POD
from tests.conformance.world import World, name_of, refused, uid_of


async def read(world: World, item: Json) -> Json:
    return await world.api.get(POD, name_of(item), namespace=world.namespace)


async def patched(world: World, item: Json, patch: Json, *, subresource: str = "") -> Json:
    return await world.api.patch(POD, name_of(item), patch, namespace=world.namespace, subresource=subresource)


async def report(world: World, item: Json, phase: str, *, ready: bool) -> Json:
    """What a kubelet would say of the pod."""
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return await patched(world, item, {"status": {"phase": phase, "conditions": conditions}}, subresource="status")


async def running(world: World, **metadata: object) -> Json:
    """A bound pod that runs and is ready."""
    made = await world.pod(spec={"nodeName": world.name("node")}, **metadata)
    return await report(world, made, "Running", ready=True)


async def budget(world: World, *, allowed: int, spec: Json | None = None, healthy: int = 3, desired: int = 3) -> Json:
    """A budget over pods labelled `app: x`, with the status that its controller would write."""
    body = {
        "metadata": {"name": world.name("pdb")},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}, **(spec or {})},
    }
    made = await world.api.create(BUDGET, body, namespace=world.namespace)
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": healthy,
        "observedGeneration": made["metadata"]["generation"],
    }
    return await world.api.patch(
        BUDGET, name_of(made), {"status": status}, namespace=world.namespace, subresource="status"
    )


async def test_a_pod_gets_the_usual_defaults(world: World) -> None:
    """What a person leaves out of a pod is filled in."""
    made = await world.pod()
    spec = made["spec"]
    assert (spec["restartPolicy"], spec["schedulerName"]) == ("Always", "default-scheduler")
    assert (spec["terminationGracePeriodSeconds"], spec["dnsPolicy"]) == (30, "ClusterFirst")
    assert made["status"]["phase"] == "Pending"
    assert made["status"]["qosClass"] == "BestEffort"


async def test_requests_default_to_limits(world: World) -> None:
    """A container with limits and no requests requests its limits, and its pod is Guaranteed."""
    limits = {"cpu": "1", "memory": "1Gi"}
    made = await world.pod(spec={"containers": [{"name": "main", "image": "img", "resources": {"limits": limits}}]})
    assert made["spec"]["containers"][0]["resources"]["requests"] == limits
    assert made["status"]["qosClass"] == "Guaranteed"


async def test_pods_tolerate_sick_nodes_for_a_while(world: World) -> None:
    """Every pod tolerates not-ready and unreachable nodes for 300 s unless it says otherwise."""
    tolerations = {each["key"]: each for each in (await world.pod())["spec"]["tolerations"]}
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        assert tolerations[key] == {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"containers": []}, "spec.containers"),
        ({"containers": [{"name": "main"}]}, "spec.containers[0].image"),
        ({"containers": [{"name": "Main_", "image": "img"}]}, "spec.containers[0].name"),
        ({"restartPolicy": "Sometimes"}, "spec.restartPolicy"),
        ({"activeDeadlineSeconds": 0}, "spec.activeDeadlineSeconds"),
    ],
)
async def test_a_pod_is_checked(world: World, spec: Json, field: str) -> None:
    """A pod that breaks a rule is refused, naming the field."""
    await refused(Invalid, world.pod(spec=spec), field=field)


async def test_requests_above_limits_are_refused(world: World) -> None:
    """A container cannot request more than its limit."""
    resources = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    containers = [{"name": "main", "image": "img", "resources": resources}]
    await refused(Invalid, world.pod(spec={"containers": containers}), field="spec.containers[0].resources.requests")


async def test_a_pods_spec_stands(world: World) -> None:
    """Most of a pod's spec cannot change: a patch of its node or its requests is refused, naming `spec`."""
    made = await world.pod()
    await refused(Invalid, patched(world, made, {"spec": {"nodeName": "n"}}), field="spec")
    more = {"containers": [{"name": "main", "image": "img", "resources": {"requests": {"cpu": "1"}}}]}
    await refused(Invalid, patched(world, made, {"spec": more}), field="spec")


async def test_a_scheduling_gate_can_only_go(world: World) -> None:
    """Gates may be removed from a pod that waits; none can be added."""
    made = await world.pod(spec={"schedulingGates": [{"name": "growth.dev/a"}]})
    freed = await patched(world, made, {"spec": {"schedulingGates": None}})
    assert "schedulingGates" not in freed["spec"]
    call = patched(world, made, {"spec": {"schedulingGates": [{"name": "growth.dev/b"}]}})
    await refused(Invalid, call)


async def test_a_gated_pod_names_no_node(world: World) -> None:
    """A pod with scheduling gates cannot be created on a node."""
    spec = {"schedulingGates": [{"name": "growth.dev/a"}], "nodeName": "n"}
    await refused(Invalid, world.pod(spec=spec), field="spec.nodeName")


async def test_a_binding_puts_a_pod_on_a_node(world: World) -> None:
    """A bound pod names its node and has the condition PodScheduled; the node need not exist."""
    made = await world.pod()
    node = world.name("node")
    await world.api.bind(name_of(made), namespace=world.namespace, node=node)
    found = await read(world, made)
    assert found["spec"]["nodeName"] == node
    scheduled = [c for c in found["status"]["conditions"] if c["type"] == "PodScheduled"]
    assert [condition["status"] for condition in scheduled] == ["True"]


async def test_a_pod_is_bound_once(world: World) -> None:
    """A second binding is a Conflict, to the same node as well."""
    made = await world.pod()
    await world.api.bind(name_of(made), namespace=world.namespace, node="first")
    for node in ("first", "second"):
        await refused(Conflict, world.api.bind(name_of(made), namespace=world.namespace, node=node), reason="Conflict")
    assert (await read(world, made))["spec"]["nodeName"] == "first"


async def test_a_binding_for_another_uid_conflicts(world: World) -> None:
    """A binding that names another uid is a Conflict."""
    made = await world.pod()
    await refused(Conflict, world.api.bind(name_of(made), namespace=world.namespace, node="n", uid="another"))
    await world.api.bind(name_of(made), namespace=world.namespace, node="n", uid=uid_of(made))


async def test_a_binding_needs_the_pod(world: World) -> None:
    """Binding a missing pod is NotFound."""
    await refused(NotFound, world.api.bind("nobody", namespace=world.namespace, node="n"))


async def test_a_gated_pod_cannot_be_bound(world: World) -> None:
    """A pod with scheduling gates is not bound: Conflict."""
    made = await world.pod(spec={"schedulingGates": [{"name": "growth.dev/a"}]})
    await refused(Conflict, world.api.bind(name_of(made), namespace=world.namespace, node="n"))


async def test_a_pod_being_deleted_cannot_be_bound(world: World) -> None:
    """A pod that is on its way out is not bound: Conflict."""
    made = await world.pod(finalizers=["growth.dev/a"])
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    await refused(Conflict, world.api.bind(name_of(made), namespace=world.namespace, node="n"))


async def test_a_pod_without_a_node_goes_at_once(world: World) -> None:
    """Nobody need stop a pod that was never bound."""
    made = await world.pod()
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    await refused(NotFound, read(world, made))


async def test_a_bound_pod_is_given_its_grace(world: World) -> None:
    """A deletion marks a bound pod with its own grace period and leaves it to the kubelet."""
    made = await world.pod(spec={"nodeName": "n", "terminationGracePeriodSeconds": 17})
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    found = await read(world, made)
    assert found["metadata"]["deletionGracePeriodSeconds"] == 17
    assert found["metadata"]["deletionTimestamp"]


async def test_a_grace_can_be_asked_for(world: World) -> None:
    """The deletion's own grace beats the pod's."""
    made = await world.pod(spec={"nodeName": "n"})
    await world.api.delete(POD, name_of(made), namespace=world.namespace, grace_seconds=5)
    assert (await read(world, made))["metadata"]["deletionGracePeriodSeconds"] == 5


async def test_a_grace_can_be_shortened(world: World) -> None:
    """A second deletion with less grace brings the end nearer; one with more changes nothing."""
    made = await world.pod(spec={"nodeName": "n"})
    for asked, left in ((20, 20), (10, 10), (15, 10)):
        await world.api.delete(POD, name_of(made), namespace=world.namespace, grace_seconds=asked)
        assert (await read(world, made))["metadata"]["deletionGracePeriodSeconds"] == left


async def test_a_pod_that_ends_while_it_is_deleted_waits_for_its_kubelet(world: World) -> None:
    """A second deletion that names no grace changes nothing, even when the pod has ended meanwhile."""
    made = await world.pod(spec={"nodeName": "n"})
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    await report(world, made, "Succeeded", ready=False)
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    assert (await read(world, made))["metadata"]["deletionGracePeriodSeconds"] == 30


async def test_no_grace_means_now(world: World) -> None:
    """A grace of 0 removes the pod, as a kubelet does when its containers have stopped."""
    made = await world.pod(spec={"nodeName": "n"})
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    await world.api.delete(POD, name_of(made), namespace=world.namespace, grace_seconds=0)
    await refused(NotFound, read(world, made))


async def test_a_finished_pod_goes_at_once(world: World) -> None:
    """A pod that has ended has nothing to stop."""
    made = await world.pod(spec={"nodeName": "n"})
    await report(world, made, "Succeeded", ready=False)
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    await refused(NotFound, read(world, made))


async def test_an_eviction_without_a_budget_is_a_deletion(world: World) -> None:
    """Without a budget an evicted pod is deleted with its grace, and says why it goes."""
    made = await running(world)
    await world.api.evict(name_of(made), namespace=world.namespace)
    found = await read(world, made)
    assert found["metadata"]["deletionGracePeriodSeconds"] == 30
    (target,) = (c for c in found["status"]["conditions"] if c["type"] == "DisruptionTarget")
    assert (target["status"], target["reason"]) == ("True", "EvictionByEvictionAPI")


async def test_an_eviction_can_name_its_grace(world: World) -> None:
    """The eviction's grace beats the pod's."""
    made = await running(world)
    await world.api.evict(name_of(made), namespace=world.namespace, grace_seconds=3)
    assert (await read(world, made))["metadata"]["deletionGracePeriodSeconds"] == 3


async def test_an_eviction_needs_the_pod(world: World) -> None:
    """Evicting a missing pod is NotFound."""
    await refused(NotFound, world.api.evict("nobody", namespace=world.namespace))


async def test_an_eviction_for_another_uid_conflicts(world: World) -> None:
    """An eviction that names another uid is a Conflict, and the pod stays."""
    made = await running(world)
    await refused(Conflict, world.api.evict(name_of(made), namespace=world.namespace, uid="another"))
    assert "deletionTimestamp" not in (await read(world, made))["metadata"]


async def test_a_budget_forbids_an_eviction(world: World) -> None:
    """With no disruption allowed an eviction is TooManyRequests with the cause DisruptionBudget; the pod stays."""
    made = await running(world, labels={"app": "x"})
    held = await budget(world, allowed=0)
    error = await refused(TooManyRequests, world.api.evict(name_of(made), namespace=world.namespace))
    assert error.code == 429
    (cause,) = error.details["causes"]
    assert cause["reason"] == "DisruptionBudget"
    assert name_of(held) in cause["message"]
    assert "deletionTimestamp" not in (await read(world, made))["metadata"]


async def test_a_budget_counts_an_eviction(world: World) -> None:
    """An allowed eviction takes one from the budget and is written down in it, so that the next sees it."""
    first, second = [await running(world, labels={"app": "x"}) for _ in range(2)]
    held = await budget(world, allowed=1)
    await world.api.evict(name_of(first), namespace=world.namespace)
    spent = await world.api.get(BUDGET, name_of(held), namespace=world.namespace)
    assert spent["status"]["disruptionsAllowed"] == 0
    assert list(spent["status"]["disruptedPods"]) == [name_of(first)]
    await refused(TooManyRequests, world.api.evict(name_of(second), namespace=world.namespace))


async def test_a_budget_holds_its_own_pods_only(world: World) -> None:
    """A pod that the budget does not select is evicted freely."""
    made = await running(world, labels={"app": "other"})
    await budget(world, allowed=0)
    await world.api.evict(name_of(made), namespace=world.namespace)
    assert "deletionTimestamp" in (await read(world, made))["metadata"]


async def test_two_budgets_over_a_pod_are_an_error(world: World) -> None:
    """A pod under two budgets cannot be evicted: the server says 500, and the pod stays."""
    made = await running(world, labels={"app": "x"})
    for _ in range(2):
        await budget(world, allowed=1)
    await refused(ServerError, world.api.evict(name_of(made), namespace=world.namespace))
    assert "deletionTimestamp" not in (await read(world, made))["metadata"]


async def test_a_budget_that_its_controller_has_not_seen_holds(world: World) -> None:
    """A budget whose status is older than its spec forbids evictions, with a time after which to try again."""
    made = await running(world, labels={"app": "x"})
    held = await budget(world, allowed=1)
    await world.api.patch(BUDGET, name_of(held), {"spec": {"minAvailable": 2}}, namespace=world.namespace)
    error = await refused(TooManyRequests, world.api.evict(name_of(made), namespace=world.namespace))
    assert error.retry_after_seconds is not None


async def test_a_pending_pod_is_evicted_past_its_budget(world: World) -> None:
    """A pod that does not run yet counts for no budget."""
    made = await world.pod(labels={"app": "x"})
    await budget(world, allowed=0)
    await world.api.evict(name_of(made), namespace=world.namespace)
    await refused(NotFound, read(world, made))


async def test_a_finished_pod_is_evicted_past_its_budget(world: World) -> None:
    """A pod that has ended counts for no budget."""
    made = await running(world, labels={"app": "x"})
    await report(world, made, "Failed", ready=False)
    await budget(world, allowed=0)
    await world.api.evict(name_of(made), namespace=world.namespace)
    await refused(NotFound, read(world, made))


async def test_a_pod_already_going_is_evicted_past_its_budget(world: World) -> None:
    """Evicting a pod that is being deleted is answered well and costs the budget nothing."""
    made = await running(world, labels={"app": "x"})
    await world.api.delete(POD, name_of(made), namespace=world.namespace)
    held = await budget(world, allowed=0)
    await world.api.evict(name_of(made), namespace=world.namespace)
    kept = await world.api.get(BUDGET, name_of(held), namespace=world.namespace)
    assert kept["status"] == held["status"]


async def test_a_sick_pod_is_evicted_when_the_healthy_suffice(world: World) -> None:
    """By default a running pod that is not ready goes freely while the budget is met, and is held while it is not."""
    made = await running(world, labels={"app": "x"})
    await report(world, made, "Running", ready=False)
    held = await budget(world, allowed=0, healthy=2, desired=3)
    await refused(TooManyRequests, world.api.evict(name_of(made), namespace=world.namespace))
    met = {"status": {"currentHealthy": 3}}
    await world.api.patch(BUDGET, name_of(held), met, namespace=world.namespace, subresource="status")
    await world.api.evict(name_of(made), namespace=world.namespace)


async def test_a_sick_pod_always_goes_where_the_budget_says_so(world: World) -> None:
    """With `unhealthyPodEvictionPolicy: AlwaysAllow` a pod that is not ready never waits."""
    made = await running(world, labels={"app": "x"})
    await report(world, made, "Running", ready=False)
    await budget(world, allowed=0, healthy=0, desired=3, spec={"unhealthyPodEvictionPolicy": "AlwaysAllow"})
    await world.api.evict(name_of(made), namespace=world.namespace)
    assert "deletionTimestamp" in (await read(world, made))["metadata"]


async def test_a_node_gets_its_capacity_from_its_status(world: World) -> None:
    """Allocatable defaults to capacity when a node is created with a status."""
    body = {"metadata": {"name": world.name("node")}, "status": {"capacity": {"cpu": "4", "memory": "8Gi"}}}
    made = await world.api.create(NODE, body)
    assert made["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi"}


async def test_taints_are_checked(world: World) -> None:
    """A taint with an unknown effect, and two taints alike, are refused (under `metadata`, of all places)."""
    twice = {"key": "a", "effect": "NoSchedule"}
    for taints, field in (
        ([{"key": "a", "effect": "Never"}], "metadata.taints[0].effect"),
        ([twice, {**twice, "value": "v"}], "metadata.taints[1]"),
    ):
        body = {"metadata": {"name": world.name("node")}, "spec": {"taints": taints}}
        await refused(Invalid, world.api.create(NODE, body), field=field)


async def test_a_provider_id_is_set_once(world: World) -> None:
    """A Node's providerID can be filled in and not changed after that."""
    name = world.name("node")
    await world.api.create(NODE, {"metadata": {"name": name}})
    await world.api.patch(NODE, name, {"spec": {"providerID": "x://1"}})
    await refused(Invalid, world.api.patch(NODE, name, {"spec": {"providerID": "x://2"}}), field="spec.providerID")
