"""How `growth run` is told of a Linode account: cluster, address and token, and what is said where they will not do."""

from collections.abc import Mapping

import pytest

from growth.kube.api import ALWAYS_OPEN
from growth.kube.memory import MemoryApi
from growth.kube.memory.server import MemoryServer
from growth.operator.clouds import chosen
from growth.operator.roles import objects
from growth.operator.settings import SettingError, read
from growth.ports import SystemClock, SystemRandom
from growth.sim.kernel import Kernel
from growth.sim.ports import SimClock, SimRandom
from tests.linode import TOKEN
from tests.unit.test_hetzner_settings import Unused


def parts(environ: Mapping[str, str], **flags: str) -> list[str]:
    """The names of what runs beside the provider."""
    settings = read({"provider": "linode", **flags}, {})
    make = chosen(settings, clock=SystemClock(), random=SystemRandom(), transport=Unused(), environ=environ)
    kernel = Kernel(seed=1)
    api = MemoryApi(MemoryServer(SimClock(kernel), SimRandom(1, "server")), user="growth")
    cloud = make(api, cluster="abc", gate=ALWAYS_OPEN)
    kernel.close()
    return [type(part).__name__ for part in cloud.parts]


def test_the_vendor_needs_a_token_and_a_fake_gets_kubelets() -> None:
    """Machines of a fake cannot boot."""
    assert parts({"LINODE_TOKEN": TOKEN}, linodeCluster="prod") == ["Keeper"]
    fake = parts({}, linodeCluster="prod", apiEndpoint="http://127.0.0.1:8888/v4beta")
    assert fake == ["Keeper", "StandIn", "Kubelets"]


@pytest.mark.parametrize(
    ("environ", "flags", "word"),
    [
        ({}, {"linodeCluster": "prod"}, "put it into LINODE_TOKEN, or name its file with --token-file"),
        ({"LINODE_TOKEN": TOKEN}, {}, "--linode-region .* give one of them"),
        ({"LINODE_TOKEN": TOKEN}, {"linodeCluster": "prod", "linodeRegion": "us-east"}, "give one of them"),
        (
            {"LINODE_TOKEN": TOKEN},
            {"linodeCluster": "prod", "lkeOrphanTTL": "25s"},
            "--lke-orphan-ttl 25s is less than twice --lke-create-timeout 15s",
        ),
        (
            {"LINODE_TOKEN": TOKEN},
            {"linodeCluster": "prod", "lkeCreateTimeout": "3m"},
            "what a purchase still waits for would be removed",
        ),
        ({"LINODE_TOKEN": TOKEN}, {"linodeCluster": "prod", "lkeCreateTimeout": "2s"}, "it must be 5s or more"),
        ({"LINODE_TOKEN": "two words"}, {"linodeCluster": "prod"}, "variable LINODE_TOKEN holds no token"),
    ],
)
def test_what_is_missing_is_said(environ: Mapping[str, str], flags: dict[str, str], word: str) -> None:
    """And what is wrong with a token, without the token."""
    with pytest.raises(SettingError, match=word) as told:
        parts(environ, **flags)
    assert TOKEN not in str(told.value)


def test_capacity_may_stand_for_as_long_as_two_tries_take() -> None:
    """Then a purchase that is tried again finds what the first try asked for."""
    assert parts({"LINODE_TOKEN": TOKEN}, linodeCluster="prod", lkeOrphanTTL="30s") == ["Keeper"]
    assert parts({"LINODE_TOKEN": TOKEN}, linodeRegion="us-east", lkeOrphanTTL="1s") == ["Keeper"]


def test_the_rights_are_those_of_the_keeper() -> None:
    """It reads classes, writes their status and the annotation that says which tags were applied; no Secret."""
    (role,) = [each for each in objects(namespace="growth", provider="linode") if _is_role(each)]
    granted = {(resource, verb) for rule in role["rules"] for resource in rule["resources"] for verb in rule["verbs"]}
    assert ("linodenodeclasses/status", "patch") in granted
    assert ("linodenodeclasses", "patch") not in granted
    assert not any(resource == "secrets" for resource, _ in granted)


def _is_role(body: dict[str, object]) -> bool:
    metadata = body["metadata"]
    assert isinstance(metadata, dict)
    return body["kind"] == "ClusterRole" and metadata["name"] == "growth-linode"
