"""The screen on paper: as text and as JSON, for pipes. Pure."""

from typing import Any

from rich.text import Text

from growth.top import arranging
from growth.top.arranging import Arrangement
from growth.top.model import Screen
from growth.top.thinking import Thoughts, above
from growth.units import print_time
from growth.units.money import NANO


def as_text(screen: Screen, thoughts: Thoughts) -> str:
    """As the terminal view has it, whole and without colours."""
    chosen = Arrangement()
    now, currency = screen.now, screen.currency
    lines = [arranging.header(screen, thoughts, title="growth top"), Text(), arranging.node_heading(chosen)]
    lines += [
        arranging.node_line(row, thoughts.of_node(row.name), now=now, currency=currency)
        for row in arranging.nodes(screen, thoughts, chosen)
    ]
    pods = arranging.waiting(screen, thoughts, chosen)
    if pods:
        lines += [Text(), arranging.POD_HEADING]
        lines += [arranging.pod_line(row, thoughts.pending.get(row.key, ""), now=now) for row in pods]
    if screen.decisions:
        lines += [Text(), Text("LATEST DECISIONS")]
        lines += [arranging.decision_line(row, now=now) for row in screen.decisions]
    return arranging.text_of(lines)


def as_json(screen: Screen, thoughts: Thoughts) -> dict[str, Any]:
    """The same for programs; prices an hour, in the currency."""
    sums = screen.sums
    return {
        "at": print_time(screen.now),
        "currency": screen.currency,
        "nodes": sums.nodes,
        "pods": {"onNodes": sums.running, "waiting": sums.waiting},
        "hourly": sums.hourly / NANO,
        "leastHourly": None if thoughts.least is None else thoughts.least / NANO,
        "aboveLeast": above(sums.hourly, thoughts.least),
        "utilisation": {"cpu": sums.cpu.share, "memory": sums.memory.share},
        "machines": [
            {
                "name": row.name,
                "state": row.state,
                "pool": row.pool,
                "type": row.type,
                "zone": row.zone,
                "price": None if row.price is None else row.price / NANO,
                "cpu": row.cpu.share,
                "memory": row.memory.share,
                "pods": row.pods,
                "why": thoughts.of_node(row.name),
            }
            for row in arranging.nodes(screen, thoughts, Arrangement())
        ],
        "waiting": [
            {"pod": row.key, "why": thoughts.pending.get(row.key, "")}
            for row in arranging.waiting(screen, thoughts, Arrangement())
        ],
        "decisions": [{"at": print_time(row.at), "text": row.text, "sum": row.sum} for row in screen.decisions],
    }
