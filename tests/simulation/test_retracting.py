"""Nominations that came to nothing are taken back, and no others."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from growth.api import names
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.policy import PRIORITY_CLASS
from growth.controllers.retracting import LOOK_SECONDS, PATIENCE_SECONDS, Retracting
from growth.kube.errors import Forbidden, ServerError
from growth.kube.passing import PassingApi, Write
from tests.manifests import pod
from tests.simulation.owning import Stage, on_stage

R = TypeVar("R")
SOON = 2 * LOOK_SECONDS + 1
LATE = PATIENCE_SECONDS + 2 * LOOK_SECONDS


async def _open(stage: Stage, *, marked: bool = True) -> None:
    await stage.join()
    if marked:
        await stage.admin.patch(NODE, "node-1", {"metadata": {"labels": {names.INITIALIZED_LABEL: "true"}}})


async def _promise(stage: Stage, *, node: str = "node-1", **spec: Any) -> None:
    await stage.admin.create(POD, pod("waits", **spec), namespace="default")
    name = {"status": {"nominatedNodeName": node}}
    await stage.admin.patch(POD, "waits", name, namespace="default", subresource="status")


async def _take_room(stage: Stage, **metadata: Any) -> None:
    await stage.admin.create(POD, pod("took", cpu=3, metadata=metadata), namespace="default")
    await stage.admin.bind("took", namespace="default", node="node-1")


async def _name(stage: Stage) -> str:
    return (await stage.admin.get(POD, "waits", namespace="default")).status.nominated_node_name


def test_who_waits_for_room_that_others_took_waits_no_more() -> None:
    async def body(stage: Stage) -> str:
        await stage.start(Retracting(stage.env))
        await _open(stage)
        await _take_room(stage)
        await _promise(stage, cpu=3)
        await asyncio.sleep(SOON)
        return await _name(stage)

    assert on_stage(body).value == ""


def test_room_is_waited_for_a_while() -> None:
    """kube-scheduler may be behind; but something else than room may keep the pod away."""

    async def body(stage: Stage) -> list[str]:
        await stage.start(Retracting(stage.env))
        await _open(stage)
        await _promise(stage, cpu=1)
        await asyncio.sleep(PATIENCE_SECONDS - LOOK_SECONDS)
        seen = [await _name(stage)]
        await asyncio.sleep(3 * LOOK_SECONDS)
        return [*seen, await _name(stage)]

    assert on_stage(body).value == ["node-1", ""]


def test_a_node_that_is_gone_is_waited_for_no_longer() -> None:
    async def body(stage: Stage) -> list[str]:
        await stage.start(Retracting(stage.env))
        await _promise(stage, node="gone")
        await asyncio.sleep(SOON)
        seen = [await _name(stage)]
        await asyncio.sleep(LATE)
        return [*seen, await _name(stage)]

    assert on_stage(body).value == ["gone", ""]


@pytest.mark.parametrize(("of_class", "kept"), [("important", "node-1"), ("", "")])
def test_who_makes_others_leave_keeps_the_name(of_class: str, kept: str) -> None:
    """As long as one of lower priority is on its way out of the node; who is not less important leaves for another reason."""

    async def body(stage: Stage) -> str:
        await stage.start(Retracting(stage.env))
        await _open(stage)
        await _take_room(stage, finalizers=["example.com/slow"])
        await stage.admin.create(PRIORITY_CLASS, {"metadata": {"name": "important"}, "value": 10})
        await _promise(stage, cpu=3, priorityClassName=of_class)
        await stage.admin.delete(POD, "took", namespace="default")
        await asyncio.sleep(LATE)
        return await _name(stage)

    assert on_stage(body).value == kept


def test_a_closed_node_is_waited_for() -> None:
    """And so is one that is none of ours: what happens there is kube-scheduler's business."""

    async def body(stage: Stage) -> str:
        await stage.start(Retracting(stage.env))
        await _open(stage, marked=False)
        await _take_room(stage)
        await _promise(stage, cpu=3)
        await asyncio.sleep(LATE)
        return await _name(stage)

    assert on_stage(body).value == "node-1"


class Failing(PassingApi):
    """Refuses the first writes to pods; counts them all."""

    def __init__(self, api: Any, error: Exception, times: int) -> None:
        super().__init__(api)
        self.error, self.times, self.tried = error, times, 0

    async def _write(self, write: Write, send: Callable[[], Awaitable[R]]) -> R:
        self.tried += write.kind is POD
        if write.kind is POD and self.tried <= self.times:
            raise self.error
        return await send()


@pytest.mark.parametrize(
    ("error", "tried", "left"), [(ServerError("not now"), 4, ""), (Forbidden("not for you"), 1, "node-1")]
)
def test_a_write_that_fails_is_tried_again_unless_it_is_forbidden(error: Exception, tried: int, left: str) -> None:
    async def body(stage: Stage) -> tuple[int, str]:
        api = Failing(stage.env.api, error, 3)
        await stage.start(Retracting(dataclasses.replace(stage.env, api=api)))
        await _open(stage)
        await _take_room(stage)
        await _promise(stage, cpu=3)
        await asyncio.sleep(10 * LOOK_SECONDS)
        return api.tried, await _name(stage)

    assert on_stage(body).value == (tried, left)
