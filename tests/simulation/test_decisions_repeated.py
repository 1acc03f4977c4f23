"""What Decisions do not say twice: neither the next process, nor pods that lack the same thing."""

import asyncio
import datetime as dt

from growth.api.decisions import DECISION, DecisionSpec
from growth.api.pools import PoolRef
from growth.controllers.decisions import ACTED, BLOCKED, Decisions
from growth.controllers.provisioning.story import grouped
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


def writer(stage: Stage, name: str = "growth") -> Decisions:
    decisions = Decisions(stage.environment(name=name))
    stage.start(decisions.run())
    return decisions


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


def test_equal_reasons_are_one_entry() -> None:
    """A thousand pods that lack the same thing are a number and an example."""
    pool = PoolRef.karpenter("default")
    large, tainted = Reason(pool, Filter.RESOURCES, "too large"), Reason(pool, Filter.TAINTS, "not tolerated")
    unplaced = [Unplaced(f"default/{n:04}", (tainted if n % 10 == 0 else large,)) for n in range(1000)]
    assert [(each.pods, each.example, each.reasons[0].message) for each in grouped(unplaced)] == [
        (900, "default/0001", "too large"),
        (100, "default/0000", "not tolerated"),
    ]
