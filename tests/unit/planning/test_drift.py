"""Which machines are no longer what their pool asks for."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api import names
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import NodeClaim, NodeClassReference, NodePool
from growth.api.kinds import Json
from growth.cluster import hashes
from growth.cluster.pricing import by_name
from growth.planning.disruption.drift import drifted, drifted_in_growth
from growth.providers.catalogues import builtin
from tests import manifests
from tests.manifests import need

NOW = dt.datetime(2030, 1, 7, 12, tzinfo=dt.UTC)
TYPES = by_name(builtin("kwok").types)
KIND = "c-4x-amd64-linux"
LABELS = {
    names.INSTANCE_TYPE_LABEL: KIND,
    names.ZONE_LABEL: "test-zone-a",
    names.CAPACITY_TYPE_LABEL: names.ON_DEMAND,
    names.ARCH_LABEL: "amd64",
    names.OS_LABEL: "linux",
    names.NODE_POOL_LABEL: "default",
}
HOUR = 3600.0


def pool(*requirements: Json, template: Json | None = None, labels: Json | None = None, **spec: Any) -> NodePool:
    return msgspec.convert(
        manifests.node_pool("default", *requirements, template=template, labels=labels, **spec), NodePool
    )


def claim(
    of: NodePool,
    *,
    age: float = 2 * HOUR,
    launched: bool = True,
    annotations: dict[str, str] | None = None,
    labels: dict[str, str] | None = None,
) -> NodeClaim:
    """Bought from the pool as it is given; labels replace those of the machine, an empty one takes it away."""
    held = {key: value for key, value in {**LABELS, **(labels or {})}.items() if value}
    created = (NOW - dt.timedelta(seconds=age)).isoformat()
    meta = {"annotations": hashes.stamp(of) if annotations is None else annotations, "creationTimestamp": created}
    status = {"conditions": [{"type": "Launched", "status": "True"}] if launched else []}
    return msgspec.convert(manifests.claim("c", labels=held, metadata=meta, status=status), NodeClaim)


def drift(each: NodeClaim, of: NodePool, *, types: Any = TYPES) -> str:
    return drifted(each, of, types, NOW)


def test_a_machine_as_its_pool_wants_it_has_not_drifted() -> None:
    """Whatever its age."""
    assert drift(claim(pool(), age=10**7), pool()) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"labels": {"team": "b"}},
        {"template": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
        {"template": {"startupTaints": [{"key": "a", "effect": "NoSchedule"}]}},
        {"template": {"expireAfter": "24h"}},
        {"template": {"terminationGracePeriod": "1h"}},
        {"template": {"nodeClassRef": {**manifests.KWOK_CLASS, "name": "other"}}},
    ],
)
def test_a_changed_template_is_drift(changed: dict[str, Any]) -> None:
    """Labels, annotations, taints, startup taints, node class, grace and expiry make another machine."""
    assert drift(claim(pool()), pool(**changed)) == names.NODE_POOL_DRIFTED


@pytest.mark.parametrize(
    "changed",
    [
        {"weight": 7},
        {"limits": {"nodes": 1}},
        {"disruption": {"budgets": [{"nodes": "0"}], "nodeLimitMode": "Soft"}},
    ],
)
def test_rules_of_behaviour_are_no_drift(changed: dict[str, Any]) -> None:
    """Limits, weight, budgets and the mode of the limit concern no machine that is there."""
    assert drift(claim(pool()), pool(**changed)) == ""


def test_a_hash_of_another_version_says_nothing() -> None:
    """It is replaced instead: another version, Karpenter's, or none at all."""
    of = pool()
    for annotations in (
        {names.NODE_POOL_HASH_ANNOTATION: "1", names.NODE_POOL_HASH_VERSION_ANNOTATION: "v3"},
        {names.NODE_POOL_HASH_ANNOTATION: "1"},
        {names.NODE_POOL_HASH_VERSION_ANNOTATION: hashes.VERSION},
        {},
    ):
        assert drift(claim(of, annotations=annotations), of) == ""
    ours = {names.NODE_POOL_HASH_ANNOTATION: "1", names.NODE_POOL_HASH_VERSION_ANNOTATION: hashes.VERSION}
    assert drift(claim(of, annotations=ours), of) == names.NODE_POOL_DRIFTED


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (need(names.ZONE_LABEL, "In", "test-zone-a", "test-zone-b"), ""),
        (need(names.ZONE_LABEL, "In", "test-zone-b"), names.REQUIREMENTS_DRIFTED),
        (need(names.ZONE_LABEL, "NotIn", "test-zone-a"), names.REQUIREMENTS_DRIFTED),
        (need("failure-domain.beta.kubernetes.io/zone", "In", "test-zone-b"), names.REQUIREMENTS_DRIFTED),
        (need("example.com/team", "In", "a"), names.REQUIREMENTS_DRIFTED),
        (need("example.com/team", "NotIn", "a"), ""),
        (need("example.com/team", "DoesNotExist"), ""),
        (need("example.com/team", "Exists"), names.REQUIREMENTS_DRIFTED),
        (need("example.com/size", "Gt", "3"), names.REQUIREMENTS_DRIFTED),
    ],
)
def test_requirements_are_held_against_the_labels_of_the_claim(requirement: Json, expected: str) -> None:
    """A label that the claim does not have fails all but NotIn and DoesNotExist."""
    assert drift(claim(pool()), pool(requirement)) == expected


def test_min_values_are_no_drift() -> None:
    """They are about what a purchase may choose from, and this machine is bought."""
    asked = need(names.INSTANCE_TYPE_LABEL, "In", KIND, "c-8x-amd64-linux", minValues=2)
    assert drift(claim(pool()), pool(asked)) == ""
    assert drift(claim(pool()), pool(need(names.INSTANCE_TYPE_LABEL, "Exists", minValues=50))) == ""


def test_a_type_that_is_gone_is_drift_after_an_hour() -> None:
    """A list of types may be incomplete for a while; and while there is none at all, nothing is said."""
    of = pool()
    gone = {names.INSTANCE_TYPE_LABEL: "x-large"}
    assert drift(claim(of, age=HOUR, labels=gone), of) == names.INSTANCE_TYPE_NOT_FOUND
    assert drift(claim(of, age=HOUR - 1, labels=gone), of) == ""
    assert drift(claim(of, labels=gone), of, types={}) == ""
    assert drift(claim(of, labels={names.INSTANCE_TYPE_LABEL: ""}), of) == names.INSTANCE_TYPE_NOT_FOUND


def test_a_type_without_the_offering_that_was_bought_is_gone() -> None:
    """Sold out is not gone; sold nowhere near is. A reservation that ended goes on as on-demand."""
    of = pool()
    assert drift(claim(of, labels={names.ZONE_LABEL: "elsewhere"}), of) == names.INSTANCE_TYPE_NOT_FOUND
    by_region = {names.ZONE_LABEL: "test-zone-a-dc1", names.REGION_LABEL: "test-zone-a"}
    assert drift(claim(of, labels=by_region), of) == ""
    anywhere = pool(template={"requirements": []})
    assert drift(claim(anywhere, labels={names.CAPACITY_TYPE_LABEL: names.RESERVED}), anywhere) == ""


def test_the_first_reason_in_order_is_told() -> None:
    """Template before requirements before type."""
    of = pool()
    all_three = claim(of, labels={names.ZONE_LABEL: "elsewhere", names.INSTANCE_TYPE_LABEL: "x-large"})
    elsewhere = need(names.ZONE_LABEL, "In", "test-zone-b")
    assert drift(all_three, pool(elsewhere, labels={"team": "b"})) == names.NODE_POOL_DRIFTED
    assert drift(all_three, pool(elsewhere)) == names.REQUIREMENTS_DRIFTED
    assert drift(all_three, of) == names.INSTANCE_TYPE_NOT_FOUND


def test_a_claim_without_a_machine_cannot_drift() -> None:
    """Until it is launched it is what the pool was when it was planned."""
    assert drift(claim(pool(), launched=False), pool(labels={"team": "b"})) == ""


TAINT: Json = {"key": "example.com/a", "effect": "NoSchedule"}
OTHER: Json = {"key": "example.com/b", "effect": "NoSchedule", "value": "x"}
TEMPLATE: Json = {"labels": {"team": "a"}, "taints": [TAINT, OTHER], "startupTaints": [TAINT]}


def server_pool(*types: Json, **spec: Any) -> GrowthPool:
    listed = types or ({"name": KIND.upper(), "max": 5},)
    return msgspec.convert(manifests.growth_pool("default", *listed, **{"template": TEMPLATE, **spec}), GrowthPool)


def of_servers(made_from: GrowthPool, now: GrowthPool, *, uses: NodeClassReference | None = None, **more: Any) -> str:
    found = claim(pool(), annotations=hashes.stamp(made_from), **more)
    return drifted_in_growth(found, now, TYPES, NOW, uses=uses or found.spec.node_class_ref)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, ""),
        ({"template": {**TEMPLATE, "labels": {"team": "b"}}}, "NodePoolDrifted"),
        ({"template": {**TEMPLATE, "labels": {}}}, "NodePoolDrifted"),
        ({"template": {**TEMPLATE, "taints": [TAINT]}}, "NodePoolDrifted"),
        ({"template": {**TEMPLATE, "taints": [OTHER, TAINT]}}, ""),
        ({"template": {**TEMPLATE, "startupTaints": []}}, "NodePoolDrifted"),
        ({"serverTypes": [{"name": "c-2x-amd64-linux", "max": 5}]}, "RequirementsDrifted"),
        ({"serverTypes": [{"name": KIND, "max": 0, "priority": 7}, {"name": "c-2x-amd64-linux", "max": 5}]}, ""),
        ({"optimise": "Continuous", "scaleDownAfter": "1h", "limits": {"nodes": 1}}, ""),
        ({"disruption": {"budgets": [{"nodes": "0"}]}}, ""),
    ],
)
def test_a_machine_of_a_growth_pool_drifts_from_template_and_list(change: Json, reason: str) -> None:
    """Bounds, ways to optimise and budgets concern no machine that is there; nor do spelling and order."""
    assert of_servers(server_pool(), server_pool(**change)) == reason


def test_a_machine_of_another_node_class_has_drifted() -> None:
    """The class that the pool uses now, whether it names one or has the provider's."""
    other = NodeClassReference(group="karpenter.kwok.sh", kind="KWOKNodeClass", name="other")
    assert of_servers(server_pool(), server_pool(), uses=other) == names.NODE_POOL_DRIFTED


def test_a_claim_of_a_growth_pool_without_a_hash_or_a_machine_has_not_drifted() -> None:
    """What it was made from is not known; and before its launch there is nothing that could differ."""
    changed = server_pool(template={"labels": {"team": "b"}})
    uses = claim(pool()).spec.node_class_ref
    assert drifted_in_growth(claim(pool(), annotations={}), changed, TYPES, NOW, uses=uses) == ""
    assert of_servers(server_pool(), changed, launched=False) == ""


def test_a_machine_of_a_growth_pool_whose_type_is_not_sold_any_more_has_drifted() -> None:
    """An hour after its creation, as in Karpenter's pools."""
    found = claim(pool(), annotations=hashes.stamp(server_pool()))
    uses = found.spec.node_class_ref
    types = {name: kind for name, kind in TYPES.items() if name != KIND}
    assert drifted_in_growth(found, server_pool(), types, NOW, uses=uses) == names.INSTANCE_TYPE_NOT_FOUND
    young = claim(pool(), annotations=hashes.stamp(server_pool()), age=HOUR / 2)
    assert drifted_in_growth(young, server_pool(), types, NOW, uses=uses) == ""
