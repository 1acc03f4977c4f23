"""What pods would merely rather have: when a machine is bought for it, and when room that is there will do."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pytest

from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.cluster.assemble import Objects, composed, pictured
from growth.cluster.shapes import CachedPod, Shapes
from growth.cluster.snapshot import Demand
from growth.cluster.sorts import Sorts
from growth.controllers.provisioning.demand import Marked
from growth.controllers.provisioning.passes import Question, answered
from growth.planning.disruption.buffering import without_room
from growth.planning.plan import Plan
from growth.planning.solve import Options, Packer
from growth.providers.catalogues import builtin
from tests.manifests import claim, node, node_pool, pod

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
ZONE = "topology.kubernetes.io/zone"
SHAPES = Shapes()
SERVED = frozenset({("karpenter.kwok.sh", "KWOKNodeClass")})
GOING: Json = {"deletionTimestamp": "2026-01-01T11:59:00Z"}
MARK: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


def web(name: str, *, when: str = "ScheduleAnyway", **spec: Any) -> CachedPod:
    """They spread over zones: another one beside two others is too many."""
    spread = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    made = pod(
        name, metadata={"labels": {"app": "web"}}, status=MARK, cpu="1", topologySpreadConstraints=[spread], **spec
    )
    return SHAPES.keep(convert(made, Pod))


LEAVES, WAITS = web("leaves", nodeName="going"), web("waits")
BUFFER = Demand("default/capacitybuffer:spare#0", web("spare", priority=-(2**31)).shape)
GOES = convert(node("going", labels={ZONE: "test-zone-a"}, metadata=GOING), Node)


POOL = convert(node_pool(), NodePool)
ROOM: Json = {"cpu": "8", "memory": "16Gi", "pods": "110"}


def stays(*, cpu: str = "8") -> Node:
    return convert(node("stays", labels={ZONE: "test-zone-b"}, cpu=cpu), Node)


COMING = convert(
    claim(
        "coming",
        labels={ZONE: "test-zone-b"},
        status={"providerID": "kwok://1", "capacity": ROOM, "allocatable": ROOM},
    ),
    NodeClaim,
)


def planned(
    *pods: CachedPod,
    nodes: Sequence[Node] = (),
    claims: Sequence[NodeClaim] = (),
    virtual: tuple[Demand, ...] = (),
    packer: Packer = "first-fit",
) -> Plan:
    """With the node that goes, and two such pods on the one that stays."""
    there = [web(f"there-{at}", nodeName=each.metadata.name) for each in nodes for at in range(2)]
    objects = Objects(pods=[*there, *pods], nodes=[GOES, *nodes], claims=claims, pools=[POOL])
    question = Question(
        picture=pictured(objects, builtin("kwok"), now=NOW),
        marked=Marked(now=100.0, age=1.0, since={}, sorts=frozenset()),
        sort=Sorts().of,
        served=SERVED,
        virtual=virtual,
        options=Options(packer=packer),
    )
    plan = answered(question).plan
    assert plan is not None
    assert not plan.unplaced
    return plan


def bought(plan: Plan) -> list[tuple[str, ...]]:
    return [each.pods for each in plan.claims]


def filled(plan: Plan) -> dict[str, tuple[str, ...]]:
    assert {key: name for key, name in plan.order if isinstance(name, str)} == {
        key: each.name for each in plan.filled for key in each.pods
    }
    return {each.name: each.pods for each in plan.filled}


@pytest.mark.parametrize("packer", ["first-fit", "cost"])
def test_a_pod_that_leaves_a_machine_buys_nothing_for_a_wish(packer: Packer) -> None:
    """kube-scheduler binds it where there is room, long before a machine in the better zone could come."""
    plan = planned(LEAVES, nodes=[stays()], packer=packer)
    assert not plan.claims
    assert filled(plan) == {"stays": ("default/leaves",)}


@pytest.mark.parametrize("packer", ["first-fit", "cost"])
def test_a_pod_of_a_buffer_buys_nothing_for_a_wish(packer: Packer) -> None:
    """Nobody ever binds it, and who comes in its place is put where there is room."""
    plan = planned(LEAVES, nodes=[stays()], virtual=(BUFFER,), packer=packer)
    assert not plan.claims
    assert filled(plan) == {"stays": ("default/leaves", BUFFER.key)}


def test_what_there_is_no_room_for_is_bought_as_it_is_wished() -> None:
    """Of two that leave one fits; the other gets a machine in a zone without its like."""
    plan = planned(LEAVES, web("leaves-too", nodeName="going"), nodes=[stays(cpu="3")])
    assert filled(plan) == {"stays": ("default/leaves",)}
    assert bought(plan) == [("default/leaves-too",)]
    assert plan.claims[0].zone != "test-zone-b"


def test_a_pod_that_waits_has_its_wish() -> None:
    """kube-scheduler has just said that no node takes it: what it would rather have is bought."""
    plan = planned(WAITS, nodes=[stays()])
    assert bought(plan) == [("default/waits",)]


def test_what_a_pod_that_leaves_insists_on_is_bought() -> None:
    """Room in a zone where it may not be is none."""
    plan = planned(web("leaves", nodeName="going", when="DoNotSchedule"), nodes=[stays()])
    assert bought(plan) == [("default/leaves",)]


@pytest.mark.parametrize("virtual", [False, True])
def test_a_machine_that_is_not_up_is_room_for_buffers_only(*, virtual: bool) -> None:
    """Nobody is bound there yet: what is bought now comes no later."""
    like = web("like", nodeName="going")
    full = convert(node("full", labels={ZONE: "test-zone-b"}, cpu="2"), Node)
    plan = planned(*([] if virtual else [like]), nodes=[full], claims=[COMING], virtual=(BUFFER,) if virtual else ())
    assert bought(plan) == ([] if virtual else [("default/like",)])


def test_buffers_do_without_their_wishes_when_it_is_asked_what_a_move_would_leave_them() -> None:
    """As when they are planned for: where there is room nothing is bought, so the move takes nothing away."""
    there = [web(f"there-{at}", nodeName="stays") for at in range(2)]
    objects = Objects(pods=there, nodes=[stays(cpu="3")], pools=[POOL])
    snapshot = composed(pictured(objects, builtin("kwok"), now=NOW)).snapshot
    more = Demand("default/capacitybuffer:spare#1", BUFFER.shape)
    assert without_room(snapshot, snapshot.nodes, (BUFFER, more)) == [more.key]
