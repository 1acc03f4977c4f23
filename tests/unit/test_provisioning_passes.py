"""A pass as a question and its answer: who is planned for, on what, and what a broken object costs the others."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from growth.api.decoding import convert
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.overlays import NodeOverlay
from growth.api.pods import Pod
from growth.cluster.assemble import Picture
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.snapshot import Demand, Snapshot
from growth.cluster.sorts import Sorts
from growth.controllers.provisioning import passes
from growth.controllers.provisioning.demand import Marked
from growth.controllers.provisioning.passes import Answer, Question, answered
from growth.planning.plan import Filter, Plan, PlannedClaim
from growth.planning.solve import Options, solve
from growth.providers.catalogues import builtin
from tests.manifests import need, node_pool, pod

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SHAPES = Shapes()
SERVED = frozenset({("karpenter.kwok.sh", "KWOKNodeClass")})
MARK: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def waiting(name: str, **spec: Any) -> CachedPod:
    return SHAPES.keep(convert(pod(name, status=MARK, **spec), Pod))


def asked(*pods: CachedPod, pools: Sequence[Json] = (), overlays: Sequence[NodeOverlay] = (), **more: Any) -> Answer:
    picture = Picture(
        overlays=overlays,
        catalogue=builtin("kwok"),
        now=NOW,
        pending=pods,
        pools=[convert(each, NodePool) for each in pools or [node_pool()]],
    )
    marked = Marked(now=100.0, age=1.0, since={}, sorts=frozenset())
    return answered(Question(picture=picture, marked=marked, sort=Sorts().of, **{"served": SERVED, **more}))


def placed(answer: Answer) -> set[str]:
    return {pod for pod, _ in answer.plan.order} if answer.plan is not None else set()


def bought(answer: Answer) -> tuple[PlannedClaim, ...]:
    assert answer.plan is not None
    return answer.plan.claims


def test_nothing_waiting_is_no_plan() -> None:
    """Planning is not even asked."""
    assert asked().plan is None


def test_pods_whose_place_is_found_are_not_planned_for_again() -> None:
    """Their room is held in the picture."""
    answer = asked(waiting("a"), waiting("b"), held=frozenset({"default/a"}))
    assert placed(answer) == {"default/b"}
    assert set(answer.pods) == {"default/b"}


def test_a_pool_whose_requirements_cannot_be_read_harms_only_itself() -> None:
    """Its pods are told; the pool beside it sells."""
    broken = node_pool("broken", need("team", "Gt", "many"), weight=50)
    answer = asked(waiting("a"), pools=[broken, node_pool("sound")])
    assert placed(answer) == {"default/a"}
    problems = {pool.ref.name: pool.problem for pool in answer.snapshot.pools}
    assert problems == {"broken": "its requirements cannot be read: team: Gt takes exactly one integer", "sound": ""}


def test_contradictory_requirements_sell_nothing_and_say_so() -> None:
    """No machine satisfies them."""
    nothing = node_pool("nothing", need("kubernetes.io/arch", "In", "arm64"))
    answer = asked(waiting("a"), pools=[nothing])
    assert answer.plan is not None
    assert [each.pod for each in answer.plan.unplaced] == ["default/a"]


def test_a_pod_that_planning_fails_on_harms_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug of ours: the others get their machines, and the pod is told what it is."""

    def fragile(snapshot: Snapshot, demands: Sequence[Demand], options: Options) -> Plan:
        if any(each.shape.spec.host_network for each in demands):
            raise ValueError("boom")
        return solve(snapshot, demands, options)

    monkeypatch.setattr(passes, "solve", fragile)
    pods = [waiting(f"p{at}", cpu=f"{at + 1}00m") for at in range(9)]
    answer = asked(*pods, waiting("bad", hostNetwork=True))
    assert placed(answer) == {f"default/p{at}" for at in range(9)}
    assert answer.plan is not None
    (left,) = answer.plan.unplaced
    assert left.pod == "default/bad"
    assert left.reasons[0].filter is Filter.UNSUPPORTED
    assert "bug in Growth: ValueError: boom" in left.reasons[0].message


def test_pods_of_buffers_come_last() -> None:
    """What keeps room never takes it from a pod that exists."""
    pool = node_pool("small", need("node.kubernetes.io/instance-type", "In", "c-2x-amd64-linux"), limits={"nodes": "1"})
    virtual = Demand("default/capacitybuffer:b#0", SHAPES.shape(convert(pod("x", cpu="1", priority=-(2**31)), Pod)))
    answer = asked(waiting("real", cpu="1"), pools=[pool], virtual=(virtual,))
    assert placed(answer) == {"default/real"}


def overlay(name: str, price: str, *types: str) -> NodeOverlay:
    wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}]
    return convert({"metadata": {"name": name}, "spec": {"requirements": wanted, "price": price}}, NodeOverlay)


def test_a_claim_lists_what_is_cheap_by_peoples_own_prices() -> None:
    """An overlay makes a large type nearly free: nothing else is listed, for the cloud would choose by its own prices."""
    (plain,) = bought(asked(waiting("a")))
    assert len(plain.instance_types) > 1
    assert not plain.repriced
    answer = asked(waiting("a"), overlays=[overlay("sale", "0.001", "m-8x-amd64-linux")])
    (found,) = bought(answer)
    assert answer.types == (found.instance_types,) == (("m-8x-amd64-linux",),)
    assert found.repriced
    assert found.max_price == found.lowest_max_price == 1_000_000


def test_an_overlay_elsewhere_leaves_the_cloud_its_bound() -> None:
    """Only a type that the claim could have listed makes its prices people's own."""
    (found,) = bought(asked(waiting("a"), overlays=[overlay("sale", "0.001", "no-such-type")]))
    assert not found.repriced
    assert len(found.instance_types) > 1
