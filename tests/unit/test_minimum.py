"""`min` of growth pools in what people read: it is bought without a pod, counted on, and named where it keeps a node."""

import asyncio
import contextlib
import json
import pathlib
from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.cli.entry import run
from growth.top.following import Following
from growth.top.thinking import Thoughts, think
from tests.manifests import claim, growth_pool, node, pod, written
from tests.showing import followed

CX33 = 0.0136
BORN = "2026-01-01T00:00:00Z"


class Asked:
    def __init__(self, capsys: pytest.CaptureFixture[str], folder: pathlib.Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def text(self, command: str, *words: str, objects: list[Json]) -> str:
        code = run([command, *words, "-f", written(self._folder, *objects)])
        said = self._capsys.readouterr()
        assert code == 0, said.err
        return said.out

    def json(self, command: str, *words: str, objects: list[Json]) -> Any:
        return json.loads(self.text(command, *words, "-o", "json", objects=objects))


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> Asked:
    return Asked(capsys, tmp_path)


def kind(name: str, **more: Any) -> Json:
    return {"name": name, "max": 5, **more}


def machine(name: str, type_: str = "cx33") -> list[Json]:
    """A node of the growth pool `default` that is up, and its claim."""
    labels = {
        names.POOL_LABEL: "default",
        names.INSTANCE_TYPE_LABEL: type_,
        names.ZONE_LABEL: "fsn1",
        names.CAPACITY_TYPE_LABEL: "on-demand",
        names.ARCH_LABEL: "amd64",
        names.OS_LABEL: "linux",
    }
    room = {"cpu": "3900m", "memory": "7Gi", "pods": "110"}
    told = [
        {"type": each, "status": "True", "reason": each, "lastTransitionTime": BORN}
        for each in ("Launched", "Registered", "Initialized")
    ]
    status = {
        "providerID": f"hcloud://{name}",
        "nodeName": name,
        "capacity": room,
        "allocatable": room,
        "conditions": told,
    }
    marks = {names.REGISTERED_LABEL: "true", names.INITIALIZED_LABEL: "true", names.HOSTNAME_LABEL: name}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "capacity": room, "allocatable": room}
    return [
        claim(name, labels=labels, metadata={"uid": name, "creationTimestamp": BORN}, status=status),
        node(name, labels={**labels, **marks}, provider=f"hcloud://{name}", status=ready),
    ]


def bought(found: Any) -> list[tuple[str, list[str]]]:
    return sorted((each["instanceType"], each["pods"]) for each in found["nodeClaims"])


def test_a_minimum_is_bought_without_a_pod(asked: Asked) -> None:
    """So many machines of the type, at their price, with the reason; the bound knows that nothing is cheaper."""
    pool = growth_pool("default", kind("CX33", min=2), kind("CX23"))
    found = asked.json("plan", objects=[pool])
    assert bought(found) == [("cx33", []), ("cx33", [])]
    assert {each["nodePool"] for each in found["nodeClaims"]} == {"growth.dev/default"}
    assert found["summary"]["nodes"] == 2
    assert found["summary"]["hourly"] == pytest.approx(2 * CX33, rel=1e-3)
    assert "keeps 2 machines of this type without load (min)" in found["nodeClaims"][0]["why"]
    text = asked.text("plan", objects=[pool])
    assert "kept without load (min 2)" in text
    assert "2 machines to buy for €0.0272/h" in text


def test_pods_go_to_the_minimum_first(asked: Asked) -> None:
    """What is bought anyway takes the pods; only what does not fit there is bought for."""
    pool = growth_pool("default", kind("CX33", min=1), kind("CX23"))
    found = asked.json("plan", objects=[pool, pod("a", cpu="1"), pod("b", cpu="1")])
    assert bought(found) == [("cx33", ["default/a", "default/b"])]
    assert found["existingNodes"] == []
    found = asked.json("plan", objects=[pool, *(pod(f"p{number}", cpu="1500m") for number in range(3))])
    assert [(type_, len(pods)) for type_, pods in bought(found)] == [("cx23", 1), ("cx33", 2)]
    assert found["summary"]["lowerBound"] <= found["summary"]["objective"] == found["summary"]["planned"]


@pytest.mark.parametrize(
    ("pool", "more", "expected"),
    [
        pytest.param(growth_pool("default", kind("CX33", min=2)), machine("a"), ["cx33"], id="one is there"),
        pytest.param(growth_pool("default", kind("CX33", min=1)), machine("a"), [], id="all are there"),
        pytest.param(growth_pool("default", kind("CX33", min=3), limits={"nodes": 2}), [], ["cx33"] * 2, id="limit"),
        pytest.param(
            growth_pool("default", kind("CX33", min=1), metadata={"annotations": {names.PAUSED_ANNOTATION: "true"}}),
            [],
            [],
            id="paused",
        ),
        pytest.param(growth_pool("default", kind("CX31", min=1), kind("CX33")), [], [], id="no longer sold"),
        pytest.param(
            growth_pool(
                "default",
                kind("CX33", min=1),
                kind("CX23", min=1),
                status={"serverTypes": [{"name": "cx33", "unmetUntil": "2999-01-01T00:00:00Z"}]},
            ),
            [],
            ["cx23"],
            id="unmet",
        ),
    ],
)
def test_no_more_is_bought_than_the_pool_may(asked: Asked, pool: Json, more: list[Json], expected: list[str]) -> None:
    """What is there counts; limits, a pause and what the cloud has not got count more than `min`."""
    found = asked.json("plan", objects=[pool, *more])
    assert [type_ for type_, _ in bought(found)] == expected


def test_requests_on_their_way_are_the_minimum(asked: Asked) -> None:
    """A NodeRequest without a claim yet is a machine of its type."""
    request = {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodeRequest",
        "metadata": {"name": "default-pool-1", "uid": "1"},
        "spec": {"targetOffering": "hetzner-cx33", "pool": "default"},
        "status": {"phase": "Pending"},
    }
    found = asked.json("plan", objects=[growth_pool("default", kind("CX33", min=1)), request])
    assert bought(found) == []


def test_a_node_of_the_minimum_is_kept_for_it(asked: Asked) -> None:
    """`plan --consolidate` says so as `explain` does, and that another one is empty and goes."""
    pool = growth_pool("default", kind("CX33", min=1))
    found = asked.json("plan", "--consolidate", objects=[pool, *machine("a")])
    (kept,) = found["kept"]
    assert (kept["node"], kept["reason"]) == ("a", "Minimum")
    assert kept["message"] == "it is empty, and the pool keeps 1 machines of type cx33 (min)"
    explained = asked.json("explain", "node", "a", objects=[pool, *machine("a")])
    assert explained["cause"] == kept["reason"]
    assert kept["message"] in explained["sentence"]
    found = asked.json("plan", "--consolidate", objects=[pool, *machine("a"), *machine("b")])
    messages = sorted(each["message"] for each in found["kept"])
    assert messages == [
        "it is empty, and the pool keeps 1 machines of type cx33 (min)",
        "it is empty: NodePool growth.dev/default removes it unless a pod comes",
    ]


def test_what_if_a_node_of_the_minimum_went(asked: Asked) -> None:
    """Another is bought for it, so that nothing is saved."""
    pool = growth_pool("default", kind("CX33", min=1))
    found = asked.json("whatif", "--remove-node", "a", objects=[pool, *machine("a")])
    assert [each["instanceType"] for each in found["after"]["nodeClaims"]] == ["cx33"]
    assert found["difference"]["hourly"] == pytest.approx(0.0)


def test_a_pool_says_what_it_buys_for_its_minimum(asked: Asked) -> None:
    """Apart from what is bought for pods."""
    pool = growth_pool("default", kind("CX33", min=1), kind("CX23"))
    objects = [pool, *(pod(f"p{number}", cpu="1500m") for number in range(3))]
    notes = asked.json("explain", "nodepool", "growth.dev/default", objects=objects)["notes"]
    assert "1 machines would be bought here to have the min of their types" in notes
    assert "1 machines would be bought here for pods that wait" in notes


def thoughts(*objects: Json) -> Thoughts:
    async def main() -> Thoughts:
        async with followed(list(objects)) as (following, _, _api):
            return await _think(following)

    return asyncio.run(main())


async def _think(following: Following) -> Thoughts:
    task = asyncio.ensure_future(following.run())
    await following.wait_synced()
    try:
        return think(following.matter())
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def test_the_screen_knows_the_minimum() -> None:
    """It names what keeps the node, and a pod that a machine of the minimum takes has one to come."""
    pool = growth_pool("default", kind("CX33", min=1))
    kept = thoughts(pool, *machine("a")).kept
    assert kept == {"a": "empty: the pool keeps 1 machines of type cx33 (min)"}
    waiting = thoughts(growth_pool("default", kind("CX33", min=1), kind("CX23")), pod("p", cpu="1")).pending
    assert waiting["default/p"].startswith("a cx33 is to be bought for it in growth.dev/default")
