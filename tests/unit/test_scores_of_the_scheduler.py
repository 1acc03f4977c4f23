"""The simulated scheduler binds as kube-scheduler does: what planning knows of that was held to the real one."""

import dataclasses

import msgspec
import pytest

from bench.clusters import cluster
from growth.api.pods import Pod, PodSpec
from growth.cluster.snapshot import NodeView
from growth.planning.rehearsal import Stage
from growth.sim.judge.stage import Stage as JudgesStage
from growth.sim.predicates import requests
from growth.sim.world import scores
from growth.sim.world.board import Board
from growth.units.resources import add


def says_all(spec: PodSpec) -> bool:
    """Of containers that ask for nothing something is assumed; the simulated scheduler does not."""
    return all({"cpu", "memory"} <= each.resources.requests.keys() for each in spec.containers)


def plain(node: NodeView) -> NodeView:
    """Without anything that takes room and is not there to be seen."""
    there = tuple((shape, number) for shape, number in node.pods if says_all(shape.spec))
    taken = add(*(requests(shape.spec) for shape, number in there for _ in range(number)))
    return dataclasses.replace(node, pods=there, requested=taken, daemon_requested={})


def known(pod: Pod) -> Pod:
    """With an identity, by which the board knows it."""
    meta = pod.metadata
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(meta, uid=f"{meta.namespace}/{meta.name}"))


@pytest.mark.parametrize("seed", range(150))
def test_a_pod_goes_to_a_node_that_kube_scheduler_scores_best(seed: int) -> None:
    """Pod after pod on generated clusters: to one of those among which it would draw lots, and to none where it finds none."""
    made = cluster(seed)
    nodes = tuple(map(plain, made.snapshot.nodes))
    demands = [each for each in made.demands if says_all(each.shape.spec)]
    snapshot = dataclasses.replace(made.snapshot, nodes=nodes, daemons=())
    judges = JudgesStage(snapshot, demands)
    board = Board()
    for host in judges.existing():
        board.set_node(host)
        for pod in host.pods:
            board.put(known(pod), host.name)
    board.scene = judges.scene([*board.places.values()])

    def told(key: str, best: tuple[str, ...]) -> str:
        pod = known(judges.pods[key])
        shape = board.shape(pod)
        fitting = [place for place, found in board.verdicts(pod, shape) if not found]
        if not fitting:
            assert not best
            return ""
        name = scores.best(pod, shape.wanted, fitting, board.scene).name
        assert name in best, key
        board.put(pod, name)
        return name

    Stage(snapshot, demands, spread_by_default=False).follow(told)
