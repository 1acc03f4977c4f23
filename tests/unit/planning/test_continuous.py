"""Growth pools in the words of disruption: which of them are optimised, and what their minima keep."""

import dataclasses
import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api.growthpools import GrowthPool
from growth.cluster.snapshot import NodeView, Snapshot
from growth.planning.disruption.continuous import consolidates, minima, moved, of_growth, spare, too_few
from growth.planning.disruption.model import OwnedNode, Situation
from tests.manifests import growth_pool

NOW = dt.datetime(2030, 1, 7, 8, tzinfo=dt.UTC)
POOL = "growth.dev/default"


def pool(**spec: Any) -> GrowthPool:
    body = growth_pool("default", {"name": "CAX11", "min": 2, "max": 9}, {"name": "cax31", "max": 3}, **spec)
    return msgspec.convert(body, GrowthPool)


def node(name: str, type_: str = "cax11", *, leaving: bool = False, ready: bool = True) -> OwnedNode:
    view = NodeView(name=name, labels={"node.kubernetes.io/instance-type": type_})
    return OwnedNode(name=name, pool=POOL, view=view, leaving=leaving, ready=ready)


def situation(*nodes: OwnedNode) -> Situation:
    pools = (pool(optimise="Continuous"),)
    return Situation(snapshot=Snapshot(currency="EUR"), nodes=nodes, pools=moved(pools), now=NOW, minima=minima(pools))


def test_only_pools_that_ask_for_it_are_optimised() -> None:
    """With `Continuous` pods move to save, `scaleDownAfter` in the place of `consolidateAfter`; else nodes move for drift alone."""
    found = moved([pool(optimise="Continuous", scaleDownAfter="7m")])
    assert list(found) == [POOL]
    disruption = found[POOL].spec.disruption
    assert (disruption.consolidate_after, disruption.consolidation_policy) == ("7m", "WhenEmptyOrUnderutilized")
    assert consolidates(POOL, situation())
    (resting,) = moved([pool(optimise="WhenEmpty")]).values()
    assert resting.spec.disruption.consolidate_after == "Never"
    assert not consolidates(POOL, dataclasses.replace(situation(), pools={POOL: resting}))


def test_budgets_are_the_pool_s_own() -> None:
    """A tenth where nothing is said; else what is written, for both ways to optimise."""
    budgets = [{"nodes": "2", "reasons": ["Drifted"]}, {"nodes": "0", "schedule": "@daily", "duration": "1h"}]
    for optimise in ("WhenEmpty", "Continuous"):
        (said,) = moved([pool(optimise=optimise)]).values()
        assert [each.nodes for each in said.spec.disruption.budgets] == ["10%"]
        (own,) = moved([pool(optimise=optimise, disruption={"budgets": budgets})]).values()
        told = [(each.nodes, each.reasons, each.schedule) for each in own.spec.disruption.budgets]
        assert told == [("2", ("Drifted",), None), ("0", (), "@daily")]


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
        ([node("a"), node("b"), node("c", ready=False)], ["c"]),
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
