"""By what machines of a LinodeNodeClass drift: by what would make others, and by nothing else."""

from typing import Any

import msgspec
import pytest

from growth.api.linodeclasses import LinodeNodeClassSpec
from growth.providers.linode.classes import differs, hash_of, hashes_of


def spec(**said: Any) -> LinodeNodeClassSpec:
    return msgspec.convert(said, LinodeNodeClassSpec)


def drifts(before: LinodeNodeClassSpec, after: LinodeNodeClassSpec, *, instances: bool) -> bool:
    return differs(hash_of(before, instances=instances), hashes_of(after, instances=instances))


@pytest.mark.parametrize("instances", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        {"lkeK8sVersion": ""},
        {"image": "linode/ubuntu24.04"},
        {"image": ""},
        {"kubelet": {}},
        {"kubelet": {"maxPods": 110}},
        {"kubelet": {"maxPods": 0}},
        {"swap_size": 0},
        {"tags": ["team:web"]},
    ],
)
def test_to_name_what_machines_get_anyway_is_no_drift(said: dict[str, Any], *, instances: bool) -> None:
    """Neither when somebody writes it into the class nor when they take it out."""
    assert not drifts(spec(), spec(**said), instances=instances)
    assert not drifts(spec(**said), spec(), instances=instances)


@pytest.mark.parametrize(
    "said",
    [
        {"image": "linode/ubuntu22.04"},
        {"kubelet": {"maxPods": 20}},
        {"swap_size": 512},
        {"firewallID": 7},
        {"diskEncryption": "disabled"},
        {"placementGroup": {"id": 5}},
        {"authorizedKeys": ["ssh-ed25519 AAAA x"]},
    ],
)
def test_what_makes_other_instances_is_drift(said: dict[str, Any]) -> None:
    """In both directions."""
    assert drifts(spec(), spec(**said), instances=True)
    assert drifts(spec(**said), spec(), instances=True)


@pytest.mark.parametrize(
    ("said", "instances", "held"),
    [
        ({}, False, "v2-b825a6b1d90143ae"),
        ({"firewallID": 7, "lkeK8sVersion": "v1.33.4+lke1"}, False, "v2-dfc8e0f520e55444"),
        ({}, True, "v1-b14e8bd7c052356d"),
        ({"image": "linode/ubuntu22.04", "kubelet": {"maxPods": 20}, "swap_size": 512}, True, "v1-029540afa0035c8e"),
        ({"swap_size": 0, "image": "linode/ubuntu24.04", "kubelet": {"maxPods": 110}}, True, "v1-addf2116408fff1a"),
        ({"lkeK8sVersion": ""}, False, "v2-0186c84b7bcf07df"),
    ],
)
def test_machines_that_stand_stay(said: dict[str, Any], *, instances: bool, held: str) -> None:
    """A hash that was written on a machine counts for as long as its class says the same, also where it names a default."""
    assert not differs(held, hashes_of(spec(**said), instances=instances))


def test_a_hash_that_was_made_otherwise_says_nothing() -> None:
    """Nor does a machine without one."""
    for held in ("", "v0-0123456789abcdef"):
        assert not differs(held, hashes_of(spec(), instances=True))
