"""A list of many lines of which a terminal shows a few: only those that are seen are ever made."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

_CURSOR = Style(bgcolor="#1f4f6f")
_BASE = Style()


class Lines(ScrollView, can_focus=True):
    """Rows by key, made into text when they are looked at. The cursor stays on its key while rows come and go."""

    DEFAULT_CSS = """
    Lines { overflow-x: hidden; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "jump(0)", "First", show=False),
        Binding("end", "jump(-1)", "Last", show=False),
        Binding("enter", "open", "Open"),
    ]

    class Opened(Message):
        """Somebody wants to know more about a row."""

        def __init__(self, lines: "Lines", key: str) -> None:
            super().__init__()
            self.lines = lines
            self.key = key

        @property
        def control(self) -> "Lines":
            return self.lines

    def __init__(self, *, id: str) -> None:  # noqa: A002  the library's name
        super().__init__(id=id)
        self._keys: Sequence[str] = ()
        self._make: Callable[[int], Text] = lambda _: Text()
        self._heading = Text()
        self._cursor = 0

    @property
    def keys(self) -> Sequence[str]:
        return self._keys

    @property
    def chosen(self) -> str:
        """The key under the cursor; empty where there is none."""
        return self._keys[self._cursor] if self._keys else ""

    def show(self, keys: Sequence[str], make: Callable[[int], Text], *, heading: Text) -> None:
        """Other rows, or the same in other words. `make` gives the text of a row by its place."""
        before = self.chosen
        self._keys, self._make, self._heading = keys, make, heading
        if before and (self._cursor >= len(keys) or keys[self._cursor] != before):
            try:
                self._cursor = list(keys).index(before)
            except ValueError:
                self._cursor = max(0, min(self._cursor, len(keys) - 1))
        self.virtual_size = Size(0, len(keys) + 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y == 0:
            return self._strip(self._heading, width, _BASE)
        at = self.scroll_offset.y + y - 1
        if at >= len(self._keys):
            return Strip.blank(width, self.rich_style)
        style = _CURSOR if at == self._cursor and self.has_focus else _BASE
        return self._strip(self._make(at), width, style)

    def _strip(self, text: Text, width: int, style: Style) -> Strip:
        # A text without spans is rendered without its style, too.
        whole = Text(no_wrap=True).append_text(text) if not text.spans and text.style else text
        segments = [each for each in whole.render(self.app.console) if each.text and each.text != "\n"]
        strip = Strip(Segment.apply_style(segments, self.rich_style)).adjust_cell_length(width, self.rich_style)
        return strip.apply_style(style) if style is not _BASE else strip

    def action_move(self, by: int) -> None:
        self._go(self._cursor + by)

    def action_page(self, by: int) -> None:
        self._go(self._cursor + by * max(1, self.size.height - 2))

    def action_jump(self, to: int) -> None:
        self._go(to if to >= 0 else len(self._keys) - 1)

    def action_open(self) -> None:
        if self.chosen:
            self.post_message(self.Opened(self, self.chosen))

    def on_click(self, event: Click) -> None:
        at = self.scroll_offset.y + event.y - 1
        if event.y > 0 and at < len(self._keys):
            again = at == self._cursor
            self._go(at)
            if again:
                self.action_open()

    def _go(self, to: int) -> None:
        self._cursor = max(0, min(to, len(self._keys) - 1))
        self.scroll_to_region(Region(0, self._cursor, 1, 2), animate=False, force=True)
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
