"""Where Growth and Karpenter differ on purpose, each case recognised from the scenario alone. For people: docs/differences.md.

An entry says about which pods it is, in which direction their verdict may differ, and what the scenario is without it:
there the two must agree on these pods. So an entry cannot excuse a difference that something else makes.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bench.scenarios import PREFERRED, REQUIRED, TIERS, kind_of
from growth.api import names
from growth.api.kinds import Json

Objects = tuple[Json, ...]
MORE: Final = "more"  # Growth places pods that Karpenter leaves
LESS: Final = "less"
PRESENT: Final = frozenset({"In", "Exists", "Gt", "Lt"})


class Scene:
    """A scenario, opened for questions."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.pools = [each for each in objects if each["kind"] == "NodePool"]
        self.pods = [each for each in objects if each["kind"] == "Pod"]
        self.kinds = {kind_of(key_of(pod)): pod for pod in self.pods if "nodeName" not in pod["spec"]}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Entry:
    """A deliberate difference. `title` is its heading in docs/differences.md."""

    title: str
    directions: frozenset[str]
    applies: Callable[[Scene, Json], bool]
    without: Callable[[Objects], Objects]


def key_of(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def explaining(scene: Scene, pod: Json, direction: str) -> list[Entry]:
    """The entries that may make the difference for a pod."""
    return [each for each in ENTRIES if direction in each.directions and each.applies(scene, pod)]


# -- what pods ask for ------------------------------------------------------------------------------------------------


def node_terms(pod: Json, which: str = REQUIRED) -> list[Json]:
    found = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(which, [])
    return found["nodeSelectorTerms"] if isinstance(found, dict) else [each["preference"] for each in found]


def pod_terms(pod: Json, field: str, which: str = REQUIRED) -> list[Json]:
    found = pod["spec"].get("affinity", {}).get(field, {}).get(which, [])
    return [each.get("podAffinityTerm", each) for each in found]


def expressions(pod: Json) -> Iterator[Json]:
    """Everything that the pod says about labels of nodes, required or preferred."""
    yield from _selected(pod)
    for term in (*node_terms(pod), *node_terms(pod, PREFERRED)):
        yield from term.get("matchExpressions", [])


def _selected(pod: Json) -> list[Json]:
    chosen = pod["spec"].get("nodeSelector", {})
    return [{"key": key, "operator": "In", "values": [value]} for key, value in chosen.items()]


def contradicts(pod: Json) -> bool:
    """Whether the node selector, a required term and a preference, taken together, leave a label no value."""
    return any(
        _conflict(_selected(pod), required, preferred)
        for required in [_said(term) for term in node_terms(pod)] or [[]]
        for preferred in ([], *(_said(term) for term in node_terms(pod, PREFERRED)))
    )


def consistent(pod: Json) -> Json | None:
    """The pod without terms and preferences that contradict; None where no required term is left."""
    kept = [term for term in node_terms(pod) if not _conflict(_selected(pod), _said(term))]
    if node_terms(pod) and not kept:
        return None
    wishes = [
        wish
        for wish in _wished(pod)
        if not any(_conflict(_selected(pod), _said(term), _said(wish["preference"])) for term in kept or [{}])
    ]
    affinity = pod["spec"].get("affinity", {})
    if "nodeAffinity" not in affinity:
        return pod
    on: Json = {PREFERRED: wishes}
    if kept:
        on[REQUIRED] = {"nodeSelectorTerms": kept}
    return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": on}}}


def _said(term: Json) -> list[Json]:
    found: list[Json] = term.get("matchExpressions", [])
    return found


def _conflict(*parts: Sequence[Json]) -> bool:
    together: dict[str, list[Json]] = {}
    for each in itertools.chain(*parts):
        together.setdefault(each["key"], []).append(each)
    return any(len(many) > 1 and not _satisfiable(many) for many in together.values())


def _satisfiable(many: Sequence[Json]) -> bool:
    values: set[str | None] = {None, "another", *map(str, range(-1, 20))}
    values |= {value for each in many for value in each.get("values", [])}
    return any(all(_meets(each, value) for each in many) for value in values)


def _meets(expression: Json, value: str | None) -> bool:
    listed = expression.get("values", [])
    match expression["operator"]:
        case "In":
            return value in listed
        case "NotIn":
            return value not in listed
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt":
            return value is not None and value.lstrip("-").isdigit() and int(value) > int(listed[0])
        case _:
            return value is not None and value.lstrip("-").isdigit() and int(value) < int(listed[0])


def about(term: Json, stated_by: Json, pod: Json) -> bool:
    """Whether an affinity term that one pod states is about another pod."""
    space = pod["metadata"]["namespace"]
    if "namespaceSelector" in term:
        wanted = term["namespaceSelector"].get("matchLabels", {})
        inside = space in term.get("namespaces", []) or _has(TIERS[space], wanted)
    else:
        inside = space in (term.get("namespaces") or [stated_by["metadata"]["namespace"]])
    return inside and selects(term["labelSelector"], pod["metadata"].get("labels", {}))


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches."""
    wanted = selector.get("matchExpressions", [])
    return _has(labels, selector.get("matchLabels", {})) and all(
        _meets(each, labels.get(each["key"])) for each in wanted
    )


def _has(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(key) == value for key, value in wanted.items())


# -- the cases --------------------------------------------------------------------------------------------------------


def _apart(pod: Json) -> list[Json]:
    return [each for each in pod_terms(pod, "podAntiAffinity") if each["topologyKey"] != names.HOSTNAME_LABEL]


def _kept_apart(scene: Scene, pod: Json) -> bool:
    return bool(_apart(pod)) or any(
        about(term, other, pod) for other in scene.pods for term in _apart(other) if "nodeName" not in other["spec"]
    )


def _asked_for(pod: Json) -> set[str]:
    """Labels of the user's own that the pod's node must have."""
    found = {each["key"] for each in expressions(pod) if each["operator"] in PRESENT}
    return found - names.WELL_KNOWN_LABELS - {names.NODE_POOL_LABEL}


def _excluded(pod: Json) -> set[str]:
    return {each["key"] for each in expressions(pod) if each["operator"] == "NotIn"}


def _invented(scene: Scene, pod: Json) -> bool:
    """Asks for a label of which another pod excludes a value."""
    return any(_asked_for(pod) & _excluded(other) for other in scene.pods)


def _uncompanied(objects: Objects) -> Objects:
    """Nobody excludes values of labels that others ask for."""
    asked = {key for pod in Scene(objects).pods for key in _asked_for(pod)}

    def change(pod: Json) -> Json:
        affinity = pod["spec"].get("affinity", {})
        if not node_terms(pod) and not node_terms(pod, PREFERRED):
            return pod
        on: Json = {PREFERRED: [{**each, "preference": kept(each["preference"])} for each in _wished(pod)]}
        if node_terms(pod):
            on[REQUIRED] = {"nodeSelectorTerms": [kept(term) for term in node_terms(pod)]}
        return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, "nodeAffinity": on}}}

    def kept(term: Json) -> Json:
        left = [each for each in _said(term) if each["operator"] != "NotIn" or each["key"] not in asked]
        return {"matchExpressions": left or [{"key": names.OS_LABEL, "operator": "In", "values": ["linux"]}]}

    return _each_pod(change)(objects)


def _wished(pod: Json) -> list[Json]:
    found: list[Json] = pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(PREFERRED, [])
    return found


def _limited_nodes(scene: Scene, _: Json) -> bool:
    return any("nodes" in pool["spec"].get("limits", {}) for pool in scene.pools)


def _limited(scene: Scene, _: Json) -> bool:
    return any(set(pool["spec"].get("limits", {})) - {"nodes"} for pool in scene.pools)


def _ranked(scene: Scene, _: Json) -> bool:
    return len({pod["spec"].get("priority", 0) for pod in scene.kinds.values()}) > 1


def _soft(pool: Json) -> bool:
    return any(taint["effect"] == "PreferNoSchedule" for taint in pool["spec"]["template"]["spec"].get("taints", []))


def _wishes(pod: Json) -> bool:
    rules = pod["spec"].get("affinity", {}).values()
    anyway = pod["spec"].get("topologySpreadConstraints", [])
    return any(each.get(PREFERRED) for each in rules) or any(
        each["whenUnsatisfiable"] == "ScheduleAnyway" for each in anyway
    )


def _alternatives(scene: Scene, pod: Json) -> bool:
    return len(node_terms(pod)) > 1 and (_wishes(pod) or any(map(_soft, scene.pools)))


def _softly_kept_out(scene: Scene, pod: Json) -> bool:
    """Has rules by domain, and a pool has a PreferNoSchedule taint."""
    rules = (*pod["spec"].get("topologySpreadConstraints", []), *pod_terms(pod, "podAffinity"))
    return any(map(_soft, scene.pools)) and any(each["topologyKey"] != names.HOSTNAME_LABEL for each in rules)


def _near_itself(_: Scene, pod: Json) -> bool:
    """Must be on one host with pods like itself."""
    return any(each["topologyKey"] == names.HOSTNAME_LABEL for each in pod_terms(pod, "podAffinity"))


def _by_domain(rule: Json) -> bool:
    return str(rule["topologyKey"]) != names.HOSTNAME_LABEL


def spreads(pod: Json) -> list[Json]:
    found: list[Json] = pod["spec"].get("topologySpreadConstraints", [])
    return found


def _spread_among_some(_: Scene, pod: Json) -> bool:
    """Spreads over those nodes only that its own selectors allow."""
    picky = pod["spec"].get("nodeSelector") or node_terms(pod)
    return bool(picky) and any(each.get("nodeAffinityPolicy") != "Ignore" for each in spreads(pod))


def _counts_others(scene: Scene, pod: Json) -> bool:
    """Is spread, by domain, among pods that do not state the same rule."""
    return any(
        _by_domain(rule)
        and other["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects(rule["labelSelector"], other["metadata"].get("labels", {}))
        and rule not in spreads(other)
        for rule in spreads(pod)
        for other in scene.pods
    )


def _near_a_domain(_: Scene, pod: Json) -> bool:
    return any(map(_by_domain, pod_terms(pod, "podAffinity")))


def _near_both(_: Scene, pod: Json) -> bool:
    return len(pod_terms(pod, "podAffinity")) > 1


# -- scenarios without them -------------------------------------------------------------------------------------------


def _each_pod(change: Callable[[Json], Json | None]) -> Callable[[Objects], Objects]:
    def changed(objects: Objects) -> Objects:
        found = (change(each) if each["kind"] == "Pod" else each for each in objects)
        return tuple(each for each in found if each is not None)

    return changed


def without_terms(field: str, kept: Callable[[int, Json], bool]) -> Callable[[Json], Json]:
    """Leaves out required terms of an affinity."""

    def change(pod: Json) -> Json:
        affinity = pod["spec"].get("affinity", {})
        terms = affinity.get(field, {}).get(REQUIRED)
        if not terms:
            return pod
        listed = terms["nodeSelectorTerms"] if isinstance(terms, dict) else terms
        left: Any = [each for at, each in enumerate(listed) if kept(at, each)]
        if isinstance(terms, dict):
            left = {"nodeSelectorTerms": left}
        rules = {**affinity[field], REQUIRED: left}
        return {**pod, "spec": {**pod["spec"], "affinity": {**affinity, field: rules}}}

    return change


def _unlimited(gone: Callable[[str], bool]) -> Callable[[Objects], Objects]:
    def change(each: Json) -> Json:
        if each["kind"] != "NodePool" or "limits" not in each["spec"]:
            return each
        limits = {name: limit for name, limit in each["spec"]["limits"].items() if not gone(name)}
        return {**each, "spec": {**each["spec"], "limits": limits}}

    return lambda objects: tuple(map(change, objects))


def _hard(objects: Objects) -> Objects:
    """Without taints that are only preferences."""
    found = []
    for each in objects:
        if each["kind"] == "NodePool" and _soft(each):
            template = each["spec"]["template"]
            taints = [taint for taint in template["spec"]["taints"] if taint["effect"] != "PreferNoSchedule"]
            template = {**template, "spec": {**template["spec"], "taints": taints}}
            found.append({**each, "spec": {**each["spec"], "template": template}})
        else:
            found.append(each)
    return tuple(found)


def _unranked(pod: Json) -> Json:
    return {**pod, "spec": {name: part for name, part in pod["spec"].items() if name != "priority"}}


def _with_spreads(change: Callable[[Json], Json | None]) -> Callable[[Json], Json]:
    def changed(pod: Json) -> Json:
        if not spreads(pod):
            return pod
        rules = [rule for rule in map(change, spreads(pod)) if rule is not None]
        return {**pod, "spec": {**pod["spec"], "topologySpreadConstraints": rules}}

    return changed


def left_out(objects: Objects, kinds: Iterable[str]) -> Objects:
    """The scenario without the pending pods of these kinds."""
    gone = set(kinds)
    return tuple(each for each in objects if each["kind"] != "Pod" or kind_of(key_of(each)) not in gone)


ENTRIES: Final = (
    Entry(
        title="Contradictions",
        directions=frozenset({LESS}),
        applies=lambda _, pod: contradicts(pod),
        without=_each_pod(consistent),
    ),
    Entry(
        title="Labels that nobody sets",
        directions=frozenset({LESS}),
        applies=_invented,
        without=_uncompanied,
    ),
    Entry(
        title="Anti-affinity by zone",
        directions=frozenset({MORE, LESS}),
        applies=_kept_apart,
        without=_each_pod(
            without_terms("podAntiAffinity", lambda _, term: term["topologyKey"] == names.HOSTNAME_LABEL)
        ),
    ),
    Entry(
        title="Several affinity terms",
        directions=frozenset({LESS}),
        applies=_near_both,
        without=_each_pod(without_terms("podAffinity", lambda at, _: at == 0)),
    ),
    Entry(
        title="Alternatives beside preferences",
        directions=frozenset({MORE}),
        applies=_alternatives,
        without=_each_pod(without_terms("nodeAffinity", lambda at, _: at == 0)),
    ),
    Entry(
        title="Topology in pools with soft taints",
        directions=frozenset({MORE, LESS}),
        applies=_softly_kept_out,
        without=_hard,
    ),
    Entry(
        title="Affinity by zone",
        directions=frozenset({MORE, LESS}),
        applies=_near_a_domain,
        without=_each_pod(without_terms("podAffinity", lambda _, term: not _by_domain(term))),
    ),
    Entry(
        title="Spread among some nodes",
        directions=frozenset({MORE, LESS}),
        applies=_spread_among_some,
        without=_each_pod(_with_spreads(lambda rule: {**rule, "nodeAffinityPolicy": "Ignore"})),
    ),
    Entry(
        title="Spread that counts other pods",
        directions=frozenset({MORE, LESS}),
        applies=_counts_others,
        without=_each_pod(_with_spreads(lambda rule: None if _by_domain(rule) else rule)),
    ),
    Entry(
        title="Affinity by host",
        directions=frozenset({MORE}),
        applies=_near_itself,
        without=_each_pod(without_terms("podAffinity", lambda _, term: term["topologyKey"] != names.HOSTNAME_LABEL)),
    ),
    Entry(
        title="Limits on nodes",
        directions=frozenset({LESS}),
        applies=_limited_nodes,
        without=_unlimited(lambda name: name == "nodes"),
    ),
    Entry(
        title="Limits on resources",
        directions=frozenset({MORE, LESS}),
        applies=_limited,
        without=_unlimited(lambda _: True),  # a limit on nodes that is left would make the other difference
    ),
    Entry(
        title="Priority",
        directions=frozenset({MORE, LESS}),
        applies=_ranked,
        without=_each_pod(_unranked),
    ),
)


def without(objects: Objects, titles: Iterable[str]) -> Objects:
    """The scenario without what these entries are about."""
    named = set(titles)
    for entry in ENTRIES:
        if entry.title in named:
            objects = entry.without(objects)
    return objects
