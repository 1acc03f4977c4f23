"""One node or one pod on a page of its own. The words are pure; the page is textual's."""

import datetime as dt
from collections.abc import Sequence
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from growth.api.requests import requests_of
from growth.cluster.shapes import CachedPod
from growth.cluster.wanting import is_done, key_of
from growth.top.arranging import age
from growth.top.model import CPU, MEMORY, NodeRow, Use
from growth.top.sentences import hourly, monthly
from growth.units.errors import QuantityError
from growth.units.money import Hours
from growth.units.resources import print_amount

GIB: Final = 2**30
_NOT_YET: Final = "not known yet"


def of_node(
    row: NodeRow, pods: Sequence[CachedPod], why: str, *, now: dt.datetime, currency: str, hours: Hours
) -> Text:
    """Everything about a node, and its pods."""
    price = (
        "not known"
        if row.price is None
        else f"{hourly(row.price, currency)}, {monthly(row.price, currency, hours=hours)}"
    )
    text = _fields(
        f"Node {row.name}",
        {
            "why it is kept": why or _NOT_YET,
            "state": row.state,
            "pool": row.pool or "none: nobody's",
            "type": " ".join(part for part in (row.type, row.zone, row.capacity_type) if part) or "not known",
            "price": price,
            "age": age(row.created, now),
            "cpu": _used(CPU, row.cpu),
            "memory": _used(MEMORY, row.memory),
        },
    )
    living = sorted((pod for pod in pods if not is_done(pod)), key=key_of)
    text.append(f"\n{'POD':56} {'CPU':>7} {'MEMORY':>9} {'AGE':>5}\n", style="bold")
    for pod in living:
        cpu, memory = _asked(pod)
        text.append(f"{key_of(pod):56} {cpu:>7} {memory:>9} {age(pod.created, now):>5}\n")
    return text


def of_pod(pod: CachedPod, why: str, *, now: dt.datetime) -> Text:
    """Everything about a pod that waits."""
    cpu, memory = _asked(pod)
    selector = ", ".join(f"{key}={value}" for key, value in sorted(pod.shape.spec.node_selector.items()))
    owner = f"{pod.owner.kind} {pod.owner.name}" if pod.owner is not None else "nobody"
    return _fields(
        f"Pod {key_of(pod)}",
        {
            "why it waits": why or _NOT_YET,
            "asks for": f"{cpu} cpu, {memory} memory",
            "owner": owner,
            "selects nodes": selector or "any",
            "age": age(pod.created, now),
        },
    )


def _fields(title: str, fields: dict[str, str]) -> Text:
    text = Text(f"{title}\n\n", style="bold")
    for name, value in fields.items():
        text.append(f"{name:16}", style="not bold dim")
        text.append(f"{value}\n", style="not bold")
    return text


def _used(name: str, use: Use) -> str:
    if name == MEMORY:
        return f"{use.used / GIB:.1f} of {use.total / GIB:.1f} GiB asked for, {use.share * 100:.0f} %"
    return f"{use.used / 1000:.1f} of {use.total / 1000:.1f} cores asked for, {use.share * 100:.0f} %"


def _asked(pod: CachedPod) -> tuple[str, str]:
    try:
        asked = requests_of(pod.shape.spec)
    except QuantityError:
        return "?", "?"
    return print_amount(CPU, asked.get(CPU, 0)), print_amount(MEMORY, asked.get(MEMORY, 0))


class Details(ModalScreen[None]):
    """The page; any of its keys closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q", "dismiss", "Back")]
    DEFAULT_CSS = """
    Details { align: center middle; }
    Details VerticalScroll { width: 92%; max-width: 120; height: 80%; border: round $accent; padding: 1 2; background: $surface; }
    """

    def __init__(self, text: Text) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        with VerticalScroll():
            yield Static(self._text, id="details")
