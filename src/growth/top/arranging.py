"""Which rows are shown, in which order and words. Pure; knows of colours and widths, not of a terminal."""

import dataclasses
import datetime as dt
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from rich.text import Text

from growth.top import model
from growth.top.model import DecisionRow, NodeRow, PodRow, Screen, Use
from growth.top.sentences import hourly, monthly
from growth.top.thinking import Thoughts, above
from growth.units.money import Money
from growth.units.resources import print_amount

BAR: Final = 8  # characters
NAME: Final = 24
_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"
_STATES: Final = {
    model.READY: "green",
    model.BOUGHT: "bold cyan",
    model.STARTING: "cyan",
    model.LEAVING: "magenta",
    model.NOT_READY: "bold red",
    model.CORDONED: "yellow",
}
_OUTCOMES: Final = {"Acted": "bold green", "WouldAct": "cyan", "Blocked": "yellow", "Nothing": "dim"}


class Order(enum.StrEnum):
    """By what nodes are sorted."""

    COST = "cost"
    CPU = "cpu"
    MEMORY = "memory"
    PODS = "pods"
    AGE = "age"
    NAME = "name"
    POOL = "pool"


_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)
_KEYS: Final[dict[Order, Callable[[NodeRow], Any]]] = {
    Order.COST: lambda row: -(row.price or 0),
    Order.CPU: lambda row: -row.cpu.share,
    Order.MEMORY: lambda row: -row.memory.share,
    Order.PODS: lambda row: -row.pods,
    Order.AGE: lambda row: row.created or _LONG_AGO,
    Order.NAME: lambda row: row.name,
    Order.POOL: lambda row: row.pool,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Arrangement:
    """What the person has chosen. `wanted` is looked for in everything that a row says."""

    order: Order = Order.COST
    reverse: bool = False
    wanted: str = ""

    def next_order(self) -> "Arrangement":
        orders = list(Order)
        return dataclasses.replace(self, order=orders[(orders.index(self.order) + 1) % len(orders)])


def nodes(screen: Screen, thoughts: Thoughts, chosen: Arrangement) -> list[NodeRow]:
    """The rows that match, in order; ties by name."""
    rows: Iterable[NodeRow] = screen.nodes
    if chosen.wanted:
        word = chosen.wanted.lower()
        rows = [row for row in rows if word in _said(row, thoughts)]
    key = _KEYS[chosen.order]
    return sorted(sorted(rows, key=lambda row: row.name), key=key, reverse=chosen.reverse)


def _said(row: NodeRow, thoughts: Thoughts) -> str:
    parts = (row.name, row.state, row.pool, row.type, row.zone, row.capacity_type, thoughts.of_node(row.name))
    return " ".join(parts).lower()


def waiting(screen: Screen, thoughts: Thoughts, chosen: Arrangement) -> list[PodRow]:
    """Pods that match, those that wait longest first."""
    rows = sorted(screen.waiting, key=lambda row: (row.created or _LONG_AGO, row.key))
    if not chosen.wanted:
        return rows
    word = chosen.wanted.lower()
    return [row for row in rows if word in f"{row.key} {thoughts.pending.get(row.key, '')}".lower()]


# Words.


@dataclasses.dataclass(frozen=True, slots=True)
class Columns:
    """How wide the columns of nodes are; 0 leaves one out. The reason has what is left."""

    name: int = NAME
    pool: int = 12
    type: int = 9
    price: int = 9
    bar: int = BAR


WIDE: Final = Columns()
NARROW: Final = Columns(name=18, pool=0, type=7, price=8, bar=0)
ROOMY: Final = 120  # characters; with fewer a terminal is narrow
LONG_TYPE: Final = 16  # g6-dedicated-16 has 15
LONG_TYPE_IN_NARROW: Final = 13
PODS_SHOWN: Final = 8
DECISIONS_SHOWN: Final = 10
# Of the three lists, with a rule above each but the first, and of the keys.
HEADINGS: Final = 6


def columns(width: int, rows: Iterable[NodeRow] = ()) -> Columns:
    """What fits into a terminal so wide. Names of types are shown whole where they are not very long."""
    of, most = (WIDE, LONG_TYPE) if width >= ROOMY else (NARROW, LONG_TYPE_IN_NARROW)
    return dataclasses.replace(of, type=max(of.type, min(most, max((len(row.type) for row in rows), default=0))))


def shares(height: int, *, above: int, nodes: int, pods: int, decisions: int) -> tuple[int, int]:
    """How many lines waiting pods and decisions have below nodes, in a terminal so high and with so many lines above them.

    Nodes that need it keep half of what is left; each of the others keeps a line.
    """
    left = height - above - HEADINGS
    pods, decisions = min(pods, PODS_SHOWN), min(max(decisions, 1), DECISIONS_SHOWN)
    room = left - min(nodes, left // 2)
    while pods + decisions > room and max(pods, decisions) > 1:
        if pods > decisions:
            pods -= 1
        else:
            decisions -= 1
    return pods, decisions


def lines_of(text: str, width: int) -> int:
    """How many lines the text takes where it is wrapped; words may make it one more."""
    return sum(max(1, -(-len(line) // max(1, width))) for line in text.split("\n"))


def node_heading(chosen: Arrangement, of: Columns = WIDE) -> Text:
    """The columns of nodes; the one that orders them is marked."""
    mark = "▲" if chosen.reverse else "▼"
    titles = [
        (Order.NAME, "NODE", of.name),
        (Order.POOL, "POOL", of.pool),
        (None, "STATE", 9),
        (None, "TYPE", of.type),
        (Order.COST, "PRICE/H", of.price),
        (Order.CPU, "CPU", of.bar + 5),
        (Order.MEMORY, "MEMORY" if of.bar else "MEM", of.bar + 5),
        (Order.PODS, "PODS", 5),
        (Order.AGE, "AGE", 5),
    ]
    text = Text(no_wrap=True)
    for order, title, width in titles:
        if width:
            ordering = order is chosen.order
            text.append((f"{title}{mark}" if ordering else title).ljust(width), "bold reverse" if ordering else "bold")
            text.append(" ")
    text.append("WHY IT IS KEPT", style="bold")
    return text


def node_line(row: NodeRow, why: str, *, now: dt.datetime, currency: str, of: Columns = WIDE) -> Text:
    """A node in one line. What does not fit into the terminal is cut off at its end: the reason, which details repeat."""
    text = Text(no_wrap=True)
    text.append(shortened(row.name, of.name).ljust(of.name) + " ")
    if of.pool:
        text.append(shortened(row.pool or "—", of.pool).ljust(of.pool) + " ", style="dim")
    text.append(row.state.ljust(9) + " ", style=_STATES.get(row.state, ""))
    text.append(shortened(row.type or "?", of.type).ljust(of.type) + " ")
    text.append((str(Money(row.price, currency)) if row.price is not None else "?").ljust(of.price) + " ")
    for use in (row.cpu, row.memory):
        text.append_text(bar(use, width=of.bar))
        text.append(f"{use.share * 100:4.0f}% " if use.total else "   —  ")
    text.append(f"{row.pods:>4}  ")
    text.append(age(row.created, now).rjust(4) + "  ", style="dim")
    text.append(why or "…", style="" if why else "dim")
    return text


def pod_line(row: PodRow, why: str, *, now: dt.datetime) -> Text:
    text = Text(no_wrap=True)
    text.append(shortened(row.key, 40).ljust(40) + " ", style="yellow")
    text.append(print_amount("cpu", row.cpu).rjust(6) + " ")
    text.append(print_amount("memory", row.memory).rjust(8) + "  ")
    text.append(age(row.created, now).rjust(4) + "  ", style="dim")
    text.append(why or "…", style="" if why else "dim")
    return text


POD_HEADING: Final = Text(f"{'WAITING POD':40} {'CPU':>6} {'MEMORY':>8}  {'AGE':>4}  WHY", style="bold", no_wrap=True)


def decision_line(row: DecisionRow, *, now: dt.datetime) -> Text:
    text = Text(no_wrap=True)
    text.append(age(row.at, now).rjust(5) + " ago  ", style="dim")
    text.append(row.text, style=_OUTCOMES.get(row.outcome, ""))
    if row.sum:
        text.append(f"  ({row.sum})", style="dim")
    return text


def header(screen: Screen, thoughts: Thoughts, *, title: str) -> Text:
    """Two lines: how much there is, and what it costs."""
    sums = screen.sums
    text = Text(no_wrap=True)
    text.append(f"{title}  ", style="bold")
    text.append(_counted(sums.nodes, "node"), style="bold")
    moving = [f"{n} {word}" for n, word in ((sums.coming, "coming"), (sums.leaving, "leaving")) if n]
    text.append(f" ({', '.join(moving)})" if moving else "", style="cyan")
    text.append(f"  {_counted(sums.running, 'pod')} on nodes, ")
    text.append(f"{sums.waiting} waiting", style="bold yellow" if sums.waiting else "dim")
    text.append("   cpu ")
    text.append_text(bar(sums.cpu, width=12))
    text.append(f"{sums.cpu.share * 100:4.0f}%   memory ")
    text.append_text(bar(sums.memory, width=12))
    text.append(f"{sums.memory.share * 100:4.0f}%\n")
    text.append(hourly(sums.hourly, screen.currency), style="bold green")
    text.append("  ")
    text.append(monthly(sums.hourly, screen.currency, hours=screen.hours_of_month), style="bold green")
    text.append(f"   {bounded(screen, thoughts)}", style="dim")
    if sums.unpriced:
        text.append(f"   {_counted(sums.unpriced, 'machine')} of unknown price not counted", style="yellow")
    if screen.problems:
        text.append(f"   stale: {screen.problems[0]}", style="bold red")
    return text


def bounded(screen: Screen, thoughts: Thoughts) -> str:
    """How far the bill is above the least possible, in words."""
    share = above(screen.sums.hourly, thoughts.least)
    if share is None:
        return "the least possible is not known" if thoughts.least is None else "nothing needs a machine"
    least = hourly(thoughts.least or 0, screen.currency)
    return f"{share * 100:.0f} % above the least possible ({least})"


def bar(use: Use, *, width: int = BAR) -> Text:
    """How full: red is wasted, green is used."""
    share = min(1.0, use.share)
    whole, part = divmod(round(share * width * 8), 8)
    filled = "█" * whole + (_EIGHTHS[part] if part else "")
    style = "green" if share >= 0.7 else "yellow" if share >= 0.35 else "red"
    text = Text(filled, style=style)
    text.append("·" * (width - len(filled)), style="dim")
    return text


def age(moment: dt.datetime | None, now: dt.datetime) -> str:
    """As kubectl says it, in one unit: 45s, 12m, 3h, 9d."""
    if moment is None:
        return "?"
    seconds = max(0, int((now - moment).total_seconds()))
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size or (seconds >= size and unit != "m"):
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def shortened(text: str, width: int) -> str:
    """Names differ at their ends: what is left out is in the middle."""
    if len(text) <= width:
        return text
    end = (width - 1) // 2
    return f"{text[: width - 1 - end]}…{text[len(text) - end :]}"


def _counted(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def text_of(lines: Sequence[Text]) -> str:
    """The lines without colours."""
    return "\n".join(line.plain.rstrip() for line in lines)
