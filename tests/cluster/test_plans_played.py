"""Plans on the real kube-scheduler. `python -m bench play --plans 50` plays more of them.

These start a plane of their own, without a controller-manager: it would taint nodes that no kubelet keeps alive.
"""

import dataclasses
import random
from collections.abc import Iterator

import pytest

from bench.clusters import cluster
from bench.playing import Player, playable
from growth.planning.solve import solve
from growth.sim.judge import judge
from tools.controlplane.plane import plane as start_plane


@pytest.fixture(scope="module")
def player(control_plane: None) -> Iterator[Player]:
    """An API server and a scheduler to play on."""
    with start_plane(scheduler=True) as running:
        yield Player(running.url, str(running.ca), running.token)


def first(number: int, *, after: int = 0) -> list[int]:
    """The first seeds whose plans can be played."""
    found: list[int] = []
    seed = after
    while len(found) < number:
        made = cluster(seed, overhead=False)
        if playable(made, solve(made.snapshot, made.demands)):
            found.append(seed)
        seed += 1
    return found


@pytest.mark.parametrize("seed", first(4))
def test_the_scheduler_binds_every_pod_where_the_plan_has_it(player: Player, seed: int) -> None:
    """With all other nodes cordoned kube-scheduler agrees with every placement, in the recorded order."""
    made = cluster(seed, overhead=False)
    assert player.play(made, solve(made.snapshot, made.demands)) == []


@pytest.mark.parametrize("seed", first(2, after=100))
def test_the_slow_predicates_agree_with_the_scheduler(player: Player, seed: int) -> None:
    """Tried on any node, a pod is bound exactly when the predicates find nothing against it."""
    made = cluster(seed, overhead=False)
    assert player.play(made, solve(made.snapshot, made.demands), doubts=random.Random(seed)) == []


def test_the_scheduler_refuses_what_the_judge_refuses(player: Player) -> None:
    """A machine that is smaller than planned is found by both."""
    made = cluster(first(1)[0], overhead=False)
    plan = solve(made.snapshot, made.demands)
    at = max(range(len(plan.claims)), key=lambda number: plan.claims[number].requests.get("cpu", 0))
    name = plan.claims[at].instance_type
    pools = tuple(
        dataclasses.replace(
            pool,
            instance_types=tuple(
                dataclasses.replace(kind, capacity={**kind.capacity, "cpu": 150}) if kind.name == name else kind
                for kind in pool.instance_types
            ),
        )
        for pool in made.snapshot.pools
    )
    smaller = dataclasses.replace(made, snapshot=dataclasses.replace(made.snapshot, pools=pools))
    blamed = {each.where for each in judge(smaller.snapshot, smaller.demands, plan) if each.rule == "placement"}
    refused = {each.pod for each in player.play(smaller, plan)}
    assert (
        refused
    )  # and no other than the judge's: it goes on with the pod where the plan has it, the scheduler without
    assert refused <= blamed
