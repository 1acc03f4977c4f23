"""Kubelets that join in strange ways: their Nodes go when their machine does, and nobody else's do."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.sim import kernel as sim
from growth.sim.chaos.joins import LOOK_SECONDS, Joins
from growth.sim.kernel import Kernel
from growth.sim.ports import SimRandom


class Server:
    """Nodes by name, and the records of machines that are there."""

    def __init__(self, *records: str) -> None:
        self.records = set(records)
        self.nodes: set[str] = set()

    async def create(self, kind: Kind[Any], body: Json, *, namespace: str = "") -> Json:
        del kind, namespace
        name = body["metadata"]["name"]
        if name in self.nodes:
            raise AlreadyExists(f"Node {name} is there")
        self.nodes.add(name)
        return body

    async def get(self, kind: Kind[Any], name: str, *, namespace: str = "") -> str:
        del namespace
        assert kind is CONFIG_MAP
        if name not in self.records:
            raise NotFound(name)
        return name

    async def delete(self, kind: Kind[Any], name: str) -> None:
        assert kind is NODE
        self.nodes.discard(name)


def node(name: str) -> Json:
    return {
        "metadata": {"name": name, "labels": {names.KWOK_MACHINE_LABEL: "x", names.HOSTNAME_LABEL: name}},
        "spec": {"providerID": f"kwok://{name}"},
        "status": {"allocatable": {}},
    }


def test_a_kubelet_that_finds_its_name_taken_does_not_change_whose_the_node_is() -> None:
    """The first one's Node has a name of before, which a later machine would have: it goes with the first one's machine."""
    on = {"name-reuse"}

    async def main(kernel: Kernel) -> set[str]:
        server = Server("kwok-first", "kwok-old")

        def later(seconds: float, what: Callable[[], Any]) -> None:
            kernel.call_later(seconds, lambda: kernel.create_task(what(), name="later"))

        joins = Joins(strike=lambda kind: kind in on, random=SimRandom(1, "joins"), later=later)
        joins.names.append("old")
        api = joins.wrap(cast("Api", server))
        keeping = asyncio.ensure_future(joins.keep(cast("Api", server)))
        await api.create(NODE, node("first"))
        assert server.nodes == {"old"}
        on.clear()
        on.add("missing-provider-id")
        with pytest.raises(AlreadyExists):
            await api.create(NODE, node("old"))
        server.records.discard("kwok-first")
        await asyncio.sleep(2 * LOOK_SECONDS)
        keeping.cancel()
        return server.nodes

    assert sim.run(main, seed=1).value == set()
