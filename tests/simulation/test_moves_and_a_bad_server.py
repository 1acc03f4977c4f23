"""Moves whose last look meets a server in trouble: what it does not tell of stays, and nothing else suffers."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from growth.api import names
from growth.api.kinds import Kind
from growth.controllers.disruption import Disruption
from growth.kube.api import Page, WatchEvent
from growth.kube.errors import TooManyRequests
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_owned
from tests.simulation.moving import add_large, add_ready_pool, bring_up, claims, tainted, until_coming
from tests.simulation.owning import Stage, on_stage

T = TypeVar("T")

Refuses = Callable[[str, str], bool]
"""Whether a question about this object, or a list with this selector, gets no answer; by kind and the other."""


def refusing(refuses: Refuses) -> Callable[[MemoryApi], MemoryApi]:
    class Bad(MemoryApi):
        async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
            if refuses(kind.kind, name):
                raise TooManyRequests("not now")
            return await super().get(kind, name, namespace=namespace)

        async def list(self, kind: Kind[T], **how: Any) -> Page[T]:
            if refuses(kind.kind, how.get("fields", "")):
                raise TooManyRequests("not now")
            return await super().list(kind, **how)

    return lambda api: Bad(api._server)


def test_an_empty_node_that_nobody_tells_of_keeps_no_other() -> None:
    """Two of three go; the third gets its mark taken off, and goes when it can be looked at."""
    silent = ["spec.nodeName=node-of-web-2"]

    async def body(stage: Stage) -> list[Any]:
        pool = await add_ready_pool(stage)
        for number in range(1, 4):
            await add_owned(stage, f"web-{number}", pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(60)
        left = [*await claims(stage)]
        silent.clear()
        await asyncio.sleep(120)
        return [left, [*await claims(stage)]]

    api = refusing(lambda kind, fields: kind == "Pod" and fields in silent)
    assert on_stage(body, api=api).value == [["web-2"], []]


def test_a_move_that_has_bought_waits_for_the_server() -> None:
    """A pool, a node or a replacement that cannot be read for a minute does not take back what is bought and up."""
    bad: list[str] = []

    async def body(stage: Stage) -> list[Any]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        found: list[Any] = []
        bad.append("NodePool")
        await bring_up(stage, new)
        for kind in ("Node", "NodeClaim", ""):
            await asyncio.sleep(30)
            bad[:] = [kind]
            found.append((sorted({*await claims(stage)} - {new}), new in await claims(stage), await tainted(stage)))
        await asyncio.sleep(30)
        return [*found, sorted({*await claims(stage)} - {new}), new in await claims(stage)]

    waits = (["web-1"], True, ["node-of-web-1"])
    assert on_stage(body, api=refusing(lambda kind, _: kind in bad)).value == [waits, waits, waits, [], True]


class Unheard(MemoryApi):
    """Watches of claims say nothing any more once one is deleted."""

    def __init__(self, api: MemoryApi) -> None:
        super().__init__(api._server)
        self._silent = False

    async def delete(self, kind: Kind[Any], name: str, **more: Any) -> None:
        self._silent |= kind.kind == "NodeClaim"
        await super().delete(kind, name, **more)

    @contextlib.asynccontextmanager
    async def watch(self, kind: Kind[T], **how: Any) -> AsyncIterator[AsyncIterator[WatchEvent[T]]]:
        async with super().watch(kind, **how) as events:
            yield self._heard(events) if kind.kind == "NodeClaim" else events

    async def _heard(self, events: AsyncIterator[WatchEvent[T]]) -> AsyncIterator[WatchEvent[T]]:
        async for event in events:
            if not self._silent:
                yield event


def test_a_move_that_was_made_is_not_gone_on_with() -> None:
    """Its claims are deleted, of which the cache has not heard: the move is not taken for one that somebody left behind."""

    async def body(stage: Stage) -> tuple[list[str], list[int]]:
        pool = await add_ready_pool(stage)
        await add_large(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        (new,) = await until_coming(stage)
        await bring_up(stage, new)
        await asyncio.sleep(200)
        told = [one.count for one in await stage.events() if one.reason == names.DISRUPTION_LAUNCHING]
        return sorted({*await claims(stage)} - {new}), told

    assert on_stage(body, api=Unheard).value == ([], [1])
