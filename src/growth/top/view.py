"""The screen of `growth top` and of the demo, in textual. What it shows is worked out in `model` and `arranging`."""

import asyncio
import dataclasses
import gc
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input, Static

from growth.ports import Clock, Compute
from growth.top import arranging, details
from growth.top.arranging import Arrangement
from growth.top.following import Following
from growth.top.lines import Lines
from growth.top.model import Rows, Screen
from growth.top.thinking import NONE_YET, Thoughts, think

REFRESH_SECONDS: Final = 1.0
# A thought may take seconds of a processor: it rests for several times as long as the last one took.
REST: Final = 4.0
LEAST_REST_SECONDS: Final = 1.0
# Of what Python's collector knows: a collection of it is one of everything.
OLDEST: Final = 2


class Top(App[None]):
    """`said` is asked at each refresh for lines of somebody else's, such as what the demo is doing."""

    TITLE = "growth top"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #header { height: auto; padding: 0 1; background: $panel; }
    #said { height: auto; padding: 0 1; color: $text-accent; }
    #filter { display: none; height: 3; }
    #filter.shown { display: block; }
    #nodes { height: 1fr; padding: 0 1; }
    #pods { padding: 0 1; border-top: solid $panel; display: none; }
    #pods.some { display: block; }
    #decisions { padding: 0 1; border-top: solid $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "sort", "Sort"),
        Binding("r", "reverse", "Reverse"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("tab", "focus_next", "Next list", show=False),
        Binding("escape", "clear", "Clear filter", show=False),
        Binding("q", "quit", "Quit"),
    ]

    def __init__(
        self,
        following: Following,
        *,
        clock: Clock,
        compute: Compute,
        title: str,
        said: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        super().__init__()
        self._following = following
        self._clock = clock
        self._compute = compute
        self._shown_title = title
        self._said = said
        self._rows = Rows()
        self.seen: Screen | None = None
        self.thoughts: Thoughts = NONE_YET
        self.failure: Exception | None = None
        self.chosen = Arrangement()

    def compose(self) -> ComposeResult:
        yield Static("reading the cluster …", id="header")
        yield Static("", id="said")
        yield Input(placeholder="a word in a row: a name, a pool, a type, a reason", id="filter")
        yield Lines(id="nodes")
        yield Lines(id="pods")
        yield Lines(id="decisions")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#nodes", Lines).focus()
        self.query_one("#decisions", Lines).styles.height = 2
        self.run_worker(self._guarded(self._following.run()), name="following")
        self.run_worker(self._guarded(self._begin()), name="looking")

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What fails behind the screen ends it; whoever opened it tells the person."""
        try:
            await work
        except Exception as error:  # noqa: BLE001  it is raised again outside
            self.failure = error
            self.exit()

    async def _begin(self) -> None:
        self._tell_waiting()
        waiting = self.set_interval(REFRESH_SECONDS, self._tell_waiting)
        await self._following.wait_synced()
        waiting.stop()
        self.look()
        # Python's collector would walk the whole cache again and again, and the screen stand still meanwhile.
        gc.callbacks.append(_set_aside)
        try:
            gc.collect()
            self.set_interval(REFRESH_SECONDS, self.look)
            await self._think_on()
        finally:
            gc.callbacks.remove(_set_aside)

    def _tell_waiting(self) -> None:
        """What is still missing before anything can be shown, and why."""
        problems = self._following.problems()
        told = f"reading the cluster … {problems[0]}" if problems else "reading the cluster …"
        self.query_one("#header", Static).update(Text(told))
        self._tell_said()

    async def _think_on(self) -> None:
        """Thinks again whenever something has changed, with rests in between; time alone changes reasons, too."""
        while True:
            begun = self._clock.monotonic()
            self.thoughts = await self._compute.run(think, self._following.matter())
            self.look()
            took = self._clock.monotonic() - begun
            await asyncio.sleep(max(LEAST_REST_SECONDS, REST * took))

    # Looking.

    def look(self) -> None:
        """Reads the cluster as it is now and shows it."""
        self.seen = self._rows.screen(self._following.see())
        self.arrange()

    def arrange(self) -> None:
        """Shows what was read last, as the person wants it."""
        screen, thoughts, chosen = self.seen, self.thoughts, self.chosen
        if screen is None:
            return
        now, currency = screen.now, screen.currency
        header = arranging.header(screen, thoughts, title=self._shown_title)
        self.query_one("#header", Static).update(header)
        self._tell_said()
        nodes = arranging.nodes(screen, thoughts, chosen)
        of = arranging.columns(self.size.width, nodes)
        self.query_one("#nodes", Lines).show(
            [row.name for row in nodes],
            lambda at: arranging.node_line(
                nodes[at], thoughts.of_node(nodes[at].name), now=now, currency=currency, of=of
            ),
            heading=arranging.node_heading(chosen, of),
        )
        pods = arranging.waiting(screen, thoughts, chosen)
        width = self.size.width - 2
        above = arranging.lines_of(header.plain, width) + arranging.lines_of("\n".join(self._said()), width)
        for_pods, for_decisions = arranging.shares(
            self.size.height, above=above, nodes=len(nodes), pods=len(pods), decisions=len(screen.decisions)
        )
        waiting = self.query_one("#pods", Lines)
        waiting.set_class(bool(pods), "some")
        waiting.styles.height = for_pods + 2
        waiting.show(
            [row.key for row in pods],
            lambda at: arranging.pod_line(pods[at], thoughts.pending.get(pods[at].key, ""), now=now),
            heading=arranging.POD_HEADING,
        )
        decided = self.query_one("#decisions", Lines)
        decided.styles.height = for_decisions + 2
        decided.show(
            [row.name for row in screen.decisions],
            lambda at: arranging.decision_line(screen.decisions[at], now=now),
            heading=Text("LATEST DECISIONS" if screen.decisions else "NO DECISIONS YET", style="bold"),
        )

    def _tell_said(self) -> None:
        self.query_one("#said", Static).update(Text("\n".join(self._said())))

    def on_resize(self) -> None:
        self.arrange()

    # Keys.

    def action_sort(self) -> None:
        self.chosen = self.chosen.next_order()
        self.arrange()

    def action_reverse(self) -> None:
        self.chosen = dataclasses.replace(self.chosen, reverse=not self.chosen.reverse)
        self.arrange()

    def action_filter(self) -> None:
        asked = self.query_one("#filter", Input)
        asked.add_class("shown")
        asked.focus()

    def action_clear(self) -> None:
        self._filtered("")

    def on_input_changed(self, event: Input.Changed) -> None:
        self.chosen = dataclasses.replace(self.chosen, wanted=event.value.strip())
        self.arrange()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._filtered(event.value)

    def _filtered(self, wanted: str) -> None:
        asked = self.query_one("#filter", Input)
        asked.value = wanted
        asked.set_class(bool(wanted), "shown")
        self.query_one("#nodes", Lines).focus()

    def on_lines_opened(self, event: Lines.Opened) -> None:
        screen = self.seen
        if screen is None:
            return
        text: Text | None = None
        if event.lines.id == "nodes":
            row = next((row for row in screen.nodes if row.name == event.key), None)
            if row is not None:
                text = details.of_node(
                    row,
                    self._following.pods_on(row.name),
                    self.thoughts.of_node(row.name),
                    now=screen.now,
                    currency=screen.currency,
                    hours=screen.hours_of_month,
                )
        elif event.lines.id == "pods":
            pod = self._following.pod(event.key)
            if pod is not None:
                text = details.of_pod(pod, self.thoughts.pending.get(event.key, ""), now=screen.now)
        else:
            decided = next((each for each in screen.decisions if each.name == event.key), None)
            if decided is not None:
                text = Text(f"Decision {decided.name}\n\n{decided.outcome}\n{decided.text}\n{decided.sum}")
        if text is not None:
            self.push_screen(details.Details(text))


def _set_aside(phase: str, info: Mapping[str, int]) -> None:
    """What has outlived a whole collection is not looked at by the next one: that is what the cache has heard since."""
    if phase == "stop" and info["generation"] == OLDEST:
        gc.freeze()
