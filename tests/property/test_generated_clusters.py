"""Plans of generated clusters, before the judge. `python -m bench judge` runs ten thousand of them."""

import pytest

from bench.clusters import cluster
from growth.planning.solve import Options, solve
from growth.sim.judge import judge

SEEDS = 300
SLICES = 10
BY_COST = Options(packer="cost")


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


@pytest.mark.parametrize("slice_", range(4))
def test_the_judge_passes_every_plan_that_is_made_for_its_cost(slice_: int) -> None:
    """What is packed for the least cost is packed by the same rules."""
    for seed in range(slice_ * 30, (slice_ + 1) * 30):
        made = cluster(seed)
        wrong = judge(made.snapshot, made.demands, solve(made.snapshot, made.demands, BY_COST))
        assert not wrong, f"seed {seed}: " + "; ".join(map(str, wrong))


def test_packing_for_cost_is_never_worse_than_first_fit() -> None:
    """It places no fewer pods, and where it places as many it buys nothing dearer."""
    for seed in range(60):
        made = cluster(seed)
        cost = solve(made.snapshot, made.demands, Options(packer="cost", rehearse=False))
        first = solve(made.snapshot, made.demands)
        assert (len(cost.unplaced), cost.hourly) <= (len(first.unplaced), first.hourly), f"seed {seed}"


def test_no_plan_costs_less_than_its_bound() -> None:
    """Neither the plan that was made for its cost nor that of first fit, where it places the same pods."""
    bounded = 0
    for seed in range(60):
        made = cluster(seed)
        cost = solve(made.snapshot, made.demands, BY_COST)
        first = solve(made.snapshot, made.demands)
        if cost.lower_bound:
            bounded += 1
            assert cost.objective is not None
            assert cost.lower_bound <= min(cost.objective, cost.hourly), f"seed {seed}"
            if {each.pod for each in first.unplaced} == {each.pod for each in cost.unplaced}:
                assert cost.lower_bound <= first.hourly, f"seed {seed}"
    assert bounded > 30


def test_equal_clusters_give_equal_plans_for_their_cost() -> None:
    """The search takes the same steps every time."""
    for seed in range(10):
        one, other = cluster(seed), cluster(seed)
        assert solve(one.snapshot, one.demands, BY_COST) == solve(other.snapshot, other.demands, BY_COST)


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
