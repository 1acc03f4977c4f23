"""What is wrong with a NodePool, told by the field and what to do."""

from typing import Any

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.karpenter import NodePool
from growth.api.pools import node_limit_mode
from growth.cluster.hashes import VERSION, hash_of
from growth.controllers.pools.validation import problems

REF = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
ARCH = "kubernetes.io/arch"


def pool(
    *, labels: dict[str, str] | None = None, annotations: dict[str, str] | None = None, limits: Any = None, **spec: Any
) -> NodePool:
    replicas = spec.pop("replicas", None)
    template = {
        "metadata": {"labels": labels or {}, "annotations": spec.pop("node_annotations", {})},
        "spec": {"nodeClassRef": REF, "requirements": [], **spec},
    }
    body = {
        "metadata": {"name": "p", "annotations": annotations or {}},
        "spec": {"template": template, "limits": limits or {}, "replicas": replicas},
    }
    return convert(body, NodePool)


def need(key: str, operator: str, *values: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values), **more}


def taint(key: str, effect: str = "NoSchedule", value: str = "") -> dict[str, str]:
    return {"key": key, "effect": effect, "value": value}


@pytest.mark.parametrize(
    "good",
    [
        pool(),
        pool(labels={"team": "web"}, requirements=[need("team", "In", "web", "api")]),
        pool(requirements=[need(ARCH, "In", "amd64", "arm64"), need(ARCH, "NotIn", "arm64")]),
        pool(requirements=[need("cpu", "Gt", "3"), need("cpu", "Lt", "5")]),
        pool(requirements=[need("gone", "DoesNotExist"), need("gone", "NotIn", "x")]),
        pool(requirements=[need(names.CAPACITY_TYPE_LABEL, "In", "spot")]),
        pool(taints=[taint("a"), taint("a", "NoExecute")], startupTaints=[taint("b")]),
        pool(expireAfter="Never", terminationGracePeriod="30m"),
        pool(limits={"cpu": "100", "nodes": 3}),
        pool(annotations={names.NODE_LIMIT_MODE_ANNOTATION: "Soft"}),
    ],
)
def test_nothing_is_wrong_with_pools_that_machines_can_be_bought_from(good: NodePool) -> None:
    """No false alarm: a problem keeps a pool from being used."""
    assert problems(good) == ()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (
            pool(requirements=[need(ARCH, "In", "amd64"), need(ARCH, "In", "arm64")]),
            "requirements[1] (kubernetes.io/arch): no value",
        ),
        (
            pool(requirements=[need("beta.kubernetes.io/arch", "In", "amd64"), need(ARCH, "In", "arm64")]),
            "no value satisfies",
        ),
        (pool(labels={"team": "web"}, requirements=[need("team", "In", "api")]), "no value satisfies"),
        (pool(requirements=[need("cpu", "Gt", "5"), need("cpu", "Lt", "5")]), "no value satisfies"),
        (pool(requirements=[need("x", "Exists"), need("x", "DoesNotExist")]), "no value satisfies"),
        (pool(requirements=[need("x", "In")]), "operator In needs at least one value"),
        (pool(requirements=[need("x", "Gt", "many")]), "exactly one integer"),
        (pool(requirements=[need("x", "Roughly", "1")]), "operator Roughly is not known"),
        (pool(requirements=[need("x", "In", "not a value")]), "'not a value' is no label value"),
        (pool(requirements=[need("no/such/key", "Exists")]), "the key is no label name"),
        (pool(requirements=[need("karpenter.sh/nodepool", "In", "p")]), "restricted"),
        (pool(requirements=[need("kubernetes.io/hostname", "In", "a")]), "restricted"),
        (
            pool(requirements=[need("x", "In", "a", "b", minValues=2), need("x", "NotIn", "b", minValues=2)]),
            "minValues 2 cannot be met",
        ),
        (pool(labels={"karpenter.sh/nodepool": "p"}), "labels[karpenter.sh/nodepool]: the label is restricted"),
        (pool(labels={"team": "x" * 64}), "is no label value"),
        (pool(labels={"-": "x"}), "the key is no label name"),
        (
            pool(taints=[taint("a")], startupTaints=[taint("a", value="v")]),
            "startupTaints[0]: a:NoSchedule is listed twice",
        ),
        (pool(taints=[taint("a", "Never")]), "effect 'Never' is none of"),
        (pool(taints=[taint("a b")]), "'a b' is no name of a taint"),
        (pool(expireAfter="soon"), "spec.template.spec.expireAfter"),
        (pool(terminationGracePeriod="Never"), "spec.template.spec.terminationGracePeriod"),
        (pool(limits={"cpu": "lots"}), "spec.limits.cpu"),
        (pool(annotations={names.NODE_LIMIT_MODE_ANNOTATION: "soft"}), "'soft' is neither Hard nor Soft"),
    ],
)
def test_each_problem_names_its_field(bad: NodePool, said: str) -> None:
    """What, where, what to do; one problem for one fault."""
    (problem,) = problems(bad)
    assert said in problem


def test_all_problems_are_told_at_once() -> None:
    """Who mends a pool need not find its faults one by one."""
    bad = pool(labels={"-": "x"}, requirements=[need("x", "In")], taints=[taint("a"), taint("a")], limits={"cpu": "x"})
    assert len(problems(bad)) == 4


def test_the_annotation_counts_where_the_field_was_dropped() -> None:
    """Karpenter's own definition drops nodeLimitMode; a word that is neither is the safe one."""
    assert node_limit_mode(pool()) == "Hard"
    assert node_limit_mode(pool(annotations={names.NODE_LIMIT_MODE_ANNOTATION: "Soft"})) == "Soft"
    assert node_limit_mode(pool(annotations={names.NODE_LIMIT_MODE_ANNOTATION: "soft"})) == "Hard"


@pytest.mark.parametrize(
    "other",
    [
        pool(labels={"team": "web"}),
        pool(node_annotations={"note": "n"}),
        pool(taints=[taint("a")]),
        pool(startupTaints=[taint("a")]),
        pool(expireAfter="1h"),
        pool(terminationGracePeriod="1h"),
        pool(nodeClassRef={**REF, "name": "other"}),
    ],
)
def test_what_a_machine_cannot_take_on_changes_the_hash(other: NodePool) -> None:
    """Labels, annotations, taints, class, expiry and grace make another machine."""
    assert hash_of(other) != hash_of(pool())


def test_what_concerns_no_machine_leaves_the_hash() -> None:
    """Requirements, limits, the pool's own annotations, the order of taints and the spelling of durations."""
    assert hash_of(
        pool(requirements=[need(ARCH, "In", "arm64")], limits={"cpu": 1}, annotations={"a": "b"})
    ) == hash_of(pool())
    assert hash_of(pool(expireAfter="30m")) == hash_of(pool(expireAfter="1800s"))
    one, two = taint("a"), taint("b", value="v")
    assert hash_of(pool(taints=[one, two])) == hash_of(pool(taints=[two, one]))
    assert hash_of(pool(taints=[one])) != hash_of(pool(startupTaints=[one]))


def test_the_hash_is_the_same_in_every_release() -> None:
    """A change of it rolls no fleet only if the version changes with it: then this line does too."""
    assert (VERSION, hash_of(pool(labels={"team": "web"}, taints=[taint("a")]))) == ("growth-v1", "0628cb6baed57a11")
