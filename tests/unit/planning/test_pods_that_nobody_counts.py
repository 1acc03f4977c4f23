"""Pods that nobody can make leave are not counted where their node goes: so no node may go under them for that."""

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.api.policy import PodDisruptionBudget
from growth.planning.disruption import words
from growth.planning.disruption.decide import decide
from tests import manifests
from tests.unit.planning.clusters import cluster, machine, pods, pool
from tests.unit.planning.disrupting import NOW, pdb

NEVER = pdb("never", app="a", allowed=0, maxUnavailable=0)


def full(*, metadata: Json | None = None, **spec: object) -> list[Json | list[Json]]:
    """Two nodes, each with a pod that leaves no room for the other; that of `a` is changed so."""
    (own,) = pods(1, on="a", cpu=12)
    own["spec"] |= spec
    own["metadata"] |= metadata or {}
    return [machine("a"), machine("b"), [own], pods(1, on="b", cpu=12)]


@pytest.mark.parametrize(
    "budget",
    [
        pdb("surge", app="a", allowed=1, maxUnavailable=0),
        pdb("surge", app="a", allowed=1, maxUnavailable="0%"),
        pdb("surge", app="a", allowed=2, minAvailable="100%"),
    ],
)
def test_a_budget_that_never_allows_an_eviction_keeps_its_node_while_more_pods_run_than_it_asks_for(
    budget: PodDisruptionBudget,
) -> None:
    """Every rollout that surges shows such a moment, and what its owner wants has not changed."""
    made = decide(cluster(pool(), *full(), budgets=(budget,)))
    assert "a" not in {name for move in made.moves for name in move.nodes}
    kept = {each.node: each for each in made.kept}
    assert kept["a"].reason == words.POD_BUDGET


@pytest.mark.parametrize("budgets", [(NEVER,), (pdb("one", app="a", allowed=1), pdb("two", app="a", allowed=1))])
def test_pods_that_are_not_evicted_need_a_place_whatever_budgets_say(budgets: tuple[PodDisruptionBudget, ...]) -> None:
    """Who tolerates the taint of a drain is never evicted and ends with its machine: no budget is asked then."""
    made = decide(cluster(pool(), *full(tolerations=[{"operator": "Exists"}]), budgets=budgets))
    assert all(move.replacements for move in made.moves if "a" in move.nodes)


def test_the_place_of_a_stateful_pod_that_ends_is_needed_though_somebody_protects_it() -> None:
    """Its successor comes when it is gone. What protects a pod that ends already protects nothing."""
    ending: Json = {
        **manifests.owned_by("StatefulSet", "a"),
        "deletionTimestamp": NOW.isoformat(),
        "annotations": {names.DO_NOT_DISRUPT_ANNOTATION: "true"},
    }
    made = decide(cluster(pool(), *full(metadata=ending), budgets=(NEVER,)))
    assert all(move.replacements for move in made.moves if "a" in move.nodes)
