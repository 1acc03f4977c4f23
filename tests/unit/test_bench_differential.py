"""What the differential test stands on: how cases are recognised, taken out and made small."""

import pathlib
from collections.abc import Sequence
from typing import Any

import pytest

from bench import deliberate, features, scenarios, smaller
from bench.deliberate import ENTRIES, MORE, Scene, contradicts, explaining
from bench.differential import CONSEQUENCE, VARIATION
from bench.scenarios import PREFERRED, REQUIRED
from growth.api.kinds import Json

ZONE = "topology.kubernetes.io/zone"
DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "differences.md"


def pod(kind: int = 0, number: int = 0, **spec: Any) -> Json:
    name = f"kind-{kind}-{number:02}"
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}]
    labels = {"app": f"app-{kind}"}
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def on(*terms: Sequence[Json], wishes: Sequence[Sequence[Json]] = ()) -> Json:
    required = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    preferred = [{"weight": 1, "preference": {"matchExpressions": list(wish)}} for wish in wishes]
    return {"nodeAffinity": {REQUIRED: required, PREFERRED: preferred} if terms else {PREFERRED: preferred}}


def says(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_every_entry_stands_in_the_document() -> None:
    """What the program calls deliberate is explained to people under the same heading."""
    headings = {line.removeprefix("## ") for line in DOCUMENT.read_text().splitlines() if line.startswith("## ")}
    assert {entry.title for entry in ENTRIES} | {CONSEQUENCE, VARIATION} == headings - {"Beyond verdicts"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"affinity": on([says("a", "Exists"), says("a", "DoesNotExist")])}, True),
        ({"affinity": on([says("a", "In", "x"), says("a", "NotIn", "x")])}, True),
        ({"affinity": on([says("a", "Gt", "5"), says("a", "Lt", "6")])}, True),
        ({"nodeSelector": {"a": "x"}, "affinity": on(wishes=[[says("a", "DoesNotExist")]])}, True),
        ({"affinity": on([says("a", "Gt", "4"), says("a", "Lt", "6")])}, False),
        ({"affinity": on([says("a", "NotIn", "x"), says("a", "DoesNotExist")])}, False),
        ({"affinity": on([says("a", "Exists")], [says("a", "DoesNotExist")])}, False),
        ({"nodeSelector": {"a": "x"}}, False),
    ],
)
def test_contradictions_are_recognised(spec: Json, expected: bool) -> None:  # noqa: FBT001 - one column of the table
    """A label without a value left, in one term or with the selector; alternatives do not contradict each other."""
    assert contradicts(pod(**spec)) is expected


def test_a_pod_without_its_contradictions_keeps_the_rest() -> None:
    """Terms and wishes that cannot be go; a pod of which no term is left goes whole."""
    bad, good = [says("a", "Exists"), says("a", "DoesNotExist")], [says("b", "Exists")]
    kept = deliberate.consistent(pod(affinity=on(bad, good, wishes=[good, [says("b", "DoesNotExist")]])))
    assert kept is not None
    assert deliberate.node_terms(kept) == [{"matchExpressions": good}]
    assert deliberate.node_terms(kept, PREFERRED) == [{"matchExpressions": good}]
    assert deliberate.consistent(pod(affinity=on(bad))) is None


def test_a_pod_is_kept_apart_by_its_own_rule_and_by_anothers() -> None:
    """Anti-affinity by zone is about those who state it and those whom it selects, and about nobody else."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "app-1"}}}
    states, selected, neither = pod(0, affinity={"podAntiAffinity": {REQUIRED: [term]}}), pod(1), pod(2)
    scene = Scene((states, selected, neither))
    found = [[entry.title for entry in explaining(scene, each, MORE)] for each in (states, selected, neither)]
    assert found == [["Anti-affinity by zone"], ["Anti-affinity by zone"], []]
    (without, *_) = deliberate.without(scene.objects, ["Anti-affinity by zone"])
    assert deliberate.pod_terms(without, "podAntiAffinity") == []


def test_nothing_explains_plain_pods() -> None:
    """Without a rule of the list there is no excuse."""
    scene = Scene(({"kind": "NodePool", "metadata": {"name": "p"}, "spec": {"template": {"spec": {}}}}, pod()))
    assert [explaining(scene, pod(), direction) for direction in ("more", "less")] == [[], []]


def test_scenarios_are_made_as_small_as_they_differ() -> None:
    """What the difference does not need goes: other objects, other rules."""
    wanted = pod(3, nodeSelector={"a": "x"}, tolerations=[{"operator": "Exists"}], affinity=on([says("b", "Exists")]))
    everything = (*(pod(0, number) for number in range(8)), wanted)

    def differs(batch: Sequence[tuple[Json, ...]]) -> list[bool]:
        return [any("tolerations" in each["spec"] for each in objects) for objects in batch]

    (left,) = smaller.shrunk(everything, differs)
    assert set(left["spec"]) == {"containers", "tolerations"}


def test_every_rule_occurs_among_five_thousand_pods() -> None:
    """All operators on both sides, taints, labels, terms, minValues, weights and limits are generated."""
    found = sum((features.of(scenarios.scenario(seed).objects) for seed in range(170)), features.of(()))
    for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"):
        assert found[f"node affinity {operator}"]
        assert found[f"preferred node affinity {operator}"]
        assert found[f"pool requirement {operator}"]
    for name in ("requirement Gte", "requirement Lte", "minValues", "weight", "labels", "limit cpu", "limit nodes"):
        assert found[f"pool {name}"]
    for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule"):
        assert found[f"pool taint {effect}"]
    for rule in ("affinity", "anti-affinity", "spread"):
        assert all(found[f"{rule} by {key}"] for key in (ZONE, "kubernetes.io/hostname", "karpenter.sh/capacity-type"))
