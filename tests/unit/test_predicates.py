"""kube-scheduler's rules, one by one, on plain values."""

from typing import Any

import msgspec
import pytest

from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.sim.predicates import Host, Scene, refusals, requests


def node(name: str = "n1", *, taints: tuple[Json, ...] = (), unschedulable: bool = False, **labels: str) -> Node:
    """A node of 4 cpu, 8Gi and 10 pods; labels with `__` for `/` and `_` for `.`."""
    named = {key.replace("__", "/").replace("_", "."): value for key, value in labels.items()}
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **named}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
        },
        Node,
    )


def pod(name: str = "p", *, on: str = "", labels: Json | None = None, cpu: str = "1", **spec: Any) -> Pod:
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "labels": labels or {"app": "web"}},
            "spec": {
                "nodeName": on,
                "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
                **spec,
            },
        },
        Pod,
    )


def rules(one: Pod, where: Node, *pods: Pod, nodes: tuple[Node, ...] = ()) -> list[str]:
    """The rules that refuse the pod, by their names, each once."""
    hosts = {node.metadata.name: Host.of(node) for node in (nodes or (where,))}
    for other in pods:
        hosts[other.spec.node_name].pods.append(other)
    scene = Scene(hosts=list(hosts.values()), namespaces={"default": {"team": "a"}, "other": {"team": "b"}})
    found = refusals(one, hosts[where.metadata.name], scene)
    return list(dict.fromkeys(refusal.split(":")[0].split(" of ")[0] for refusal in found))


def zones() -> tuple[Node, ...]:
    return (node("a", topology_kubernetes_io__zone="a"), node("b", topology_kubernetes_io__zone="b"))


ZONE = "topology.kubernetes.io/zone"
WEB: Json = {"matchLabels": {"app": "web"}}


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_a_taint_must_be_tolerated(toleration: Json, fits: bool) -> None:  # noqa: FBT001
    """Key, operator, value and effect decide; an empty key with Exists tolerates everything."""
    where = node(taints=({"key": "gpu", "value": "yes", "effect": "NoSchedule"},))
    assert (rules(pod(tolerations=[toleration]), where) == []) is fits


def test_a_soft_taint_refuses_nobody_and_a_cordon_does() -> None:
    """PreferNoSchedule is a wish; `unschedulable` is a taint in all but name."""
    assert rules(pod(), node(taints=({"key": "x", "effect": "PreferNoSchedule"},))) == []
    assert rules(pod(), node(unschedulable=True)) == ["taints"]
    tolerant = pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    assert rules(tolerant, node(unschedulable=True)) == []


@pytest.mark.parametrize(
    ("operator", "values", "fits"),
    [
        ("In", ["8", "16"], True),
        ("In", ["16"], False),
        ("NotIn", ["16"], True),
        ("Exists", [], True),
        ("DoesNotExist", [], False),
        ("Gt", ["7"], True),
        ("Gt", ["8"], False),
        ("Lt", ["9"], True),
        ("Lt", ["eight"], False),
    ],
)
def test_every_operator_of_node_affinity(operator: str, values: list[str], fits: bool) -> None:  # noqa: FBT001
    """In, NotIn, Exists, DoesNotExist, Gt and Lt as the server has them."""
    term = {"matchExpressions": [{"key": "cores", "operator": operator, "values": values}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    assert (rules(pod(affinity=affinity), node(cores="8")) == []) is fits


def test_terms_are_alternatives_and_an_empty_one_matches_nothing() -> None:
    """One term of several is enough; a missing label satisfies NotIn."""

    def affine(*terms: Json) -> Pod:
        required = {"nodeSelectorTerms": list(terms)}
        return pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})

    absent = {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["1"]}]}
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    wrong = {"matchExpressions": [{"key": "x", "operator": "Exists"}]}
    assert rules(affine(wrong, absent), node()) == []
    assert rules(affine(named), node()) == []
    assert rules(affine({}), node()) == ["labels"]


def test_requests_add_up_as_the_scheduler_adds_them() -> None:
    """Containers add up, init containers count by the largest, sidecars beside both, overhead on top."""
    one = msgspec.convert(
        {
            "spec": {
                "containers": [{"name": name, "resources": {"requests": {"cpu": "1"}}} for name in ("a", "b")],
                "initContainers": [
                    {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    {"name": "i", "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}},
                ],
                "overhead": {"cpu": "250m"},
            }
        },
        Pod,
    )
    assert requests(one.spec) == {"cpu": 3750, "memory": 1 << 30, "pods": 1}


def test_requests_of_the_whole_pod_take_the_place_of_the_sum() -> None:
    """Pod-level requests count where they are set."""
    assert requests(pod(resources={"requests": {"cpu": "3"}}).spec)["cpu"] == 3000


def test_room_is_what_the_others_leave() -> None:
    """The refusal names each resource that is short, the number of pods included."""
    host = Host.of(node())
    host.pods += [pod(f"p{number}", on="n1", cpu="350m") for number in range(10)]
    assert refusals(pod(), host, Scene(hosts=[host])) == [
        "room: pods needs 1, free 0",
        "room: cpu needs 1000, free 500",
    ]
    assert rules(pod(cpu="4"), node()) == []


def test_host_ports_clash_by_protocol_and_address() -> None:
    """The same port clashes unless protocol or address differ; all addresses clash with each."""

    def with_port(on: str = "", protocol: str = "TCP", ip: str = "") -> Pod:
        port = {"containerPort": 80, "hostPort": 80, "protocol": protocol, "hostIP": ip}
        return pod("q", on=on, containers=[{"name": "main", "ports": [port]}])

    assert rules(with_port(), node(), with_port("n1")) == ["ports"]
    assert rules(with_port(protocol="UDP"), node(), with_port("n1")) == []
    assert rules(with_port(ip="10.0.0.1"), node(), with_port("n1", ip="10.0.0.2")) == []
    assert rules(with_port(ip="10.0.0.1"), node(), with_port("n1")) == ["ports"]


def spread(**more: Any) -> list[Json]:
    return [{"maxSkew": 1, "topologyKey": ZONE, "labelSelector": WEB, **more}]


def test_spread_counts_from_the_emptiest_domain() -> None:
    """One more in the fuller zone would break the skew; in the emptier one it would not."""
    nodes = zones()
    running = pod("q", on="a")
    one = pod(topologySpreadConstraints=spread())
    assert rules(one, nodes[0], running, nodes=nodes) == ["spread"]
    assert rules(one, nodes[1], running, nodes=nodes) == []


def test_too_few_domains_count_as_an_empty_one() -> None:
    """With `minDomains` above the number of zones the emptiest counts zero."""
    nodes = zones()
    running = (pod("q", on="a"), pod("r", on="b"))
    assert rules(pod(topologySpreadConstraints=spread()), nodes[0], *running, nodes=nodes) == []
    needing = pod(topologySpreadConstraints=spread(minDomains=3))
    assert rules(needing, nodes[0], *running, nodes=nodes) == ["spread"]


def test_domains_that_the_pod_cannot_use_do_not_count_by_default() -> None:
    """Node affinity narrows the domains; taints do so only where the constraint honours them."""
    nodes = zones()
    running = pod("q", on="a")
    narrowed = pod(topologySpreadConstraints=spread(), nodeSelector={ZONE: "a"})
    assert rules(narrowed, nodes[0], running, nodes=nodes) == []
    tainted = (nodes[0], node("b", taints=({"key": "x", "effect": "NoSchedule"},), topology_kubernetes_io__zone="b"))
    assert rules(pod(topologySpreadConstraints=spread()), tainted[0], running, nodes=tainted) == ["spread"]
    honouring = pod(topologySpreadConstraints=spread(nodeTaintsPolicy="Honor"))
    assert rules(honouring, tainted[0], running, nodes=tainted) == []


def test_match_label_keys_narrow_who_is_counted() -> None:
    """Only pods with the same value of the key count, as for the pods of one revision."""
    nodes = zones()
    old = pod("q", on="a", labels={"app": "web", "rev": "1"})
    new = pod(labels={"app": "web", "rev": "2"}, topologySpreadConstraints=spread(matchLabelKeys=["rev"]))
    assert rules(new, nodes[0], old, nodes=nodes) == []


def term(**more: Any) -> Json:
    return {"topologyKey": ZONE, "labelSelector": WEB, **more}


def affine(kind: str, one: Json, **more: Any) -> Pod:
    return pod(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [one]}}, **more)


def test_affinity_wants_company_and_the_first_of_a_group_may_start() -> None:
    """With a partner in a zone only that zone fits; with none anywhere, a pod that matches itself may go anywhere."""
    nodes = zones()
    one = affine("podAffinity", term())
    assert rules(one, nodes[0], nodes=nodes) == []
    assert rules(one, nodes[1], pod("q", on="a"), nodes=nodes) == ["affinity"]
    lonely = affine("podAffinity", term(), labels={"app": "db"})
    assert rules(lonely, nodes[0], nodes=nodes) == ["affinity"]


def test_anti_affinity_works_both_ways() -> None:
    """Neither does the pod join those that it avoids, nor those that avoid it."""
    nodes = zones()
    avoiding = affine("podAntiAffinity", term())
    assert rules(avoiding, nodes[0], pod("q", on="a"), nodes=nodes) == ["anti-affinity"]
    assert rules(avoiding, nodes[1], pod("q", on="a"), nodes=nodes) == []
    running = affine("podAntiAffinity", term(), name="q", on="a", labels={"app": "db"})
    assert rules(pod(), nodes[0], running, nodes=nodes) == ["anti-affinity"]
    assert rules(pod(), nodes[1], running, nodes=nodes) == []


def test_terms_reach_other_namespaces_by_name_or_label() -> None:
    """Without either the term means the pod's own namespace."""
    nodes = zones()
    elsewhere = msgspec.structs.replace(pod("q", on="a"), metadata=OTHER)
    assert rules(affine("podAntiAffinity", term()), nodes[0], elsewhere, nodes=nodes) == []
    named = affine("podAntiAffinity", term(namespaces=["other"]))
    assert rules(named, nodes[0], elsewhere, nodes=nodes) == ["anti-affinity"]
    labelled = affine("podAntiAffinity", term(namespaceSelector={"matchLabels": {"team": "b"}}))
    assert rules(labelled, nodes[0], elsewhere, nodes=nodes) == ["anti-affinity"]


OTHER = msgspec.structs.replace(pod("q").metadata, namespace="other")
