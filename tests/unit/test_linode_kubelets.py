"""What a LinodeNodeClass says of kubelets: what is left for pods, and what cannot be reckoned with."""

import msgspec
import pytest

from growth.api.instance_types import InstanceType
from growth.api.linodeclasses import LinodeKubelet
from growth.providers.linode.kubelets import fitted, instance_problems, not_reckoned, problems

GI = 1 << 30
KIND = InstanceType(
    name="g6-standard-2",
    labels={},
    capacity={"cpu": 2000, "memory": 4 * GI, "pods": 110, "ephemeral-storage": 80 * GI},
    offerings=(),
    overhead={"cpu": 100, "memory": GI // 4},
)


def left(**said: object) -> dict[str, int]:
    (kind,) = fitted([KIND], msgspec.convert(said, LinodeKubelet))
    return {name: amount for name, amount in kind.allocatable.items() if amount != KIND.allocatable[name]}


@pytest.mark.parametrize(
    ("said", "changed"),
    [
        ({}, {}),
        ({"clusterDNS": ["10.0.0.10"], "cpuCFSQuota": False}, {}),
        ({"maxPods": 20}, {"pods": 20}),
        ({"podsPerCore": 10}, {"pods": 20}),
        ({"podsPerCore": 10, "maxPods": 15}, {"pods": 15}),
        ({"kubeReserved": {"cpu": "80m"}}, {}),
        ({"kubeReserved": {"cpu": "200m"}, "systemReserved": {"cpu": "100m"}}, {"cpu": 1700}),
        ({"kubeReserved": {"memory": "1Gi", "pid": "1000"}}, {"memory": 4 * GI - GI // 4 - GI}),
        ({"evictionHard": {"memory.available": "25%"}}, {"memory": 3 * GI - GI // 4}),
        ({"evictionHard": {"memory.available": "100%"}}, {}),
        ({"evictionHard": {"memory.available": "012.50%"}}, {"memory": 4 * GI - GI // 2 - GI // 4}),
        ({"kubeReserved": {"memory": "1Gi", "cpu": "much"}}, {"memory": 3 * GI - GI // 4}),
        ({"evictionHard": {"nodefs.available": "8Gi", "imagefs.available": "15%"}}, {"ephemeral-storage": 72 * GI}),
        (
            {
                "evictionHard": {"memory.available": "100Mi"},
                "evictionSoft": {"memory.available": "1Gi"},
                "evictionSoftGracePeriod": {"memory.available": "1m"},
            },
            {"memory": 3 * GI - GI // 4},
        ),
        ({"systemReserved": {"memory": "100Gi"}}, {"memory": 0}),
    ],
)
def test_what_kubelets_keep_is_not_left_for_pods(said: dict[str, object], changed: dict[str, int]) -> None:
    """Besides the memory that machines lack; of the CPU a tenth of a core is assumed for it already."""
    assert left(**said) == changed


@pytest.mark.parametrize(
    ("said", "where"),
    [
        ({"kubeReserved": {"memory": "much"}}, "spec.kubelet.kubeReserved.memory: 'much'"),
        ({"systemReserved": {"cpu": ""}}, "spec.kubelet.systemReserved.cpu: ''"),
        ({"evictionHard": {"memory.available": "120%"}}, "spec.kubelet.evictionHard.memory.available: '120%'"),
        ({"evictionSoft": {"nodefs.available": "x%"}}, "spec.kubelet.evictionSoft.nodefs.available: 'x%'"),
        *(
            ({"evictionHard": {"memory.available": text}}, f"spec.kubelet.evictionHard.memory.available: {text!r}")
            for text in ("NaN%", "nan%", "sNaN%", "Infinity%", "-5%", "1_0%", " 5%", "٥%", ".%", "%", "9" * 5000 + "%")
        ),
        ({"evictionHard": {"memory.available": "-1Gi"}}, "spec.kubelet.evictionHard.memory.available: '-1Gi'"),
        ({"evictionSoft": {"nodefs.available": " -1"}}, "spec.kubelet.evictionSoft.nodefs.available: ' -1'"),
        ({"systemReserved": {"memory": " -1Gi"}}, "spec.kubelet.systemReserved.memory: ' -1Gi'"),
        ({"kubeReserved": {"cpu": "-2"}}, "spec.kubelet.kubeReserved.cpu: '-2'"),
    ],
)
def test_what_is_no_quantity_is_told_and_counts_nothing(said: dict[str, object], where: str) -> None:
    """The condition names the field; planning goes on meanwhile."""
    (problem,) = problems(msgspec.convert(said, LinodeKubelet))
    assert problem.message.startswith(where)
    assert left(**said) == {}


def test_instances_are_told_max_pods_and_nothing_else() -> None:
    """Everything else that somebody wrote is refused by its name."""
    said = {
        "maxPods": 20,
        "podsPerCore": 5,
        "clusterDNS": ["10.0.0.10"],
        "kubeReserved": {"memory": "1Gi"},
        "cpuCFSQuota": False,
    }
    kubelet = msgspec.convert(said, LinodeKubelet)
    found = [each.message.partition(":")[0] for each in instance_problems(kubelet, told=True)]
    fields = ("clusterDNS", "podsPerCore", "kubeReserved", "cpuCFSQuota")
    assert found == [f"spec.kubelet.{field}" for field in fields]
    assert not list(instance_problems(None, told=True))
    assert not list(problems(None))


@pytest.mark.parametrize(("most", "refused"), [(20, True), (110, True), (0, False), (None, False)])
def test_max_pods_that_no_kubelet_is_told_are_refused(most: int | None, *, refused: bool) -> None:
    """User data that Growth does not make says nothing of them, and planning would reckon with a number of its own."""
    found = [each.message for each in instance_problems(LinodeKubelet(max_pods=most), told=False)]
    assert [each.partition(":")[0] for each in found] == ["spec.kubelet.maxPods"] * refused


def test_what_is_not_reckoned_with_is_named() -> None:
    """Of kubelets that LKE sets it says nothing to anybody. How long a soft threshold is borne belongs to the threshold."""
    reckoned = {
        "maxPods": 20,
        "podsPerCore": 5,
        "systemReserved": {"cpu": "1", "memory": "1Gi", "ephemeral-storage": "1Gi"},
        "kubeReserved": {"memory": "1Gi"},
        "evictionHard": {"memory.available": "5%", "nodefs.available": "1Gi"},
        "evictionSoft": {"memory.available": "5%"},
        "evictionSoftGracePeriod": {"memory.available": "1m"},
    }
    others = {
        "clusterDNS": ["10.0.0.10"],
        "cpuCFSQuota": False,
        "evictionMaxPodGracePeriod": 0,
        "systemReserved": {"pid": "100", "cpu": "1"},
        "evictionHard": {"pid.available": "5%", "nodefs.inodesFree": "5%"},
        "evictionSoft": {"imagefs.available": "5%"},
    }
    assert not_reckoned(msgspec.convert(reckoned, LinodeKubelet)) == []
    assert not_reckoned(None) == []
    assert not_reckoned(msgspec.convert(others, LinodeKubelet)) == [
        "clusterDNS",
        "cpuCFSQuota",
        "evictionHard.nodefs.inodesFree",
        "evictionHard.pid.available",
        "evictionMaxPodGracePeriod",
        "evictionSoft.imagefs.available",
        "systemReserved.pid",
    ]
