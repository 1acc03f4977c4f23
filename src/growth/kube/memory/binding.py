"""Binding a pod to a node, as a scheduler does: once, and not while the pod is gated or being deleted."""

from growth.api.kinds import Json
from growth.kube.errors import BadRequest, Conflict, ServerError
from growth.kube.memory import failures
from growth.kube.memory.cluster import Cluster
from growth.kube.memory.resources import Resource
from growth.kube.memory.store import Stored


def bind(cluster: Cluster, pods: Resource, key: tuple[str, str], binding: Json) -> Stored:
    """The bound pod; `binding` is the Binding object, whose uid and resourceVersion are preconditions."""
    stored = cluster.store.get(pods.id, key)
    target, asked = binding.get("target") or {}, binding.get("metadata") or {}
    if not isinstance(target, dict) or not isinstance(asked, dict):
        raise BadRequest("Binding: target and metadata are objects")
    if not target.get("name"):
        raise ServerError("target.name: Required value", reason="InternalError")
    if target.get("kind") not in {None, "", "Node"}:
        raise ServerError(
            f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"',
            reason="InternalError",
        )
    if stored is None:
        raise failures.not_found(pods, key[1])
    pod = stored.object
    metadata, spec = pod["metadata"], pod["spec"]
    if asked.get("uid") and asked["uid"] != metadata["uid"]:
        raise failures.conflict(
            pods,
            key[1],
            f"Precondition failed: UID in precondition: {asked['uid']}, UID in object meta: {metadata['uid']}",
        )
    if asked.get("resourceVersion") and asked["resourceVersion"] != metadata["resourceVersion"]:
        raise failures.conflict(
            pods,
            key[1],
            f"Precondition failed: ResourceVersion in precondition: {asked['resourceVersion']}, "
            f"ResourceVersion in object meta: {metadata['resourceVersion']}",
        )
    if metadata.get("deletionTimestamp"):
        raise _refused(key[1], f"pod {key[1]} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(key[1], f'pod {key[1]} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(key[1], f"pod {key[1]} has non-empty .spec.schedulingGates")
    changed = dict(metadata)
    for field in ("annotations", "labels"):
        if asked.get(field):
            changed[field] = {**(metadata.get(field) or {}), **asked[field]}
    status = dict(pod.get("status") or {})
    others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": cluster.now()}
    status["conditions"] = [*others, scheduled]
    new = {**pod, "metadata": changed, "spec": {**spec, "nodeName": target["name"]}, "status": status}
    return cluster.put(pods, key, new)


def _refused(name: str, text: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on pods/binding "{name}": {text}',
        details={"name": name, "kind": "pods/binding"},
    )
