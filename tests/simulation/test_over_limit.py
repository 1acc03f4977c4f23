"""More machines than limits.nodes: what goes, in which order, at once, and what is no surplus although it is too many."""

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pytest

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.nodes import NODE
from growth.cluster import hashes
from growth.controllers.decisions import Decisions
from growth.controllers.disruption import Disruption
from growth.controllers.sizing import Sizing
from growth.controllers.termination import Termination
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi
from tests.simulation import sizing
from tests.simulation.ending import add_budget, add_owned, add_pod, left, start_kubelets, start_process
from tests.simulation.owning import LateApi, Stage, on_stage
from tests.simulation.sizing import staying, told_too_many

FROZEN = {"budgets": [{"nodes": "0"}]}
INITIALIZED = {
    "type": names.INITIALIZED,
    "status": "True",
    "reason": names.INITIALIZED,
    "message": "",
    "lastTransitionTime": "2030-01-07T08:00:00Z",
}
TAINTED = {"spec": {"taints": [{"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}]}}


class Slow(MemoryApi):
    """Between two deletions of claims there is time for others."""

    async def delete(self, kind: Any, name: str, **how: Any) -> None:
        await super().delete(kind, name, **how)
        if kind == NODE_CLAIM:
            await asyncio.sleep(5)


def slow(api: MemoryApi) -> Slow:
    return Slow(api._server, user="growth")


async def fleet(stage: Stage, number: int, **spec: Any) -> None:
    pool = await stage.add_pool(**spec)
    for each in range(number):
        await add_owned(stage, f"web-{each}", pool=pool)
        await asyncio.sleep(1)


async def limit(stage: Stage, nodes: int | None) -> None:
    await stage.admin.patch(
        NODE_POOL, "default", {"spec": {"limits": {"nodes": None if nodes is None else str(nodes)}}}
    )


@pytest.mark.parametrize("mode", ["Hard", "Soft"])
def test_a_lowered_limit_acts_at_once_and_past_budgets(mode: str) -> None:
    """In both modes; it is told and counted, and nothing is marked as drifted for it."""

    async def body(stage: Stage) -> list[int]:
        await fleet(stage, 6, limits={"nodes": "6"}, disruption={**FROZEN, "nodeLimitMode": mode})
        start_kubelets(stage)
        await stage.start(Termination(stage.env), Sizing(stage.env))
        await asyncio.sleep(300)
        seen = [len(await staying(stage))]
        await limit(stage, 2)
        await asyncio.sleep(2)
        seen.append(len(await staying(stage)))
        await asyncio.sleep(60)
        assert await left(stage) == (2, 2, 2)
        assert await told_too_many(stage) == 4
        return seen

    assert on_stage(body).value == [6, 2]


def test_a_pool_within_its_limit_or_without_one_is_left_alone() -> None:
    """A limit that is reached is no reason, other limits are none, and nothing is written."""

    async def body(stage: Stage) -> tuple[int, int]:
        await fleet(stage, 3, limits={"nodes": "3", "cpu": "1"})
        await stage.start(Sizing(stage.env))
        await asyncio.sleep(600)
        await limit(stage, None)
        await asyncio.sleep(600)
        return len(await staying(stage)), stage.writes()

    assert on_stage(body).value == (3, 0)


def test_the_least_costly_go_first() -> None:
    """No machine yet, then empty, then used, the least costly first; what says do-not-disrupt comes last, and goes too."""

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 4, limits={"nodes": "9"})
        pool = await stage.pool()
        await stage.add_claim("coming", pool=pool)
        for number in range(3):
            await add_pod(stage, f"busy{number}", node="node-of-web-0")
        await add_pod(stage, "light", node="node-of-web-1")
        await add_pod(stage, "kept", node="node-of-web-2", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await stage.start(Sizing(stage.env))
        seen = []
        for most in (4, 3, 2, 1, 0):
            await limit(stage, most)
            await asyncio.sleep(5)
            seen.append(await staying(stage))
        return seen

    assert on_stage(body).value == [
        ["web-0", "web-1", "web-2", "web-3"],
        ["web-0", "web-1", "web-2"],
        ["web-0", "web-2"],
        ["web-2"],
        [],
    ]


def test_a_machine_with_two_nodes_is_as_busy_as_both() -> None:
    """A second Node that somebody made for it, without a pod, makes no machine empty."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 2, limits={"nodes": "2"})
        machine = (await stage.node("node-of-web-1")).spec.provider_id
        await stage.join("node-that-came-late", provider_id=machine, taints=())
        await add_pod(stage, "light", node="node-of-web-0")
        for number in range(3):
            await add_pod(stage, f"busy-{number}", node="node-of-web-1")
        await stage.start(Sizing(stage.env))
        await limit(stage, 1)
        await asyncio.sleep(30)
        return await staying(stage)

    assert on_stage(body).value == ["web-1"]


def test_the_drain_keeps_disruption_budgets_of_pods() -> None:
    """Past the pool's budgets, not past those of pods: the machine stays until its pod may leave."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await fleet(stage, 1, limits={"nodes": "0"})
        await add_pod(stage, "a", node="node-of-web-0")
        start_kubelets(stage)
        await add_budget(stage, "keep", app="a", maxUnavailable=0)
        await stage.start(Termination(stage.env), Sizing(stage.env))
        await asyncio.sleep(600)
        assert await staying(stage) == []
        return await left(stage)

    assert on_stage(body).value == (1, 1, 1)


def test_what_leaves_already_makes_room_by_itself() -> None:
    """Two of five leave, and three may stay: nothing more goes."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 5, limits={"nodes": "5"})
        for name in ("web-1", "web-3"):
            await stage.admin.delete(NODE_CLAIM, name)
        await stage.start(Sizing(stage.env))
        await limit(stage, 3)
        await asyncio.sleep(60)
        return await staying(stage)

    assert on_stage(body).value == ["web-0", "web-2", "web-4"]


def test_what_is_being_replaced_is_no_surplus() -> None:
    """A move at a soft limit: the machine that comes is one too many only until the other goes, and nobody fights it.

    When the move is taken back, the taint comes off, and the one too many goes.
    """

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 2, limits={"nodes": "2"}, disruption={"nodeLimitMode": "Soft"})
        await stage.start(Sizing(stage.env))
        await stage.admin.patch(NODE, "node-of-web-0", TAINTED)
        pool = await stage.pool()
        await stage.add_claim("new", pool=pool, annotations={names.REPLACES_ANNOTATION: "web-0"})
        await asyncio.sleep(120)
        seen = [await staying(stage)]
        await stage.admin.patch(NODE, "node-of-web-0", {"spec": {"taints": None}})
        await stage.admin.patch(
            NODE_CLAIM,
            "new",
            {"status": {"conditions": [INITIALIZED]}},
            subresource="status",
        )
        await asyncio.sleep(120)
        return [*seen, await staying(stage)]

    assert on_stage(body).value == [["new", "web-0", "web-1"], ["web-0", "web-1"]]


def test_a_move_that_the_cache_has_not_heard_of_is_no_surplus() -> None:
    """The taint is looked for afresh: late news of Nodes cost nobody their machine."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 2, limits={"nodes": "2"}, disruption={"nodeLimitMode": "Soft"})
        await stage.start(Sizing(stage.env))
        await asyncio.sleep(10)
        # In one moment: the taint, the machine that comes, and that it is up.
        await stage.admin.patch(NODE, "node-of-web-0", TAINTED)
        await add_owned(stage, "new", pool=await stage.pool(), annotations={})
        await asyncio.sleep(120)
        return await staying(stage)

    assert on_stage(body, api=lambda api: LateApi(api, NODE)).value == ["new", "web-0", "web-1"]


def left_of_ten(api: Callable[[MemoryApi], MemoryApi], *, lowered_for: float) -> int:
    """How many of ten machines stay where the limit was 0 for so many seconds."""

    async def body(stage: Stage) -> int:
        await fleet(stage, 10, limits={"nodes": "10"})
        await stage.start(Sizing(stage.env))
        await limit(stage, 0)
        await asyncio.sleep(lowered_for)
        await limit(stage, 10)
        await asyncio.sleep(60)
        return len(await staying(stage))

    return on_stage(body, api=api).value


def test_a_limit_that_is_raised_again_stops_it() -> None:
    """Between two deletions the pool is looked at: who changes their mind keeps the rest."""
    assert 6 <= left_of_ten(slow, lowered_for=12) <= 8


def test_a_limit_that_is_raised_again_stops_it_before_the_cache_has_heard() -> None:
    """The server is asked: machines go with their pods."""

    class SlowAndLate(LateApi, Slow):
        pass

    assert left_of_ten(lambda api: SlowAndLate(api, NODE_POOL), lowered_for=22) == 7


def test_what_others_take_away_meanwhile_is_not_taken_twice() -> None:
    """Between two deletions the pool is counted: nodes that a move has marked since are too many no more."""

    async def body(stage: Stage) -> int:
        await fleet(stage, 6, limits={"nodes": "6"})
        await stage.start(Sizing(stage.env))
        await limit(stage, 2)
        await asyncio.sleep(2)
        for claim in (await staying(stage))[-2:]:
            await stage.admin.patch(NODE, f"node-of-{claim}", TAINTED)
        await asyncio.sleep(60)
        return len(await staying(stage))

    assert on_stage(body, api=slow).value == 4


class Denying(MemoryApi):
    """No to the first so many deletions of claims, and for as long as it is kept to those of one of them."""

    def __init__(self, api: MemoryApi, *, first: int = 0, kept: str = "") -> None:
        super().__init__(api._server, user="growth")
        self.first = first
        self.kept = kept
        self.asked: list[str] = []

    async def delete(self, kind: Any, name: str, **how: Any) -> None:
        if kind == NODE_CLAIM:
            self.asked.append(name)
            if len(self.asked) <= self.first or name == self.kept:
                raise Forbidden("this one is not to be deleted")
        await super().delete(kind, name, **how)


def denying(*, first: int = 0, kept: str = "") -> tuple[list[Denying], Callable[[MemoryApi], Denying]]:
    holder: list[Denying] = []

    def api(real: MemoryApi) -> Denying:
        holder.append(Denying(real, first=first, kept=kept))
        return holder[0]

    return holder, api


def test_one_that_the_server_does_not_let_go_holds_up_no_other() -> None:
    """Somebody's policy keeps the first of them: the others go, and after a while one more in its place, as with one that is
    paused.
    """

    async def body(stage: Stage) -> list[list[str]]:
        await fleet(stage, 4, limits={"nodes": "4"})
        await stage.start(Sizing(stage.env))
        await limit(stage, 2)
        seen = []
        for seconds in (10, 170):
            await asyncio.sleep(seconds)
            seen.append(await staying(stage))
        return seen

    _, api = denying(kept="web-0")
    assert on_stage(body, api=api).value == [["web-0", "web-2", "web-3"], ["web-0", "web-3"]]


@pytest.mark.parametrize("refusals", [1, 4])
def test_a_server_that_refuses_for_a_moment_costs_no_busy_machine(refusals: int) -> None:
    """As one that has just started and does not know yet who may do what: the empty machine goes all the same."""

    async def body(stage: Stage) -> list[str]:
        await busier_and_busier(stage)
        await limit(stage, 2)
        await asyncio.sleep(120)
        return await staying(stage)

    _, api = denying(first=refusals)
    assert on_stage(body, api=api).value == ["web-1", "web-2"]


def test_one_that_may_go_after_all_goes_before_another_in_its_place() -> None:
    """The server refuses everything for minutes: whoever is tried next, those before it in the order are asked again."""
    holder, api = denying(first=1_000_000)

    async def body(stage: Stage) -> list[str]:
        await busier_and_busier(stage)
        await limit(stage, 2)
        await asyncio.sleep(110)
        holder[0].first = 0
        await asyncio.sleep(60)
        return await staying(stage)

    assert on_stage(body, api=api).value == ["web-1", "web-2"]
    assert "web-1" in holder[0].asked


def test_where_all_are_refused_they_are_asked_again_within_minutes() -> None:
    """The policy went after hours: the pool does not stay over its limit for another."""
    holder, api = denying(kept="web-0")

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 1, limits={"nodes": "1"})
        await stage.start(Sizing(stage.env))
        await limit(stage, 0)
        await asyncio.sleep(4 * 3600)
        assert len(holder[0].asked) < 70
        holder[0].kept = ""
        await asyncio.sleep(370)
        return await staying(stage)

    assert on_stage(body, api=api).value == []


async def busier_and_busier(stage: Stage) -> None:
    """Three machines, the first of which is empty."""
    await fleet(stage, 3, limits={"nodes": "3"})
    for machine in (1, 2):
        for number in range(3 * machine):
            await add_pod(stage, f"app-{machine}-{number}", node=f"node-of-web-{machine}")
    await stage.start(Sizing(stage.env))


def test_a_pause_holds_it_for_a_pool_and_for_a_node() -> None:
    """A paused pool keeps all; a paused node is counted and stays."""

    async def body(stage: Stage) -> list[list[str]]:
        pause: Any = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        await fleet(stage, 3, limits={"nodes": "1"})
        await stage.admin.patch(NODE_POOL, "default", pause)
        await stage.admin.patch(NODE, "node-of-web-0", pause)
        await stage.start(Sizing(stage.env))
        await asyncio.sleep(120)
        seen = [await staying(stage)]
        pause["metadata"]["annotations"][names.PAUSED_ANNOTATION] = None
        await stage.admin.patch(NODE_POOL, "default", pause)
        await asyncio.sleep(120)
        return [*seen, await staying(stage)]

    assert on_stage(body).value == [["web-0", "web-1", "web-2"], ["web-0"]]


@pytest.mark.parametrize("static", [False, True], ids=["limit", "replicas"])
def test_a_surplus_that_a_pause_held_goes_when_the_pause_ends(static: bool) -> None:  # noqa: FBT001 - one of two cases
    """Paused Nodes are looked at again: two of three go when one after the other is released, and no more."""

    async def body(stage: Stage) -> list[int]:
        await fleet(stage, 3, **({"replicas": 1} if static else {"limits": {"nodes": "1"}}))
        for number in range(3):
            await pause(stage, number, "true")
        await stage.start(Sizing(stage.env))
        await asyncio.sleep(6 * 3600)
        seen = [len(await staying(stage))]
        for number in range(3):
            await pause(stage, number, None)
            await asyncio.sleep(2)
            seen.append(len(await staying(stage)))
        return seen

    async def pause(stage: Stage, number: int, word: str | None) -> None:
        patch = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: word}}}
        await stage.admin.patch(NODE, f"node-of-web-{number}", patch)

    assert on_stage(body).value == [3, 2, 1, 1]


def test_a_surplus_whose_pause_ends_unheard_goes_within_a_minute() -> None:
    """A claim's annotation, or a Node that does not name its pool: what is held is looked at again without a change."""

    async def body(stage: Stage) -> tuple[int, int]:
        await fleet(stage, 2, limits={"nodes": "1"})
        for number in range(2):
            patch: Any = {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
            await stage.admin.patch(NODE_CLAIM, f"web-{number}", patch)
        await stage.start(Sizing(stage.env))
        await asyncio.sleep(3600)
        seen = len(await staying(stage))
        await stage.admin.patch(NODE_CLAIM, "web-0", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: None}}})
        await asyncio.sleep(61)
        return seen, len(await staying(stage))

    assert on_stage(body).value == (2, 1)


def test_who_pauses_a_node_meanwhile_keeps_it() -> None:
    """Between two deletions each claim is looked at once more: a Node that was paused since stays."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 6, limits={"nodes": "6"})
        await stage.start(Sizing(stage.env))
        await limit(stage, 0)
        await asyncio.sleep(2)
        left_over = (await staying(stage))[-1]
        assert left_over == "web-5"
        await stage.admin.patch(
            NODE, f"node-of-{left_over}", {"metadata": {"annotations": {names.PAUSED_ANNOTATION: "true"}}}
        )
        await asyncio.sleep(120)
        return await staying(stage)

    assert on_stage(body, api=slow).value == ["web-5"]


def test_claims_made_by_hand_count_too() -> None:
    """Who makes a claim of a full pool by hand has one too many, and the newest, which has no machine yet, goes."""

    async def body(stage: Stage) -> list[str]:
        await fleet(stage, 2, limits={"nodes": "2"})
        await stage.start(Sizing(stage.env))
        await stage.add_claim("by-hand", pool=await stage.pool())
        await stage.add_claim("without-a-pool")
        await asyncio.sleep(30)
        return await staying(stage)

    assert on_stage(body).value == ["web-0", "web-1", "without-a-pool"]


@pytest.mark.parametrize("mode", ["Hard", "Soft"])
def test_drift_at_the_limit_proceeds_in_soft_mode_only_and_nobody_fights_it(mode: str) -> None:
    """Soft: none is left of the old template, with one more than the limit at a time, and nothing is a surplus.

    Hard: nothing is replaced, at no time is there one more, and the pool's event says why.
    """

    async def body(stage: Stage) -> tuple[int, set[str], set[str], bool]:
        await stage.add_class()
        sizing.begin(stage)
        disruption = {"budgets": [{"nodes": "1"}], "nodeLimitMode": mode, "consolidateAfter": "Never"}
        pool = await stage.add_pool(limits={"nodes": "3"}, metadata={"labels": {"team": "a"}}, disruption=disruption)
        for number in range(3):
            await add_owned(stage, f"web-{number}", pool=pool)
            stamped = {"metadata": {"annotations": hashes.stamp(pool), "labels": {"team": "a"}}}
            await stage.admin.patch(NODE_CLAIM, f"web-{number}", stamped)
            await add_pod(stage, f"pod-{number}", node=f"node-of-web-{number}")
        decisions = Decisions(stage.env)
        await stage.start(*(part(stage.env) for part in sizing.PARTS), Disruption(stage.env, decisions=decisions))
        await asyncio.sleep(60)
        await sizing.retemplate(stage)
        most = 0
        for _ in range(900):
            await asyncio.sleep(1)
            most = max(most, (await left(stage))[0])
        why = {each.message.rpartition(": ")[2] for each in await stage.events(names.DISRUPTION_TERMINATING)}
        blocked = await stage.events(names.DISRUPTION_BLOCKED)
        limited = any("Drifted due to node hard limit" in each.message for each in blocked)
        return most, set(await sizing.teams(stage)), why, limited

    soft = (4, {"b"}, {"Drifted"}, False)
    assert on_stage(body).value == (soft if mode == "Soft" else (3, {"a"}, set(), True))


def test_two_who_lead_take_no_more_than_is_too_many() -> None:
    """Both see the same, choose the same, and the pool ends at its limit."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await fleet(stage, 8, limits={"nodes": "8"})
        start_kubelets(stage)
        for name in ("one", "two"):
            start_process(stage, Termination, Sizing, name=name)
        await asyncio.sleep(30)
        await limit(stage, 3)
        await asyncio.sleep(120)
        return await left(stage)

    assert on_stage(body).value == (3, 3, 3)


def test_a_crash_after_any_write_ends_at_the_limit() -> None:
    """Whatever was deleted last, the next process takes the rest and no more."""

    async def body(stage: Stage, crash_after: int) -> int:
        await fleet(stage, 5, limits={"nodes": "5"})
        await add_pod(stage, "app", node="node-of-web-0")
        start_kubelets(stage)
        first = start_process(stage, Termination, Sizing, crash_after=crash_after)
        await asyncio.sleep(10)
        await limit(stage, 2)
        await asyncio.sleep(60)
        if crash_after:
            assert first.dead
            start_process(stage, Termination, Sizing, name="second")
        await asyncio.sleep(60)
        assert await left(stage) == (2, 2, 2)
        assert "web-0" in await staying(stage)
        return stage.writes()

    unbroken = on_stage(functools.partial(body, crash_after=0)).value
    for n in range(1, unbroken + 1):
        on_stage(functools.partial(body, crash_after=n))
