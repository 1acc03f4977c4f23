"""What a pod is told whose do-not-disrupt annotation cannot be read: it protects nothing."""

from growth.api import names
from growth.api.events import WARNING
from growth.api.meta import ObjectReference
from growth.api.pods import POD
from growth.cluster.shapes import CachedPod
from growth.controllers.environment import Environment


def tell_unreadable(env: Environment, pod: CachedPod, fault: str) -> None:
    """`fault` is what is wrong with the value."""
    about = ObjectReference(
        api_version=POD.api_version, kind=POD.kind, namespace=pod.namespace, name=pod.name, uid=pod.uid
    )
    message = f"Invalid {names.DO_NOT_DISRUPT_ANNOTATION} annotation: {fault}, ignoring annotation"
    env.events.event(about, names.INVALID_DO_NOT_DISRUPT_ANNOTATION, message, type=WARNING)
