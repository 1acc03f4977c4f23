"""Decisions as objects: how many are kept, how large they grow, and what is not written twice."""

import asyncio
import datetime as dt

import msgspec

from growth.api.decisions import (
    DECISION,
    MAX_BYTES,
    Decision,
    DecisionAction,
    DecisionReason,
    DecisionSpec,
    UnschedulablePods,
)
from growth.controllers.decisions import ACTED, BLOCKED, Decisions, shortened
from growth.kube.memory import MemoryApi
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimRandom
from tests.simulation.buying import Stage, decided, staged, with_settings

AT = dt.datetime(2030, 1, 7, 8, 0, tzinfo=dt.UTC)


def spec(
    number: int = 0, *, outcome: str = ACTED, controller: str = "provisioning", seconds: int = 0, revision: str = ""
) -> DecisionSpec:
    at = AT + dt.timedelta(seconds=seconds)
    return DecisionSpec(at=at, controller=controller, outcome=outcome, summary=f"number {number}", revision=revision)


def test_the_newest_are_kept_and_the_oldest_deleted() -> None:
    """Those of an earlier process among them."""

    async def body(stage: Stage) -> list[str]:
        await stage.begin()
        for number in range(8):
            old = Decision(spec=spec(number, seconds=number))
            await stage.admin.create(DECISION, {**msgspec.to_builtins(old), "metadata": {"name": f"old-{number}"}})
        decisions = Decisions(stage.environment(settings=with_settings(decisions_kept=5)))
        stage.start(decisions.run())
        for number in range(100, 103):
            decisions.record(spec(number, seconds=number))
            await asyncio.sleep(1)
        return [each.summary for each in await decided(stage)]

    assert staged(body).value == [f"number {each}" for each in (6, 7, 100, 101, 102)]


def test_a_repetition_is_not_written() -> None:
    """Whatever time and revision it has. What was done is always written; what changes back is a change."""

    async def body(stage: Stage) -> list[str]:
        await stage.begin()
        decisions = Decisions(stage.environment())
        stage.start(decisions.run())
        for number, each in enumerate(
            (
                spec(1, outcome=BLOCKED),
                spec(1, outcome=BLOCKED, revision="7"),
                spec(2, outcome=BLOCKED),
                spec(1, outcome=BLOCKED, controller="disruption"),
                spec(1, outcome=BLOCKED),
                spec(3),
                spec(3),
            )
        ):
            decisions.record(msgspec.structs.replace(each, at=AT + dt.timedelta(seconds=number)))
        await asyncio.sleep(10)
        return [f"{each.controller} {each.summary}" for each in await decided(stage)]

    assert staged(body).value == [
        "provisioning number 1",
        "provisioning number 2",
        "disruption number 1",
        "provisioning number 1",
        "provisioning number 3",
        "provisioning number 3",
    ]


def test_a_large_decision_leaves_out_and_counts() -> None:
    """The beginning of each list stays; nothing is written that the server refuses."""
    many = tuple(DecisionAction(verb="create", object=f"nodeclaim/{at}", why="x" * 80) for at in range(1000))
    reasons = (DecisionReason(node_pool="p", filter="taints", message="y" * 500),)
    pods = tuple(UnschedulablePods(pods=1, example=f"default/{at}", reasons=reasons) for at in range(100))
    whole = msgspec.structs.replace(spec(), actions=many, unschedulable=pods, summary="z" * 5000)
    short = shortened(whole)
    assert len(msgspec.json.encode(Decision(spec=short))) < MAX_BYTES
    assert short.actions == many[: len(short.actions)]
    assert short.actions
    assert short.unschedulable
    assert short.omitted == 1100 - len(short.actions) - len(short.unschedulable)
    assert len(short.summary) == 1024

    async def body(stage: Stage) -> int:
        await stage.begin()
        decisions = Decisions(stage.environment())
        stage.start(decisions.run())
        decisions.record(whole)
        await asyncio.sleep(1)
        return len(await decided(stage))

    assert staged(body).value == 1


def in_trouble(faults: Faults) -> tuple[list[str], bool]:
    """What is there of 20 Decisions after ten minutes; whether they are still being written."""

    async def body(stage: Stage) -> tuple[list[str], bool]:
        await stage.begin()
        server = MemoryApi(stage.cluster.server, user="growth")
        wire = NetworkApi(server, kernel=stage.kernel, random=SimRandom(1, "wire"), faults=faults, name="growth")
        decisions = Decisions(stage.environment(api=wire))
        (writing, *_) = stage.start(decisions.run())
        for number in range(20):
            decisions.record(spec(number, seconds=number))
        await asyncio.sleep(600)
        return [each.summary for each in await decided(stage)], not writing.done()

    return staged(body).value


def test_trouble_that_passes_costs_no_history() -> None:
    """Each is there, and once: errors, conflicts, too many requests, answers and requests that were lost."""
    faults = Faults(server_error=0.1, conflict=0.1, throttled=0.1, lost_answer=0.05, lost_request=0.05)
    assert in_trouble(faults) == ([f"number {each}" for each in range(20)], True)


def test_a_server_in_trouble_costs_history_and_nothing_else() -> None:
    """Passes never wait for it; what could be written is there."""
    told, writing = in_trouble(Faults(server_error=0.8))
    assert writing
    assert 1 <= len(told) < 20
    assert len(told) == len(set(told))
