"""The screen of `growth top`: drawn as it is on a terminal, keys included. Time stands still and so do the pictures.

`tests/unit/snapshots/` holds the pictures; `GROWTH_SNAPSHOTS=write pytest tests/unit/test_top_view.py` draws them anew.
"""

import asyncio
import contextlib
import gc
import os
import pathlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from growth.api.pods import POD
from growth.kube.memory import MemoryApi
from growth.top.lines import Lines
from growth.top.view import Top
from tests.showing import SHOP, Inline, followed, pod, until

SNAPSHOTS = pathlib.Path(__file__).parent / "snapshots"
SIZE = (150, 28)


def drawn(app: Top) -> str:
    """What is on the screen, line by line, without colours."""
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips) + "\n"


def compare(app: Top, name: str) -> None:
    """The picture is the one that is kept."""
    file = SNAPSHOTS / f"{name}.txt"
    picture = drawn(app)
    if os.environ.get("GROWTH_SNAPSHOTS") == "write":
        file.write_text(picture, encoding="utf-8")
    assert picture == file.read_text(encoding="utf-8")


@contextlib.asynccontextmanager
async def opened(size: tuple[int, int]) -> AsyncIterator[tuple[Top, Pilot[None], MemoryApi]]:
    async with followed(SHOP) as (following, clock, api):
        app = Top(following, clock=clock, compute=Inline(), title="shop")
        async with app.run_test(size=size) as pilot:
            while not app.thoughts.kept:
                await pilot.pause()
            await pilot.pause()
            yield app, pilot, api


Law = Callable[[Top, Pilot[None], MemoryApi], Awaitable[None]]


def on_screen(law: Law, *, size: tuple[int, int] = SIZE) -> None:
    async def main() -> None:
        async with opened(size) as (app, pilot, api):
            await law(app, pilot, api)

    asyncio.run(main())


def test_the_whole_screen() -> None:
    """Header, nodes, waiting pods, decisions and keys, as a terminal of 150 columns shows them."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        compare(app, "whole")
        assert "general-a" in app.export_screenshot().replace("&#160;", " ")

    on_screen(law)


def test_a_narrow_terminal_cuts_reasons_and_nothing_else() -> None:
    """In 80 columns names, states and prices are still there."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        compare(app, "narrow")

    on_screen(law, size=(80, 24))


@pytest.mark.parametrize("height", [14, 16, 18, 24])
def test_nodes_keep_their_place_when_many_pods_wait(height: int) -> None:
    """The lists below them give way, and each still shows a line."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        for number in range(20):
            await api.create(POD, pod(f"more-{number}", cpu="60"), namespace="default")

        def seen() -> bool:
            app.look()
            return len(app.query_one("#pods", Lines).keys) == 22

        await until(seen)
        await pilot.pause()
        shown = drawn(app)
        assert "general-a" in shown
        assert "default/huge-0" in shown
        assert "disruption: replaces" in shown

    on_screen(law, size=(80, height))


def test_s_sorts_and_r_reverses() -> None:
    """The column that orders is marked, and the rows follow."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        nodes = app.query_one("#nodes", Lines)
        assert nodes.keys[0] == "general-a"
        await pilot.press("s", "s")
        assert "MEMORY▼" in drawn(app)
        assert nodes.keys[0] == "general-c"
        await pilot.press("r")
        assert "MEMORY▲" in drawn(app)
        assert nodes.keys[-1] == "general-c"

    on_screen(law)


def test_a_filter_leaves_what_matches() -> None:
    """What is typed after / counts at once, enter goes back to the list, escape shows all again."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        nodes = app.query_one("#nodes", Lines)
        await pilot.press("slash", "c", "x", "3", "3")
        await pilot.pause()
        assert list(nodes.keys) == ["general-b", "general-c"]
        await pilot.press("enter")
        assert app.focused is nodes
        assert app.query_one("#filter", Input).value == "cx33"
        await pilot.press("escape")
        await pilot.pause()
        assert len(nodes.keys) == 3

    on_screen(law)


def test_enter_opens_a_node() -> None:
    """Its price, its reason in full and its pods; escape goes back."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        await pilot.press("down", "enter")
        await pilot.pause()
        compare(app, "node")
        await pilot.press("escape")
        await pilot.pause()
        assert "WHY IT IS KEPT" in drawn(app)

    on_screen(law)


def test_enter_opens_a_pod_that_waits() -> None:
    """What it asks for and why no pool takes it."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        await pilot.press("tab", "enter")
        await pilot.pause()
        compare(app, "pod")

    on_screen(law)


def test_news_are_shown_and_the_cursor_stays_on_its_row() -> None:
    """A pod that comes is counted at the next look; the chosen node stays chosen wherever it moves."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        nodes = app.query_one("#nodes", Lines)
        await pilot.press("down")
        assert nodes.chosen == "general-b"
        for number in range(8):
            await api.create(POD, pod(f"more-{number}", cpu="100m", node="general-b"), namespace="default")
        await pilot.pause()
        app.look()
        for _ in range(3):
            await pilot.press("s")
        assert nodes.keys[0] == "general-b"
        assert nodes.chosen == "general-b"
        assert "14 pods on nodes" in drawn(app)

    on_screen(law)


def test_what_fails_behind_the_screen_ends_it() -> None:
    """The view closes, and whoever opened it has the error."""

    async def main() -> Exception | None:
        async with followed(SHOP) as (following, clock, _):
            app = Top(following, clock=clock, compute=_Broken(), title="shop")
            async with app.run_test(size=SIZE):
                await until(lambda: app.failure is not None)
            return app.failure

    failure = asyncio.run(main())
    assert isinstance(failure, RuntimeError)


class _Broken(Inline):
    async def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("no thought to be had")


def test_what_outlives_a_collection_is_set_aside_while_the_view_is_open() -> None:
    """The collector does not walk the whole cache again and again; afterwards it is as it was."""
    before = list(gc.callbacks)

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        older = gc.get_freeze_count()
        kept: list[list[int]] = [[] for _ in range(10_000)]
        gc.collect()
        assert gc.get_freeze_count() >= older + len(kept)

    on_screen(law)
    assert list(gc.callbacks) == before


def test_q_quits() -> None:
    """At once, without an error."""

    async def law(app: Top, pilot: Pilot[None], api: MemoryApi) -> None:
        await pilot.press("q")
        assert app.failure is None
        assert app.return_code == 0

    on_screen(law)
