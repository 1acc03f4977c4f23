"""Discovery: what is served, in the old documents and in the aggregated one that newer clients ask for first."""

from typing import Any, Final

from growth.api.kinds import Json
from growth.kube.memory.resources import VERBS, Catalogue, Resource

# The release whose behaviour this server follows.
VERSION: Final[Json] = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.3",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}

_CHANGE: Final = ["get", "patch", "update"]
# What answers without keeping anything: one question, one answer.
_REVIEWS: Final = {
    "authorization.k8s.io": (
        ("selfsubjectaccessreviews", "SelfSubjectAccessReview"),
        ("selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ),
    "authentication.k8s.io": (("selfsubjectreviews", "SelfSubjectReview"),),
}


def groups(catalogue: Catalogue) -> dict[str, list[str]]:
    """The versions of each named group, the preferred one first."""
    found: dict[str, list[str]] = {}
    for resource in catalogue:
        if resource.group and resource.version not in found.setdefault(resource.group, []):
            preferred = resource.version == resource.storage
            found[resource.group].insert(0 if preferred else len(found[resource.group]), resource.version)
    return {**found, **{group: ["v1"] for group in _REVIEWS}}


def group_document(name: str, versions: list[str]) -> Json:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"kind": "APIGroup", "apiVersion": "v1", "name": name, "versions": listed, "preferredVersion": listed[0]}


def group_list(catalogue: Catalogue) -> Json:
    listed = [group_document(name, versions) for name, versions in groups(catalogue).items()]
    for one in listed:
        del one["kind"], one["apiVersion"]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def _subresources(resource: Resource) -> list[tuple[str, str, str, str, list[str]]]:
    """Name, group, version and kind, verbs."""
    found: list[tuple[str, str, str, str, list[str]]] = []
    if resource.strategy.status:
        found.append(("status", "", "", resource.kind, _CHANGE))
    if resource.scale is not None:
        found.append(("scale", "autoscaling", "v1", "Scale", _CHANGE))
    if resource.id == ("", "pods"):
        found.append(("binding", "", "", "Binding", ["create"]))
        found.append(("eviction", "policy", "v1", "Eviction", ["create"]))
    if resource.id == ("", "namespaces"):
        found.append(("finalize", "", "", "Namespace", ["update"]))
    return found


def resource_list(catalogue: Catalogue, group: str, version: str) -> Json | None:
    """The resources of a group and version; None where there are none."""
    listed: list[Json] = []
    for resource in catalogue:
        if (resource.group, resource.version) != (group, version):
            continue
        entry: dict[str, Any] = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": list(VERBS),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        listed.append(entry)
        for name, sub_group, sub_version, kind, verbs in _subresources(resource):
            sub = {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced}
            if sub_group:
                sub |= {"group": sub_group, "version": sub_version}
            listed.append({**sub, "kind": kind, "verbs": verbs})
    for plural, kind in _REVIEWS.get(group, ()) if version == "v1" else ():
        listed.append(
            {"name": plural, "singularName": kind.lower(), "namespaced": False, "kind": kind, "verbs": ["create"]}
        )
    if not listed:
        return None
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def aggregated(catalogue: Catalogue, *, core: bool) -> Json:
    """Everything in one document: of the core group, or of all named groups."""
    known = {"": ["v1"]} if core else groups(catalogue)
    items: list[Json] = []
    for group, versions in known.items():
        entries: list[Json] = []
        for version in versions:
            resources = [_aggregated_resource(one) for one in catalogue if (one.group, one.version) == (group, version)]
            resources += [_aggregated_review(group, *one) for one in _REVIEWS.get(group, ())]
            entries.append({"version": version, "resources": resources, "freshness": "Current"})
        items.append({"metadata": {"name": group} if group else {}, "versions": entries})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_review(group: str, plural: str, kind: str) -> Json:
    return {
        "resource": plural,
        "responseKind": {"group": group, "version": "v1", "kind": kind},
        "scope": "Cluster",
        "singularResource": kind.lower(),
        "verbs": ["create"],
    }


def _aggregated_resource(resource: Resource) -> Json:
    entry: dict[str, Any] = {
        "resource": resource.plural,
        "responseKind": {"group": resource.group, "version": resource.version, "kind": resource.kind},
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(VERBS),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = [
        {
            "subresource": name,
            "responseKind": {"group": group or resource.group, "version": version or resource.version, "kind": kind},
            "verbs": verbs,
        }
        for name, group, version, kind, verbs in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry
