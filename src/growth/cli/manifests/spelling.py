"""Older spellings of kinds that people still have in their files, read as what they mean today."""

from typing import Any, Final

from growth.api import names
from growth.api.kinds import Json

_OLD_POLICY: Final = "policy/v1beta1"
# An API group needs a dot, so no server ever served the first; Karpenter served the second until its 1.0, Kubernetes the third
# until its 1.25.
SPELLINGS: Final = {
    "growth/v1alpha1": f"{names.GROWTH}/v1alpha1",
    "karpenter.sh/v1beta1": f"{names.KARPENTER}/v1",
    _OLD_POLICY: "policy/v1",
}
_POLICIES: Final = {"WhenUnderutilized": "WhenEmptyOrUnderutilized"}
_ANY_CLASS: Final = {"group": names.KWOK_CLASS_GROUP, "kind": "KWOKNodeClass", "name": "default"}


def respelled(body: Json, api_version: str) -> Json:
    """The object in today's words. `body` is changed.

    From `policy/v1beta1`: an empty selector selected no pod, as none does today.

    From Karpenter's v1beta1: `expireAfter` has moved into the template, a node class is named by its group, one policy has another
    name, and the kubelet's settings belong to the node class. What examples leave out (name, node class) is filled in.
    """
    body["apiVersion"] = SPELLINGS[api_version]
    if api_version == _OLD_POLICY:
        _respell_budget(body)
    if api_version.startswith(f"{names.KARPENTER}/"):
        meta = body.setdefault("metadata", {})
        if isinstance(meta, dict) and body.get("kind") == "NodePool":
            meta.setdefault("name", names.DEFAULT_POOL)
        spec = body.get("spec")
        if isinstance(spec, dict):
            template = spec.get("template")
            inner = template.get("spec") if isinstance(template, dict) else spec
            if isinstance(inner, dict):
                _respell_template(inner, spec)
    return body


def _respell_budget(body: Json) -> None:
    spec = body.get("spec")
    if isinstance(spec, dict):
        selector = spec.get("selector")
        if isinstance(selector, dict) and not any(selector.values()):
            del spec["selector"]


def _respell_template(template: Json, spec: Json) -> None:
    template.pop("kubelet", None)
    reference: Any = template.setdefault("nodeClassRef", dict(_ANY_CLASS))
    if isinstance(reference, dict) and "group" not in reference:
        reference["group"] = str(reference.pop("apiVersion", "")).partition("/")[0] or names.KWOK_CLASS_GROUP
    disruption = spec.get("disruption")
    if isinstance(disruption, dict):
        if "expireAfter" in disruption:
            template.setdefault("expireAfter", disruption.pop("expireAfter"))
        policy = disruption.get("consolidationPolicy")
        disruption["consolidationPolicy"] = _POLICIES.get(policy, policy) if policy else "WhenEmptyOrUnderutilized"
