"""Growth pools in the words of disruption: which of them are optimised, and what their minima keep."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api.growthpools import GrowthPool
from growth.cluster.snapshot import NodeView, Snapshot
from growth.planning.disruption.continuous import minima, of_growth, optimised, spare, too_few
from growth.planning.disruption.model import OwnedNode, Situation
from tests.manifests import growth_pool

NOW = dt.datetime(2030, 1, 7, 8, tzinfo=dt.UTC)
POOL = "growth.dev/default"


def pool(**spec: Any) -> GrowthPool:
    body = growth_pool("default", {"name": "CAX11", "min": 2, "max": 9}, {"name": "cax31", "max": 3}, **spec)
    return msgspec.convert(body, GrowthPool)


def node(name: str, type_: str = "cax11", *, leaving: bool = False) -> OwnedNode:
    view = NodeView(name=name, labels={"node.kubernetes.io/instance-type": type_})
    return OwnedNode(name=name, pool=POOL, view=view, leaving=leaving)


def situation(*nodes: OwnedNode) -> Situation:
    pools = (pool(optimise="Continuous"),)
    return Situation(
        snapshot=Snapshot(currency="EUR"), nodes=nodes, pools=optimised(pools), now=NOW, minima=minima(pools)
    )


def test_only_pools_that_ask_for_it_are_optimised() -> None:
    """By Karpenter's defaults, `scaleDownAfter` in the place of `consolidateAfter`; no other pool's nodes are moved."""
    assert optimised([pool(), pool(optimise="WhenEmpty")]) == {}
    found = optimised([pool(optimise="Continuous", scaleDownAfter="7m")])
    assert list(found) == [POOL]
    disruption = found[POOL].spec.disruption
    assert (disruption.consolidate_after, disruption.consolidation_policy) == ("7m", "WhenEmptyOrUnderutilized")
    assert [each.nodes for each in disruption.budgets] == ["10%"]


def test_pools_are_told_apart_by_their_api() -> None:
    """A pool of Karpenter's has its bare name."""
    assert of_growth(POOL)
    assert not of_growth("default")


@pytest.mark.parametrize(
    ("nodes", "going"),
    [
        ([node("a"), node("b")], []),
        ([node("a"), node("b"), node("c")], ["a"]),
        ([node("a"), node("b"), node("c"), node("x", "cax31")], ["a", "x"]),
        ([node("a"), node("b"), node("c", leaving=True)], []),
    ],
)
def test_as_many_as_the_minimum_stay(nodes: list[OwnedNode], going: list[str]) -> None:
    """Of each type, whatever its name's case; what is leaving keeps nobody's minimum. In the order that is given."""
    known = situation(*nodes)
    found, kept = spare([each for each in nodes if not each.leaving], known)
    assert [each.name for each in found] == going
    assert {each.reason for each in kept} <= {"Minimum"}
    assert too_few(going, known) == ""
    for other in nodes:
        if other.name not in going and not other.leaving:
            assert "keeps 2 machines of type cax11" in too_few([*going, other.name], known)
