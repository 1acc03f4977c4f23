"""What `growth top` shows, before any widget: sums, rows, reasons, arithmetic."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from growth.api.decisions import DecisionAction, DecisionCost, DecisionSpec
from growth.api.kinds import Json, Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.cli import top as command
from growth.cli.errors import RunFailed
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim.ports import SimRandom
from growth.top import arranging, sentences
from growth.top.arranging import Arrangement, Order, age, shortened
from growth.top.elsewhere import Elsewhere
from growth.top.following import Following
from growth.top.model import Rows, Screen
from growth.top.telling import as_json, as_text
from growth.top.thinking import Thoughts, above, think
from tests.showing import NOW, SHOP, Stopped, filled, followed, hetzner, machine, pod, until


def looking(objects: list[Json], law: Callable[[Following, Stopped, MemoryApi], Awaitable[None]]) -> None:
    async def main() -> None:
        async with followed(objects) as (following, clock, api):
            task = asyncio.ensure_future(following.run())
            await following.wait_synced()
            try:
                await law(following, clock, api)
            finally:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    asyncio.run(main())


def seen(objects: list[Json]) -> tuple[Screen, Thoughts]:
    found: list[tuple[Screen, Thoughts]] = []

    async def law(following: Following, clock: Stopped, api: MemoryApi) -> None:
        found.append((Rows().screen(following.see()), think(following.matter())))

    looking(objects, law)
    return found[0]


def test_the_screen_on_paper() -> None:
    """Header, a row a node with its reason, waiting pods with theirs, the latest decision with its arithmetic."""
    text = as_text(*seen(SHOP))
    lines = text.splitlines()
    assert lines[0].startswith("growth top  3 nodes  6 pods on nodes, 2 waiting   cpu ")
    assert lines[1].startswith("€0.0528/h  €32.97/month   ")
    assert "above the least possible (€" in lines[1]
    (a,) = [line for line in lines if line.startswith("general-a")]
    assert "cx43      €0.0256" in a
    assert " 76%" in a
    assert "10m" in a
    assert a.split("10m  ")[1]
    (c,) = [line for line in lines if line.startswith("general-c")]
    assert "Cordoned" in c
    (huge,) = [line for line in lines if line.startswith("default/huge-0")]
    assert "general: " in huge
    (more,) = [line for line in lines if line.startswith("default/one-more-0")]
    assert "limit" in more
    assert "2 × cx33 at €0.0136 → cx43 €0.0256: saves €0.0016/h, €0.99/month" in text


def test_programs_get_the_same() -> None:
    """The JSON has the rows of the text, prices as numbers, and the bound."""
    said = json.loads(json.dumps(as_json(*seen(SHOP))))
    assert [each["name"] for each in said["machines"]] == ["general-a", "general-b", "general-c"]
    assert said["hourly"] == pytest.approx(0.052836538)
    assert 0 < said["leastHourly"] <= said["hourly"]
    assert said["aboveLeast"] == pytest.approx(said["hourly"] / said["leastHourly"] - 1)
    assert all(each["why"] for each in said["machines"])
    assert {each["pod"] for each in said["waiting"]} == {"default/huge-0", "default/one-more-0"}
    assert all(each["why"] for each in said["waiting"])


def test_any_cluster_can_be_watched() -> None:
    """One without a pool or a claim shows its nodes and pods, and says what it does not know."""
    _, node = machine("worker", "unheard-of", cpu="4", memory="8Gi")
    del node["metadata"]["labels"]["karpenter.sh/nodepool"]
    screen, thoughts = seen([node, pod("a", node="worker"), pod("b", cpu="9")])
    (row,) = screen.nodes
    assert (row.state, row.pool, row.price, row.pods) == ("Ready", "", None, 1)
    assert "no claim" in thoughts.of_node("worker") or thoughts.of_node("worker")
    assert thoughts.pending["default/b"]
    assert "€0.00/h" in as_text(screen, thoughts)


def test_a_row_is_made_again_only_when_its_machine_changes() -> None:
    """Of a second look the rows of machines without news are the very same objects."""

    async def law(following: Following, clock: Stopped, api: MemoryApi) -> None:
        rows = Rows()
        before = {row.name: row for row in rows.screen(following.see()).nodes}
        await api.create(POD, pod("late-0", node="general-b"), namespace="default")
        await until(lambda: following.pod("default/late-0") is not None)
        after = {row.name: row for row in rows.screen(following.see()).nodes}
        assert after["general-a"] is before["general-a"]
        assert after["general-b"].pods == before["general-b"].pods + 1
        await api.delete(NODE, "general-c")
        await until(lambda: following.state.nodes.store.get("general-c") is None)
        assert {row.state for row in rows.screen(following.see()).nodes if row.name == "general-c"} <= {"Bought"}

    looking(SHOP, law)


def test_rows_are_sorted_and_filtered_as_chosen() -> None:
    """Each order puts the right node first; a filter looks into everything that a row says."""
    screen, thoughts = seen(SHOP)

    def first(order: Order, *, reverse: bool = False) -> str:
        return arranging.nodes(screen, thoughts, Arrangement(order, reverse=reverse))[0].name

    assert first(Order.COST) == "general-a"
    assert first(Order.CPU) == "general-a"
    assert first(Order.MEMORY) == "general-c"
    assert first(Order.PODS) == "general-a"
    assert first(Order.NAME) == "general-a"
    assert first(Order.NAME, reverse=True) == "general-c"
    wanted = arranging.nodes(screen, thoughts, Arrangement(wanted="CORDON"))
    assert [row.name for row in wanted] == ["general-c"]
    assert [row.key for row in arranging.waiting(screen, thoughts, Arrangement(wanted="huge"))] == ["default/huge-0"]
    orders = {Arrangement().order}
    chosen = Arrangement()
    for _ in Order:
        chosen = chosen.next_order()
        orders.add(chosen.order)
    assert orders == set(Order)
    assert chosen == Arrangement()


def test_arithmetic_adds_up_or_says_nothing() -> None:
    """The sum is of the actions; without every price there is none."""
    cost = DecisionCost(currency="EUR")
    bought = DecisionAction(verb="create", instance_type="cx43", price=0.025625)
    gone = DecisionAction(verb="delete", instance_type="cx53", price=0.047259615)

    def sum_(*actions: DecisionAction) -> str:
        spec = DecisionSpec(at=NOW, controller="x", outcome="Acted", actions=actions, cost=cost)
        return sentences.arithmetic(spec, hours=624)

    assert sum_(bought) == "cx43 €0.0256: costs €0.0256/h, €15.99/month"
    assert sum_(gone) == "cx53 €0.0473 → nothing: saves €0.0473/h, €29.49/month"
    assert sum_(gone, bought) == "cx53 €0.0473 → cx43 €0.0256: saves €0.0216/h, €13.50/month"
    assert sum_(gone, DecisionAction(verb="create", instance_type="cx53", price=0.047259615)).endswith("stays as it is")
    assert sum_(DecisionAction(verb="create", instance_type="cx43")) == ""
    assert sum_() == ""


def test_small_words() -> None:
    """Ages in one unit, names cut in their middle, and how far above the bound a bill is."""
    assert [age(NOW, NOW.replace(minute=m, second=s)) for m, s in ((0, 45), (1, 59), (2, 0))] == ["45s", "119s", "2m"]
    assert age(None, NOW) == "?"
    assert shortened("batch-pool-ed704a8c-0e18-4fa0", 12) == "batch-…-4fa0"
    assert above(150, 100) == pytest.approx(0.5)
    assert above(100, 0) is None
    assert above(100, None) is None


def test_thoughts_can_be_had_elsewhere() -> None:
    """Another process thinks the same, says what went wrong, and ends when it is told to."""

    async def law(following: Following, clock: Stopped, api: MemoryApi) -> None:
        elsewhere = Elsewhere()
        try:
            assert await elsewhere.run(think, following.matter()) == think(following.matter())
            with pytest.raises(RuntimeError, match="ValueError"):
                await elsewhere.run(int, "no number")
            assert await elsewhere.run(int, "7") == 7
        finally:
            await elsewhere.close()

    looking(SHOP, law)


class Denied(MemoryApi):
    """A server that lets nobody read Decisions."""

    async def list(self, kind: Kind[Any], **more: Any) -> Any:
        if kind.kind == "Decision":
            raise Forbidden("decisions.growth.dev is forbidden")
        return await super().list(kind, **more)


def test_a_right_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """`growth top --once` does not wait for ever: it says what could not be read, and who grants it."""
    monkeypatch.setattr(command, "CALL_SECONDS", 0.5)

    async def main() -> None:
        server = MemoryServer(Stopped(), SimRandom(1, "server"))
        await filled(server, SHOP)
        api = Denied(server, user="somebody")
        following = Following(api, clock=Stopped(), random=SimRandom(1, "top"), choose=hetzner)
        with pytest.raises(RunFailed, match=r"decisions.*forbidden.*growth rbac --read-only"):
            await command._seen(api, following)

    asyncio.run(main())
