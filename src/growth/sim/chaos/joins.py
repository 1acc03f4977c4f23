"""Kubelets that join in strange ways: twice, with less room, without a provider ID, under another's name, or not at all.

Sits between the KWOK cloud's own half and the server, where a machine's kubelet registers its Node. Nodes that it
distorted are followed by a cloud controller manager's stand-in, which removes them when their machine is gone.
"""

import asyncio
import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

import msgspec

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.edits import add_taint, remove_taint
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import AlreadyExists, KubeError, NotFound
from growth.providers.kwok.records import record_name
from growth.sim.chaos.strange_nodes import StrangeNodes
from growth.sim.ports import SimRandom

T = TypeVar("T")

NAMESPACE: Final = "growth"
AGENT_TAINT: Final = "node.cilium.io/agent-not-ready"
LOOK_SECONDS: Final = 20.0

Strike = Callable[[str], bool]
Later = Callable[[float, Callable[[], Any]], None]
"""Runs a coroutine function so many seconds later, outside of every process."""


class Joins:
    """`wrap` the cloud's connection; `keep` runs beside it."""

    def __init__(self, *, strike: Strike, random: SimRandom, later: Later) -> None:
        self.names: list[str] = []
        """Names of Nodes that are gone, to be used again."""
        self._strike = strike
        self._random = random
        self._later = later
        self.otherwise = StrangeNodes(strike=strike, random=random.stream("otherwise"), later=later)
        self._strange: dict[str, str] = {}  # the Node's name → its machine's record

    def wrap(self, api: Api) -> Api:
        return cast("Api", _Joining(api, self))

    def distort(self, api: Api, body: Json) -> tuple[Json, str]:
        """The Node as it is to register, and the record of its machine where nobody else takes it away with that; or empty."""
        body, followed = copy.deepcopy(body), ""
        spec, meta = body["spec"], body["metadata"]
        provider_id, record = spec["providerID"], record_name(meta["name"])
        if self.names and self._strike("name-reuse"):
            meta["name"] = self.names.pop(0)
            meta["labels"][names.HOSTNAME_LABEL] = meta["name"]
            followed = _estranged(meta, record)
        if self._strike("wrong-allocatable"):
            allocatable = body["status"]["allocatable"]
            allocatable["cpu"] = f"{self._random.between(1200, 3000)}m"
        self.otherwise.distort(api, body)
        if self._strike("missing-provider-id"):
            del spec["providerID"]
            followed = _estranged(meta, record)
            self._later(self._random.uniform(20.0, 400.0), lambda: _say_id(api, meta["name"], provider_id))
        if self._strike("double-join"):
            self._later(self._random.uniform(1.0, 120.0), lambda: self._twin(api, body, provider_id, record))
        if self._strike("late-taint"):
            name = meta["name"]
            self._later(self._random.uniform(5.0, 60.0), lambda: _taint(api, name))
            self._later(self._random.uniform(90.0, 240.0), lambda: _untaint(api, name))
        return body, followed

    def registered(self, name: str, record: str) -> None:
        """A Node is there that goes with that record. Before that the name may be another machine's."""
        self._strange[name] = record

    async def _twin(self, api: Api, body: Json, provider_id: str, record: str) -> None:
        twin = copy.deepcopy(body)
        name = f"{body['metadata']['name']}-twin"
        twin["metadata"]["name"] = name
        twin["metadata"]["labels"][names.HOSTNAME_LABEL] = name
        twin["spec"]["providerID"] = provider_id
        _estranged(twin["metadata"], record)
        try:
            await api.get(CONFIG_MAP, record, namespace=NAMESPACE)
            await api.create(NODE, twin)
        except KubeError:
            return
        self.registered(name, record)
        # A person or the cloud's controller notices in the end, and takes the second one away.
        self._later(self._random.uniform(30.0, 600.0), lambda: _remove(api, name))

    async def keep(self, api: Api) -> None:
        """Removes distorted Nodes whose machines are gone, as a cloud controller manager does."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for name, record in tuple(self._strange.items()):
                try:
                    await api.get(CONFIG_MAP, record, namespace=NAMESPACE)
                except NotFound:
                    await _remove(api, name)
                    del self._strange[name]


class _Joining:
    """The cloud's connection; everything but the registration of Nodes passes as it is."""

    def __init__(self, api: Api, joins: Joins) -> None:
        self._api = api
        self._joins = joins

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def create(self, kind: Kind[T], body: msgspec.Struct | Mapping[str, Any], *, namespace: str = "") -> T:
        if kind.plural == NODE.plural and isinstance(body, dict):
            strange, followed = self._joins.distort(self._api, body)
            made = await self._api.create(kind, strange, namespace=namespace)
            if followed:
                self._joins.registered(strange["metadata"]["name"], followed)
            return made
        return await self._api.create(kind, body, namespace=namespace)


def _estranged(meta: Json, record: str) -> str:
    """The cloud's own half takes it for another's and leaves it alone."""
    meta["labels"].pop(names.KWOK_MACHINE_LABEL, None)
    return record


async def _say_id(api: Api, name: str, provider_id: str) -> None:
    try:
        await api.patch(NODE, name, {"spec": {"providerID": provider_id}})
    except KubeError:
        return


async def _taint(api: Api, name: str) -> None:
    await _edit(api, name, lambda draft: add_taint(draft, key=AGENT_TAINT, effect="NoSchedule"))


async def _untaint(api: Api, name: str) -> None:
    await _edit(api, name, lambda draft: remove_taint(draft, key=AGENT_TAINT, effect="NoSchedule"))


async def _edit(api: Api, name: str, edit: Callable[[Json], object]) -> None:
    def apply(draft: Json) -> None:
        edit(draft)

    try:
        await change(api, NODE, name, apply)
    except (KubeError, AlreadyExists):
        return


async def _remove(api: Api, name: str) -> None:
    try:
        await api.delete(NODE, name)
    except KubeError:
        return
