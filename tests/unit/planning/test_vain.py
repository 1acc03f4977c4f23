"""What keeps pods off the Node that came: the differences that do, and nothing of what others are the reason of."""

import dataclasses
from typing import Any, Final

import pytest

from growth.api import names
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassReference
from growth.api.meta import ObjectMeta
from growth.api.nodes import Node, NodeSpec, NodeStatus
from growth.api.placement import Taint
from growth.api.volumes import CSINode, CSINodeDriver, CSINodeSpec, VolumeNodeResources
from growth.cluster.machines import Machine
from growth.cluster.snapshot import Snapshot, VolumesView
from growth.planning.vain import keeps_off
from tests.unit.planning.builders import SHAPES, ZONE, pod, spread

LABELS: Final = {ZONE: "fsn1", names.ARCH_LABEL: "amd64", "team": "a"}
ROOM: Final[dict[str, str | float]] = {"cpu": "4", "memory": "8Gi", "pods": "110"}
EMPTY: Final = Snapshot(currency="EUR", namespaces={"default": {}})

CLAIM: Final = NodeClaim(
    metadata=ObjectMeta(name="one", labels=LABELS),
    spec=NodeClaimSpec(node_class_ref=NodeClassReference(group="g", kind="k", name="default"), requirements=()),
    status=NodeClaimStatus(provider_id="kwok://one", allocatable=ROOM, capacity=ROOM),
)


def came(
    *taints: Taint,
    labels: dict[str, str | None] | None = None,
    room: dict[str, str] | None = None,
    cordoned: bool = False,
) -> Machine:
    own: dict[str, str | None] = {**LABELS, names.HOSTNAME_LABEL: "one", **(labels or {})}
    marks = {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true"}
    node = Node(
        metadata=ObjectMeta(name="one", labels={key: value for key, value in own.items() if value is not None} | marks),
        spec=NodeSpec(provider_id="kwok://one", taints=taints, unschedulable=cordoned),
        status=NodeStatus(allocatable={**ROOM, **(room or {})}),
    )
    return Machine(node, CLAIM)


def why(machine: Machine, snapshot: Snapshot = EMPTY, **asked: Any) -> str:
    return keeps_off(snapshot, Machine(None, CLAIM), machine, SHAPES.shape(pod(**asked)))


def test_a_node_that_came_as_planned_takes_its_pods() -> None:
    """Whatever the pods ask for."""
    assert why(came()) == ""
    assert why(came(), selector={ZONE: "fsn1", "team": "a"}, spread=[spread(ZONE, app="web")]) == ""


def test_the_differences_that_keep_the_pods_off_are_told_and_no_others() -> None:
    """The zone is another, which the pods ask for; so is the architecture, and nobody asks for that."""
    told = why(came(labels={ZONE: "fsn1-dc14", names.ARCH_LABEL: "x86_64"}), selector={ZONE: "fsn1"})
    assert told.startswith(f"label {ZONE} is fsn1-dc14 where fsn1 was planned: correct the label")
    assert names.ARCH_LABEL not in told
    assert why(came(labels={ZONE: "fsn1-dc14"})) == ""


def test_several_differences_are_told_together() -> None:
    """Each of them would keep the pods off alone."""
    stray = Taint(key="example.com/stray", effect="NoSchedule", value="yes")
    told = why(came(stray, labels={"team": None}, room={"cpu": "100m"}), selector={"team": "a"}, cpu="1")
    assert "label team is missing where a was planned" in told
    assert "taint example.com/stray=yes:NoSchedule was not planned" in told
    assert "allocatable cpu is 100m where 4 was planned" in told


@pytest.mark.parametrize(
    "taint",
    [
        Taint(key="node.kubernetes.io/not-ready", effect="NoExecute"),
        Taint(key="node.kubernetes.io/memory-pressure", effect="NoSchedule"),
        Taint(key=names.DISRUPTED_TAINT, effect="NoSchedule"),
        Taint(key=names.SCALE_DOWN_TAINT, effect="NoSchedule"),
        Taint(key="example.com/soft", effect="PreferNoSchedule"),
    ],
    ids=lambda taint: taint.key,
)
def test_what_passes_and_our_own_marks_say_nothing_of_the_node(taint: Taint) -> None:
    """A Node that is ill for a while, or that is about to go, came as planned."""
    assert why(came(taint)) == ""


def test_a_cordon_is_a_difference() -> None:
    """Somebody, or something, closes every Node that comes."""
    assert "node.kubernetes.io/unschedulable:NoSchedule was not planned" in why(came(cordoned=True))


def test_less_room_counts_where_the_pod_does_not_fit_any_more() -> None:
    """A few megabytes less than was promised are as usual."""
    assert why(came(room={"memory": "7900Mi"}), memory="1Gi") == ""
    assert "allocatable memory is 512Mi where 8Gi was planned" in why(came(room={"memory": "512Mi"}), memory="1Gi")


def test_a_label_by_which_pods_are_spread_counts() -> None:
    """A pod that is counted by the zone cannot be where the zone is another than was counted on."""
    told = why(came(labels={ZONE: "fsn1-dc14"}), spread=[spread(ZONE, app="web")], labels={"app": "web"})
    assert f"label {ZONE} is fsn1-dc14 where fsn1 was planned" in told


def test_what_daemon_sets_take_is_taken_off() -> None:
    """A Node as it was planned, with a DaemonSet that came since and takes it all, holds none, and people are told to look there."""
    daemon = dataclasses.replace(EMPTY, daemons=(pod("agent", cpu="3500m"),))
    assert "look at DaemonSets" in why(came(), daemon, cpu="1")
    assert why(came(), daemon, cpu="400m") == ""


def test_fewer_volumes_than_the_pod_has_count() -> None:
    """What the node's driver attaches is said of it, beside what keeps pods off in any case."""
    driver = CSINodeDriver(name="csi.example.com", node_id="one", allocatable=VolumeNodeResources(count=0))
    limited = VolumesView(
        csi_nodes={"one": CSINode(metadata=ObjectMeta(name="one"), spec=CSINodeSpec(drivers=(driver,)))}
    )
    assert why(came(), dataclasses.replace(EMPTY, volumes=limited)) == ""
