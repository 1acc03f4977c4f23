"""Decisions as they are kept: few, small, the newest, and none that repeats the last."""

import asyncio
import datetime as dt

import msgspec

from growth.api.decisions import DECISION, MAX_BYTES, DecisionAction, DecisionReason, DecisionSpec, UnschedulablePods
from growth.api.pools import PoolRef
from growth.controllers.decisions import ACTED, BLOCKED, Decisions
from growth.controllers.provisioning.story import grouped
from growth.controllers.settings import ControllerSettings
from growth.planning.plan import Filter, Reason, Unplaced
from tests.simulation.buying import Stage, staged

START = dt.datetime(2030, 1, 7, 8, tzinfo=dt.UTC)


def spec(
    number: int = 0, *, outcome: str = BLOCKED, summary: str = "nothing fits", controller: str = "p"
) -> DecisionSpec:
    at = START + dt.timedelta(seconds=number)
    return DecisionSpec(at=at, controller=controller, outcome=outcome, summary=summary, revision=str(number))


async def kept(stage: Stage) -> list[DecisionSpec]:
    items = (await stage.admin.list(DECISION)).items
    return sorted((each.spec for each in items), key=lambda each: (each.at, each.controller))


def writer(stage: Stage, name: str = "growth", *, most: int = 200) -> Decisions:
    decisions = Decisions(stage.environment(name=name, settings=ControllerSettings(decisions_kept=most)))
    stage.start(decisions.run())
    return decisions


def test_the_newest_are_kept() -> None:
    """So many as the setting says, whoever wrote the older ones."""

    async def body(stage: Stage) -> list[str]:
        await stage.begin()
        for first in (0, 7):  # the second process finds what the first has left
            decisions = writer(stage, most=5)
            for number in range(first, first + 7):
                decisions.record(spec(number, outcome=ACTED))
                await asyncio.sleep(1)
        return [each.revision for each in await kept(stage)]

    assert staged(body).value == ["9", "10", "11", "12", "13"]


def test_what_was_said_last_is_not_said_again() -> None:
    """Neither by the same process, nor by the next one; another controller's word is another thing."""

    async def body(stage: Stage) -> list[tuple[str, str]]:
        await stage.begin()
        for process in range(3):
            decisions = writer(stage)
            for number in range(3):
                decisions.record(spec(10 * process + number))
                decisions.record(spec(10 * process + number, controller="q", summary=f"process {process}"))
                await asyncio.sleep(1)
        return [(each.controller, each.summary) for each in await kept(stage)]

    assert staged(body).value == [
        ("p", "nothing fits"),
        ("q", "process 0"),
        ("q", "process 1"),
        ("q", "process 2"),
    ]


def test_a_purchase_is_told_each_time() -> None:
    """Two purchases that look alike are two."""

    async def body(stage: Stage) -> int:
        await stage.begin()
        for process in ("first", "second"):
            decisions = writer(stage, process)
            for _ in range(2):
                decisions.record(spec(outcome=ACTED))
                await asyncio.sleep(1)
        return len(await kept(stage))

    assert staged(body).value == 4


def test_a_decision_stays_small_and_counts_what_it_left_out() -> None:
    """With thousands of machines and reasons it is stored within 32 KB; entries and what was left out add up."""
    reasons = (DecisionReason("default", "resources", "too large, by far " * 20),)
    much = msgspec.structs.replace(
        spec(outcome=ACTED, summary="ü" * 5000),
        actions=tuple(DecisionAction(verb="create", object=f"nodeclaim/{n}", why="cheap") for n in range(5000)),
        unschedulable=tuple(UnschedulablePods(n + 1, f"default/pod-{n}", reasons) for n in range(2000)),
    )

    async def body(stage: Stage) -> tuple[int, DecisionSpec]:
        await stage.begin()
        writer(stage).record(much)
        await asyncio.sleep(1)
        ((raw,), (typed,)) = ((await stage.admin.list(DECISION.raw)).items, await kept(stage))
        return len(msgspec.json.encode(raw)), typed

    size, stored = staged(body).value
    assert size <= MAX_BYTES
    assert size > MAX_BYTES // 2
    assert len(stored.actions) + len(stored.unschedulable) + stored.omitted == 7000


def test_equal_reasons_are_one_entry() -> None:
    """A thousand pods that lack the same thing are a number and an example."""
    pool = PoolRef.karpenter("default")
    large, tainted = Reason(pool, Filter.RESOURCES, "too large"), Reason(pool, Filter.TAINTS, "not tolerated")
    unplaced = [Unplaced(f"default/{n:04}", (tainted if n % 10 == 0 else large,)) for n in range(1000)]
    assert [(each.pods, each.example, each.reasons[0].message) for each in grouped(unplaced)] == [
        (900, "default/0001", "too large"),
        (100, "default/0000", "not tolerated"),
    ]
