"""Who is served first, and who is not served at all."""

import msgspec

from growth.api.pods import PodResourceClaim, PodSchedulingGate, PodSchedulingGroup
from growth.planning.plan import Filter
from tests.unit.planning.builders import MEDIUM, expression, node, on_nodes, plan, pod, pods, pool


def test_higher_priority_is_served_first() -> None:
    """Where there is room for one, the more important pod gets it."""
    one = pool("default", MEDIUM, limits={"nodes": 1})
    made = plan(one, pod("low", cpu="4"), pod("high", cpu="3", priority=100))
    assert made.claim.pods == ("default/high",)


def test_negative_priority_is_served_last() -> None:
    """A pod below zero waits behind those without priority."""
    one = pool("default", MEDIUM, limits={"nodes": 1})
    made = plan(one, pod("low", cpu="4", priority=-1), pod("plain", cpu="3"))
    assert made.claim.pods == ("default/plain",)


def test_priority_counts_on_existing_nodes_too() -> None:
    """Room on nodes goes to the more important pod."""
    made = plan(node("one", cpu="1"), pool(), pod("low"), pod("high", priority=5))
    assert made.on("one") == ["high"]


def test_equal_pods_are_served_by_name() -> None:
    """Ties are broken by name, so that plans repeat."""
    made = plan(pool("default", MEDIUM, limits={"nodes": 1}), pods(6))
    assert made.unplaced == ["pod-04", "pod-05"]


def test_resource_claims_are_refused_with_that_reason() -> None:
    """What is not supported is never ignored."""
    spec = msgspec.structs.replace(pod().spec, resource_claims=(PodResourceClaim(name="gpu"),))
    made = plan(pool(), pod(spec=spec))
    assert made.reason().filter is Filter.UNSUPPORTED
    assert "resourceClaims" in made.reason().message


def test_groups_of_pods_are_refused_with_that_reason() -> None:
    """All or none of a group cannot be promised yet."""
    spec = msgspec.structs.replace(pod().spec, scheduling_group=PodSchedulingGroup(pod_group_name="g"))
    assert plan(pool(), pod(spec=spec)).reason().filter is Filter.UNSUPPORTED


def test_gated_pods_get_no_machine() -> None:
    """A pod that is not to be scheduled yet is told which gate holds it."""
    spec = msgspec.structs.replace(pod().spec, scheduling_gates=(PodSchedulingGate(name="example.com/quota"),))
    made = plan(node("one"), pool(), pod(spec=spec))
    assert made.unplaced == ["pod"]
    assert "example.com/quota" in made.reason().message


def test_one_unsupported_pod_harms_no_other() -> None:
    """The rest of the pass goes on."""
    spec = msgspec.structs.replace(pod().spec, resource_claims=(PodResourceClaim(name="gpu"),))
    made = plan(pool(), pod("odd", spec=spec), pod("fine"))
    assert made.unplaced == ["odd"]


def test_a_broken_expression_is_told_and_harms_no_other() -> None:
    """A pod with an operator that nobody knows is refused with the label's name."""
    made = plan(pool(), pod("odd", affinity=on_nodes([expression("team", "Near", "x")])), pod("fine"))
    assert made.unplaced == ["odd"]
    assert "team" in made.reason("odd").message
