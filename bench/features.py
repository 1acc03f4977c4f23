"""How often each rule occurs in generated scenarios: one count for each pending pod, pool, node or DaemonSet that has it."""

import collections
from collections.abc import Iterable, Iterator

from bench.scenarios import PREFERRED, REQUIRED
from growth.api.kinds import Json


def of(objects: Iterable[Json]) -> collections.Counter[str]:
    """The rules of a scenario, each with the number of objects that state it."""
    found: collections.Counter[str] = collections.Counter()
    for each in objects:
        match each["kind"]:
            case "NodePool":
                found.update(set(_of_pool(each["spec"])))
            case "Pod" if "nodeName" in each["spec"]:
                found["bound pods"] += 1
            case "Pod":
                found.update(set(_of_pod(each["spec"])))
            case "Node":
                found["nodes"] += 1
                found["nodes with taints"] += bool(each["spec"].get("taints"))
            case "DaemonSet":
                found["DaemonSets"] += 1
            case _:
                pass
    return found


def _of_pool(spec: Json) -> Iterator[str]:
    yield "pools"
    template = spec["template"]
    for each in template["spec"]["requirements"]:
        yield f"pool requirement {each['operator']}"
        if "minValues" in each:
            yield "pool minValues"
    for taint in template["spec"].get("taints", []):
        yield f"pool taint {taint['effect']}"
    if template["spec"].get("startupTaints"):
        yield "pool startup taint"
    if template.get("metadata"):
        yield "pool labels"
    if spec.get("weight"):
        yield "pool weight"
    yield from (f"pool limit {name}" for name in spec.get("limits", {}))


def _of_pod(spec: Json) -> Iterator[str]:
    affinity = spec.get("affinity", {})
    on = affinity.get("nodeAffinity", {})
    terms = on.get(REQUIRED, {}).get("nodeSelectorTerms", [])
    yield from (f"node affinity {each['operator']}" for term in terms for each in term["matchExpressions"])
    if len(terms) > 1:
        yield "node affinity with alternatives"
    wishes = [each["preference"] for each in on.get(PREFERRED, [])]
    yield from (f"preferred node affinity {each['operator']}" for wish in wishes for each in wish["matchExpressions"])
    for field, word in (("podAffinity", "affinity"), ("podAntiAffinity", "anti-affinity")):
        rules = affinity.get(field, {})
        yield from (f"{word} by {each['topologyKey']}" for each in rules.get(REQUIRED, []))
        yield from (f"preferred {word}" for _ in rules.get(PREFERRED, []))
        if any("namespaceSelector" in each or "namespaces" in each for each in rules.get(REQUIRED, [])):
            yield f"{word} across namespaces"
    for rule in spec.get("topologySpreadConstraints", []):
        wanted = "" if rule["whenUnsatisfiable"] == "DoNotSchedule" else "preferred "
        yield f"{wanted}spread by {rule['topologyKey']}"
        for name in ("minDomains", "matchLabelKeys", "nodeAffinityPolicy", "nodeTaintsPolicy"):
            if name in rule:
                yield f"spread {name}"
    for name, words in (
        ("nodeSelector", "node selector"),
        ("tolerations", "tolerations"),
        ("priority", "priority"),
        ("volumes", "volume claim"),
        ("initContainers", "init container"),
    ):
        if name in spec:
            yield words
    main = spec["containers"][0]
    if "ports" in main:
        yield "host port"
    if len(main["resources"]["requests"]) > 2:
        yield "extended resource"
