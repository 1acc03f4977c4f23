"""Plans of generated clusters, before the judge. `python -m bench judge` runs ten thousand of them."""

import pytest

from bench.clusters import cluster
from growth.planning.solve import Options, solve
from growth.sim.judge import judge

SEEDS = 300
SLICES = 10


@pytest.mark.parametrize("slice_", range(SLICES))
def test_the_judge_passes_every_plan(slice_: int) -> None:
    """Every placement is one that kube-scheduler would make, and the books are right."""
    for seed in range(slice_ * SEEDS // SLICES, (slice_ + 1) * SEEDS // SLICES):
        made = cluster(seed)
        wrong = judge(made.snapshot, made.demands, solve(made.snapshot, made.demands))
        assert not wrong, f"seed {seed}: " + "; ".join(map(str, wrong))


def test_the_judge_passes_plans_that_ignore_preferences() -> None:
    """Without preferences the same laws hold."""
    for seed in range(60):
        made = cluster(seed)
        plan = solve(made.snapshot, made.demands, Options(respect_preferences=False))
        wrong = judge(made.snapshot, made.demands, plan)
        assert not wrong, f"seed {seed}: " + "; ".join(map(str, wrong))


def test_the_judge_passes_plans_that_lower_min_values() -> None:
    """With BestEffort all but `minValues` holds as before."""
    for seed in range(60):
        made = cluster(seed)
        plan = solve(made.snapshot, made.demands, Options(strict_min_values=False))
        wrong = judge(made.snapshot, made.demands, plan, strict_min_values=False)
        assert not wrong, f"seed {seed}: " + "; ".join(map(str, wrong))


def test_equal_clusters_give_equal_plans() -> None:
    """A seed is a cluster, and a cluster is a plan."""
    for seed in range(20):
        one, other = cluster(seed), cluster(seed)
        assert solve(one.snapshot, one.demands) == solve(other.snapshot, other.demands)


def test_the_clusters_are_not_trivial() -> None:
    """Pods are placed on nodes, on machines and nowhere, and every filter speaks."""
    placed = filled = left = 0
    filters = set()
    for seed in range(200):
        made = cluster(seed)
        plan = solve(made.snapshot, made.demands)
        placed += sum(isinstance(place, int) for _, place in plan.order)
        filled += sum(isinstance(place, str) for _, place in plan.order)
        left += len(plan.unplaced)
        filters |= {each.reasons[0].filter.value for each in plan.unplaced}
    assert min(placed, filled, left) > 300
    assert filters >= {
        "taints",
        "requirements",
        "resources",
        "topology",
        "volumes",
        "ports",
        "minValues",
        "limits",
    }
