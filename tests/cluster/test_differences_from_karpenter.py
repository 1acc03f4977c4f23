"""Growth and Karpenter on the same generated scenarios: a slice of `python -m bench differential`.

As with the control plane, a missing peer is skipped on a developer's machine and fails where `CI=true`.
"""

import pytest

from bench.deliberate import LESS, MORE
from bench.differential import Planners, compare, gaps_between, scenarios_with, told
from bench.peers import karpenter
from bench.scenarios import Scenario, instance_types, scenario
from growth.api.kinds import Json
from tests.needs import need

PODS = 300


@pytest.fixture(scope="module", autouse=True)
def _peer() -> None:
    need(karpenter.built(), "no Karpenter peer in the cache; build it with `make peer`")


@pytest.fixture(scope="module")
def planners() -> Planners:
    return Planners(instance_types())


def pod(kind: int, number: int, **spec: object) -> Json:
    name = f"kind-{kind}-{number:02}"
    requests = {"cpu": "500m", "memory": "256Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "uid": f"default/{name}", "labels": {"app": f"app-{kind}"}},
        "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}], **spec},
    }


def pool(**spec: object) -> Json:
    reference = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
    template = {"spec": {"nodeClassRef": reference, "requirements": []}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool-0"},
        "spec": {"template": template, **spec},
    }


def made(*objects: Json) -> Scenario:
    return Scenario(seed=-1, objects=objects, rules=frozenset())


def test_every_difference_is_deliberate(planners: Planners) -> None:
    """Of some hundred generated pods each gets Karpenter's verdict, or an entry says why not; every plan can be."""
    tally = compare(scenarios_with(PODS), planners)
    assert tally.pods >= PODS
    assert [told(each, planners) for each in tally.unexplained] == []
    assert tally.refused == []
    assert tally.placed > PODS // 2


def test_a_limit_on_nodes_is_recognised(planners: Planners) -> None:
    """Three pods that need a host each under `limits.nodes: 2`: Karpenter buys three, and the entry says so."""
    port = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    pods = [pod(0, number) for number in range(3)]
    for each in pods:
        each["spec"]["containers"][0]["ports"] = port
    (difference,) = compare([made(pool(limits={"nodes": "2"}), *pods)], planners).differences
    assert (difference.direction, difference.pods, difference.entries) == (LESS, 1, ("Limits on nodes",))


def test_pods_in_different_zones_in_one_pass_are_recognised(planners: Planners) -> None:
    """Three pods apart by zone: Growth places all at once, Karpenter one."""
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "app-0"}}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    pods = [pod(0, number, affinity=apart) for number in range(3)]
    (difference,) = compare([made(pool(), *pods)], planners).differences
    assert (difference.direction, difference.pods, difference.entries) == (MORE, 2, ("Anti-affinity by zone",))


def test_an_entry_excuses_nothing_that_something_else_makes(
    planners: Planners, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A planner that loses pods is found out, although the pool has limits that might explain it."""
    honest = planners.ours

    def losing(objects: tuple[Json, ...]) -> object:
        return honest([each for each in objects if each["metadata"]["name"] != "kind-0-00"])

    monkeypatch.setattr(planners, "ours", losing)
    tally = compare([made(pool(limits={"cpu": "1000", "nodes": "50"}), *(pod(0, n) for n in range(3)))], planners)
    assert [(each.kind, each.direction, each.pods) for each in tally.unexplained] == [("kind-0", LESS, 1)]


def test_equal_verdicts_leave_no_gap(planners: Planners) -> None:
    """Plain pods get a place on both sides."""
    plain = made(pool(), *(pod(0, number) for number in range(5)))
    (answer,) = planners.theirs([plain.objects])
    _, plan = planners.ours(plain.objects)
    assert gaps_between(plan, answer) == {}
    assert len(plan.order) == 5


def test_a_scenario_is_that_of_its_seed() -> None:
    """Equal seeds give equal objects, others give others."""
    assert scenario(7) == scenario(7)
    assert scenario(7) != scenario(8)
