"""A scenario of simulated machines, told in Hetzner's words: the same cluster on that vendor's machines."""

import json

import msgspec
import pytest

from growth.api import names
from growth.sim.scenario import manifests
from growth.sim.scenario.generate import generate
from growth.sim.scenario.manifests import asks, cores
from growth.sim.scenario.model import Scenario
from growth.sim.scenario.vendors import told_for


def told(*objects: object) -> list[dict[str, object]]:
    scenario = told_for("hetzner", msgspec.convert({"objects": list(objects)}, Scenario))
    return [msgspec.to_builtins(each) for each in scenario.objects]


def requirements(*asked: dict[str, object]) -> list[dict[str, object]]:
    (pool,) = told(manifests.node_pool("general", requirements=asked))
    found = json.loads(json.dumps(pool))["spec"]["template"]["spec"]["requirements"]
    assert found[0] == asks(names.OS_LABEL, "In", "linux")
    return list(found[1:])


def test_sizes_become_types_of_that_size() -> None:
    """Of any line, so that there is something to choose from."""
    (asked,) = requirements(cores("2", "4"))
    assert (asked["key"], asked["operator"]) == (names.INSTANCE_TYPE_LABEL, "In")
    assert set(asked["values"]) == {  # type: ignore[call-overload]
        *("cx23", "cpx22", "ccx13", "cax11"),
        *("cx33", "cpx32", "ccx23", "cax21"),
    }
    above, below = requirements(
        asks(names.KWOK_INSTANCE_CPU_LABEL, "Gt", "2"), asks(names.KWOK_INSTANCE_CPU_LABEL, "Lt", "8")
    )
    assert "cx33" in above["values"]  # type: ignore[operator]
    assert "cx43" not in below["values"]  # type: ignore[operator]


def test_families_places_and_ways_to_pay_have_their_words() -> None:
    """What the vendor does not have is something of his, never nothing."""
    family, zone, pay = requirements(
        {**asks(names.KWOK_INSTANCE_FAMILY_LABEL, "Exists"), "minValues": 2},
        asks(names.ZONE_LABEL, "In", "test-zone-a", "test-zone-d"),
        asks(names.CAPACITY_TYPE_LABEL, "In", "spot", "on-demand"),
    )
    assert family == {"key": names.INSTANCE_TYPE_LABEL, "operator": "Exists", "minValues": 2}
    assert zone["values"] == ["fsn1"]
    assert pay["values"] == ["on-demand"]


def test_classes_change_places() -> None:
    """Ours are Hetzner's, and what was somebody else's is somebody else's again."""
    ours = manifests.node_pool("ours")
    theirs = json.loads(json.dumps(ours))
    theirs["spec"]["template"]["spec"]["nodeClassRef"] = {
        "group": names.GROWTH,
        "kind": "HetznerNodeClass",
        "name": "default",
    }
    kinds = [
        json.loads(json.dumps(pool))["spec"]["template"]["spec"]["nodeClassRef"]["kind"] for pool in told(ours, theirs)
    ]
    assert kinds == ["HetznerNodeClass", "KWOKNodeClass"]


def test_growth_pools_name_the_vendors_types() -> None:
    """Whatever their case; what is not a simulated type stays as it is."""
    body = {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "servers"},
        "spec": {"serverTypes": [{"name": "C-2x-amd64-linux", "max": 3}, {"name": "none-such", "max": 1}]},
    }
    (pool,) = told(body)
    assert json.loads(json.dumps(pool))["spec"]["serverTypes"] == [
        {"name": "cx23", "max": 3},
        {"name": "none-such", "max": 1},
    ]


@pytest.mark.parametrize("seed", range(30))
def test_nothing_simulated_is_left(seed: int) -> None:
    """Of no generated scenario, and the settings name the vendor."""
    scenario = told_for("hetzner", generate(seed))
    text = msgspec.json.encode(scenario).decode()
    for word in ("karpenter.kwok.sh/instance", "test-zone", "x-amd64-linux", "spot"):
        assert word not in text
    assert scenario.flags()["provider"] == "hetzner"
    assert told_for("kwok", generate(seed)) == generate(seed)
