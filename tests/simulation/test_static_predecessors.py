"""Machines of static pools whose replacement is up and that somebody protects: they stay as they are until they may go."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from growth.api import names
from growth.api.conditions import is_true
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE, Node
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.controllers import tainting
from growth.controllers.disruption import marking
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi
from growth.kube.store import Change, Changed
from tests.simulation import sizing
from tests.simulation.ending import add_budget, add_pod, left
from tests.simulation.owning import LateApi, Stage, on_stage, told
from tests.simulation.sizing import add_static, initialized, retemplate, staying, teams

Act = Callable[[Stage, str], Awaitable[None]]
PROTECTED: Json = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
PAUSED: Json = {names.PAUSED_ANNOTATION: "true"}


def count_marks(stage: Stage) -> list[str]:
    """The names of Nodes, each time that one is tainted."""
    seen: list[str] = []

    def on_node(news: Change[Node]) -> None:
        if isinstance(news, Changed) and tainting.tainted(news.new) and not tainting.tainted(news.old):
            seen.append(news.key[1])

    stage.env.state.nodes.subscribe(on_node)
    return seen


async def _annotate(stage: Stage, node: str, annotations: Json) -> None:
    await stage.admin.patch(NODE, node, {"metadata": {"annotations": annotations}})


async def _keep_by_pod(stage: Stage, node: str) -> None:
    await add_pod(stage, "kept", node=node, annotations=PROTECTED)


async def _end_pod(stage: Stage, node: str) -> None:
    del node
    await stage.admin.delete(POD, "kept", namespace="default")


async def _keep_by_budget(stage: Stage, node: str) -> None:
    await add_pod(stage, "kept", node=node)
    await add_budget(stage, "kept", app="kept", maxUnavailable=0)


async def _end_budget(stage: Stage, node: str) -> None:
    del node
    await stage.admin.delete(POD_DISRUPTION_BUDGET, "kept", namespace="default")


async def _pause(stage: Stage, node: str) -> None:
    await _annotate(stage, node, PAUSED)


async def _go_on(stage: Stage, node: str) -> None:
    await _annotate(stage, node, dict.fromkeys(PAUSED))


async def _protect(stage: Stage, node: str) -> None:
    await _annotate(stage, node, PROTECTED)


async def _release(stage: Stage, node: str) -> None:
    await _annotate(stage, node, dict.fromkeys(PROTECTED))


@pytest.mark.parametrize(
    "spec",
    [{}, {"limits": {"nodes": "2"}, "disruption": {**sizing.ANY_TIME, "nodeLimitMode": "Soft"}}],
    ids=["no limit", "soft limit"],
)
@pytest.mark.parametrize(
    ("keep", "release"),
    [(_keep_by_pod, _end_pod), (_keep_by_budget, _end_budget), (_pause, _go_on), (_protect, _release)],
    ids=["pod", "budget", "pause", "node"],
)
def test_a_protected_predecessor_is_left_alone_until_it_may_go(keep: Act, release: Act, spec: Json) -> None:
    """Protected while its replacement came: no taint, no write; the others go on, and it goes when nothing holds it."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage, after=20)
        await add_static(stage, 2, **spec)
        await asyncio.sleep(60)
        first, second = await staying(stage)
        await retemplate(stage)
        await asyncio.sleep(10)
        assert (len(await staying(stage)), await initialized(stage)) == (4, 2)
        await keep(stage, f"node-of-{first}")
        marks = count_marks(stage)
        await asyncio.sleep(120)
        assert await initialized(stage) == 3
        before = stage.writes()
        await asyncio.sleep(900)
        assert stage.writes() == before
        assert marks == [f"node-of-{second}"]
        assert await teams(stage) == ["a", "b", "b"]
        await release(stage, f"node-of-{first}")
        await asyncio.sleep(60)
        assert await teams(stage) == ["b", "b"]
        assert await left(stage) == (2, 2, 2)

    on_stage(body)


@pytest.mark.parametrize(
    "spec",
    [{}, {"limits": {"nodes": "3"}, "disruption": {**sizing.ANY_TIME, "nodeLimitMode": "Soft"}}],
    ids=["no limit", "soft limit"],
)
def test_a_protected_predecessor_is_none_too_many_when_its_replacement_is_replaced(spec: Json) -> None:
    """The template changes again meanwhile: nothing goes but what has drifted, and what was protected goes in the end."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage, after=20)
        await add_static(stage, 3, **spec)
        await asyncio.sleep(60)
        first = (await staying(stage))[0]
        await retemplate(stage)
        await asyncio.sleep(10)
        await _protect(stage, f"node-of-{first}")
        await asyncio.sleep(120)
        assert await teams(stage) == ["a", "b", "b", "b"]
        await retemplate(stage, "c")
        await asyncio.sleep(300)
        assert await teams(stage) == ["a", "c", "c", "c"]
        ended = {each.message for each in await stage.events(names.DISRUPTION_TERMINATING)}
        assert ended == {"Disrupting Node: Drifted", "Disrupting NodeClaim: Drifted"}
        await _release(stage, f"node-of-{first}")
        await asyncio.sleep(60)
        assert await teams(stage) == ["c", "c", "c"]

    on_stage(body)


@pytest.mark.parametrize("taint", ["left", "taken off"])
def test_a_mark_that_a_dead_process_left_comes_off_a_protected_predecessor(taint: str) -> None:
    """It died between the mark and the deletion, or between the two writes of a mark; a pod holds the node since."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage, after=20)
        await add_static(stage, 1)
        await asyncio.sleep(60)
        (old,) = await staying(stage)
        await retemplate(stage)
        await asyncio.sleep(10)
        await _keep_by_pod(stage, f"node-of-{old}")
        await asyncio.sleep(60)
        await marking.mark(stage.env, await stage.node(f"node-of-{old}"), await stage.claim(old), reason="Drifted")
        if taint == "taken off":
            await tainting.unmark(stage.admin, await stage.node(f"node-of-{old}"))
        assert names.DISRUPTION_REASON in told(await stage.claim(old))
        await asyncio.sleep(60)
        assert names.DISRUPTION_REASON not in told(await stage.claim(old))
        node = await stage.node(f"node-of-{old}")
        assert not tainting.tainted(node)
        assert names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL not in node.metadata.labels

    on_stage(body)


@pytest.mark.parametrize("limit", ["2", "4"], ids=["deleted first", "replaced first"])
def test_who_protects_a_node_because_of_its_mark_is_asked_later_and_later(limit: str) -> None:
    """Somebody answers to the taint with an annotation, and takes it back with it: the node is not marked in a rush."""

    async def answer(stage: Stage) -> None:
        while True:
            await asyncio.sleep(0.2)
            for node in (await stage.admin.list(NODE)).items:
                wanted = "true" if tainting.tainted(node) else None
                if node.metadata.annotations.get(names.DO_NOT_DISRUPT_ANNOTATION) != wanted:
                    await _annotate(stage, node.metadata.name, {names.DO_NOT_DISRUPT_ANNOTATION: wanted})

    async def body(stage: Stage) -> int:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": limit})
        await asyncio.sleep(60)
        answering = stage.kernel.create_task(answer(stage), name="answering")
        marks = count_marks(stage)
        await retemplate(stage)
        await asyncio.sleep(900)
        seen = max(map(marks.count, marks))
        assert (await teams(stage)).count("a") == 2
        answering.cancel()
        await asyncio.sleep(1300)
        assert await teams(stage) == ["b", "b"]
        return seen

    assert 2 <= on_stage(body).value <= 6


async def _protect_claim(stage: Stage, node: str) -> None:
    await stage.admin.patch(NODE_CLAIM, node.removeprefix("node-of-"), {"metadata": {"annotations": PROTECTED}})


async def _pause_pool(stage: Stage, node: str) -> None:
    del node
    await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": PAUSED}})


async def _close_budget(stage: Stage, node: str) -> None:
    del node
    await _budget_of(stage, "0")


@pytest.mark.parametrize("late", [False, True], ids=["heard", "unheard"])
@pytest.mark.parametrize("limit", ["2", "4"], ids=["deleted first", "replaced first"])
@pytest.mark.parametrize(
    "keep", [_protect, _protect_claim, _pause, _pause_pool, _close_budget], ids=lambda act: act.__name__.strip("_")
)
def test_who_speaks_up_at_the_last_moment_is_heard(keep: Act, limit: str, late: bool) -> None:  # noqa: FBT001 - one of two cases
    """The node is tainted already, and the cache may not know of it: the server is asked before the claim is deleted."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 2, limits={"nodes": limit})
        await asyncio.sleep(200)
        await retemplate(stage)
        marked: list[str] = []
        for _ in range(1200):
            await asyncio.sleep(0.1)
            marked = await _marked(stage)
            if marked:
                break
        assert marked
        for node in marked:
            await keep(stage, node)
        await asyncio.sleep(5)
        assert {each.removeprefix("node-of-") for each in marked} <= {*await staying(stage)}

    on_stage(body, api=(lambda api: LateApi(api, NODE, NODE_CLAIM, NODE_POOL)) if late else None)


async def _marked(stage: Stage) -> list[str]:
    return [each.metadata.name for each in (await stage.admin.list(NODE)).items if tainting.tainted(each)]


class Denying(MemoryApi):
    """Somebody's policy says no to one kind of write about one machine."""

    def __init__(self, api: MemoryApi, denied: str) -> None:
        super().__init__(api._server, user="growth")
        self._denied = denied
        self.machine = ""

    async def delete(self, kind: Any, name: str, **how: Any) -> None:
        if (self._denied, kind, name) == ("deletion", NODE_CLAIM, self.machine):
            raise Forbidden("this one is not to be deleted")
        await super().delete(kind, name, **how)

    async def patch(self, kind: Any, name: str, *args: Any, **how: Any) -> Any:
        if self._denied == "taint" and kind in {NODE, NODE.raw} and name == f"node-of-{self.machine}":
            raise Forbidden("this one is not to be tainted")
        return await super().patch(kind, name, *args, **how)


@pytest.mark.parametrize("denied", ["deletion", "taint"])
@pytest.mark.parametrize("limit", ["3", "9"], ids=["deleted first", "replaced first"])
def test_a_machine_that_the_server_does_not_let_go_holds_up_no_other(denied: str, limit: str) -> None:
    """The others are replaced, and it takes pods between two tries, which become rarer."""
    holder: list[Denying] = []

    def api(real: MemoryApi) -> Denying:
        holder.append(Denying(real, denied))
        return holder[0]

    async def body(stage: Stage) -> None:
        await sizing.start(stage)
        await add_static(stage, 3, limits={"nodes": limit})
        await asyncio.sleep(60)
        holder[0].machine = (await staying(stage))[0]
        await retemplate(stage)
        await asyncio.sleep(600)
        assert (await teams(stage)).count("a") == 1
        assert holder[0].machine in await staying(stage)
        closed = 0
        for _ in range(600):
            await asyncio.sleep(1)
            closed += bool(await _marked(stage))
        assert closed < 30

    on_stage(body, api=api)


@pytest.mark.parametrize("limit", ["1", "9"], ids=["deleted first", "replaced first"])
def test_a_machine_that_may_not_be_tainted_does_not_say_that_it_goes(limit: str) -> None:
    """The claim's condition is written before the taint: where the server refuses that, it is taken off at once."""
    holder: list[Denying] = []

    def api(real: MemoryApi) -> Denying:
        holder.append(Denying(real, "taint"))
        return holder[0]

    async def body(stage: Stage) -> int:
        await sizing.start(stage)
        await add_static(stage, 1, limits={"nodes": limit})
        await asyncio.sleep(60)
        (old,) = await staying(stage)
        holder[0].machine = old
        said: list[bool] = []

        def on_claim(news: Change[NodeClaim]) -> None:
            if isinstance(news, Changed) and news.key[1] == old:
                said.append(marking.marked(news.new))

        stage.env.state.claims.subscribe(on_claim)
        await retemplate(stage)
        seconds = 0
        for _ in range(300):
            await asyncio.sleep(1)
            seconds += names.DISRUPTION_REASON in told(await stage.claim(old))
        assert any(said)
        return seconds

    assert on_stage(body, api=api).value == 0


@pytest.mark.parametrize("budgets", [[{"nodes": "1"}], None], ids=["one", "a tenth"])
@pytest.mark.parametrize("kept", ["by the server", "by a person"])
def test_a_machine_that_stays_beside_its_replacement_uses_up_no_budget(kept: str, budgets: list[Json] | None) -> None:
    """The others are replaced one at a time, and it goes in the end."""
    holder: list[Denying] = []

    def api(real: MemoryApi) -> Denying:
        holder.append(Denying(real, "deletion"))
        return holder[0]

    async def body(stage: Stage) -> None:
        await sizing.start(stage, after=20)
        await add_static(stage, 3, limits={"nodes": "9"}, disruption={"budgets": budgets} if budgets else {})
        await asyncio.sleep(60)
        first = (await staying(stage))[0]
        if kept == "by the server":
            holder[0].machine = first
        await retemplate(stage)
        await asyncio.sleep(10)
        assert len(await staying(stage)) == 4
        if kept == "by a person":
            await _protect(stage, f"node-of-{first}")
        for _ in range(900):
            await asyncio.sleep(1)
            assert await _leaving(stage) <= 1
        assert first in await staying(stage)
        assert await teams(stage) == ["a", "b", "b", "b"]
        holder[0].machine = ""
        await _release(stage, f"node-of-{first}")
        await asyncio.sleep(700)
        assert await teams(stage) == ["b", "b", "b"]

    on_stage(body, api=api)


def test_a_machine_that_stays_where_the_limit_has_room_for_one_is_told() -> None:
    """With its replacement it uses the only place: the pool says that its limit is why nothing more is replaced."""

    async def body(stage: Stage) -> None:
        await sizing.start(stage, after=20)
        await add_static(stage, 3, limits={"nodes": "4"})
        await asyncio.sleep(60)
        first = (await staying(stage))[0]
        await retemplate(stage)
        await asyncio.sleep(10)
        assert not await stage.events(names.DISRUPTION_BLOCKED)
        await _protect(stage, f"node-of-{first}")
        await asyncio.sleep(600)
        assert await teams(stage) == ["a", "a", "a", "b"]
        assert {each.message for each in await stage.events(names.DISRUPTION_BLOCKED)} == {
            "No allowed disruptions for disruption reason Drifted due to node hard limit"
        }
        await _release(stage, f"node-of-{first}")
        await asyncio.sleep(200)
        assert await teams(stage) == ["b", "b", "b"]

    on_stage(body)


@pytest.mark.parametrize("closed", [0, 1])
def test_a_budget_that_closes_while_replacements_come_up_is_kept(closed: int) -> None:
    """Three machines were bought for three: of the predecessors as many go at a time as the budget of then allows; when it opens
    again the rest follows.
    """

    async def body(stage: Stage) -> tuple[list[str], int, list[str]]:
        await sizing.start(stage, after=60)
        await add_static(stage, 3)
        await asyncio.sleep(120)
        await retemplate(stage)
        await asyncio.sleep(20)
        bought = await teams(stage)
        await _budget_of(stage, str(closed))
        most = 0
        for _ in range(90):
            await asyncio.sleep(1)
            most = max(most, await _leaving(stage))
        await _budget_of(stage, "100%")
        await asyncio.sleep(300)
        return bought, most, await teams(stage)

    bought, most, later = on_stage(body).value
    assert bought == ["a"] * 3 + ["b"] * 3
    assert most == closed
    assert later == ["b"] * 3


async def _leaving(stage: Stage) -> int:
    """How many are on their way out and still count."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sum(
        each.metadata.deletion_timestamp is not None and not is_true(each.status.conditions, names.INSTANCE_TERMINATING)
        for each in listed
    )


async def _budget_of(stage: Stage, nodes: str) -> None:
    await stage.admin.patch(NODE_POOL, "default", {"spec": {"disruption": {"budgets": [{"nodes": nodes}]}}})
