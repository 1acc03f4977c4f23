"""The server in process beside a real one: random programs of calls, compared answer by answer and event by event.

The laws say what we thought of; this finds what we did not.
"""

import asyncio
import contextlib
from typing import Any

import pytest

from growth.api.kinds import Json, Kind
from growth.kube.api import Api, EventType
from growth.kube.errors import AlreadyExists
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import SystemClock, SystemRandom
from tests.conformance.kinds import CONFIG_MAP, NAMESPACE, POD
from tests.conformance.programs import Step, normal, program, run
from tests.conformance.realistic import REALISTIC
from tests.conformance.world import PATIENCE_SECONDS, Backend, crd, declare, name_of

PART: Json = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 1}},
}
SPEC: Json = {
    "type": "object",
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 3},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "replicas": {"type": "integer", "minimum": 0},
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "parts": {
            "type": "array",
            "items": PART,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low above high"}
    ],
}
TWIN = declare(
    crd(
        "twins",
        SPEC,
        status={"type": "object", "properties": {"count": {"type": "integer", "minimum": 0}}},
        subresources={
            "status": {},
            "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.count"},
        },
    )
)
LENGTH = 60


async def story(api: Api, kind: Kind[Json], *, namespace: str, revision: str) -> list[Any]:
    """What a watch tells of the kind since `revision`, up to a last object made for the purpose."""
    spec: Json = {"spec": {"containers": [{"name": "main", "image": "img"}]}} if kind is POD else {}
    await api.create(kind, {"metadata": {"name": "the-end"}, **spec}, namespace=namespace)
    told: list[Any] = []
    async with asyncio.timeout(PATIENCE_SECONDS), api.watch(kind, revision=revision, namespace=namespace) as events:
        async for event in events:
            if event.type is EventType.BOOKMARK:
                continue
            told.append((event.type.value, normal(event.object)))
            if name_of(event.object) == "the-end":
                return told
    raise AssertionError("the watch ended")


async def answers(api: Api, steps: list[Step], *, kind: Kind[Json], namespace: str) -> tuple[list[Any], list[Any]]:
    made = await api.create(NAMESPACE, {"metadata": {"name": namespace}})
    given = await run(api, steps, namespace=namespace)
    watched = (CONFIG_MAP, POD, kind)
    revision = made["metadata"]["resourceVersion"]
    return given, [await story(api, each, namespace=namespace, revision=revision) for each in watched]


@pytest.mark.plane
@pytest.mark.parametrize("seed", range(24))
def test_equal_calls_get_equal_answers(real_backend: Backend, seed: int) -> None:
    """Step by step, a program gets the same answers from both servers, and watches tell the same story of it."""

    async def law() -> None:
        async with real_backend.connect() as real:
            kind = await real_backend.kind(real, TWIN)
            steps = program(seed, length=LENGTH, invented=kind)
            memory_backend = Backend(connect=real_backend.connect, compact=real_backend.compact, shared=False)
            memory = MemoryApi(MemoryServer(SystemClock(), SystemRandom()))
            await memory_backend.kind(memory, TWIN)
            namespace = f"twin-{seed}"
            ours, our_story = await answers(memory, steps, kind=kind, namespace=namespace)
            theirs, their_story = await answers(real, steps, kind=kind, namespace=namespace)
        for number, (step, our, their) in enumerate(zip(steps, ours, theirs, strict=True)):
            assert our == their, f"step {number}: {step}"
        for told, heard in zip(our_story, their_story, strict=True):
            for our, their in zip(told, heard, strict=False):
                assert our == their
            assert len(told) == len(heard)

    asyncio.run(law())


@pytest.mark.plane
@pytest.mark.parametrize("what", sorted(REALISTIC))
def test_equal_objects_are_filled_in_alike(real_backend: Backend, what: str) -> None:
    """What people write comes back the same from both servers, with everything that a server fills in."""
    kind, body = REALISTIC[what]
    namespace = "realistic"

    async def stored(api: Api) -> Any:
        with contextlib.suppress(AlreadyExists):
            await api.create(NAMESPACE, {"metadata": {"name": namespace}})
        name = what.replace(" ", "-").replace("'", "")
        where = namespace if kind.namespaced else ""
        return normal(await api.create(kind, {"metadata": {"name": name}, **body}, namespace=where))

    async def law() -> None:
        async with real_backend.connect() as real:
            theirs = await stored(real)
        ours = await stored(MemoryApi(MemoryServer(SystemClock(), SystemRandom())))
        assert ours == theirs

    asyncio.run(law())
