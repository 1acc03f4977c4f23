"""What clusters cost: the `cost` packer, `first-fit` and Karpenter, rehearsed by one model, beside the configuration bound.

Every planner says which machines to buy; the model of kube-scheduler binds the pods, and what is left over is bought for
again by the same planner (`bench.buying`). `rehearsed` is the price of all that, for machines that are ready at once and
one by one; `second` are the pods that a second purchase was for. The bound is `bench.patterns`: nothing can cost less.
`integer bound` (`bench.integers`) is the same for machines in whole numbers; `line` says where it excludes what the cell is
held to.
`own bound` is the lower bound that the plan itself carries. Seconds are those of `bench.scheduling`: ours from decoded
objects to the finished plan, Karpenter's over NewTopology, NewScheduler and Solve.

The first table is plain pods on four catalogues; the second has rules, where no bound is computed. It ends with 1 where a
row misses what it must show.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from bench import cells, integers, patterns
from bench.buying import Market, Outcome, Planner, Purchase
from bench.cells import Cell
from bench.peers import karpenter
from bench.scheduling import NANO, catalogue_of
from growth.api import names
from growth.api.instance_types import Catalogue, InstanceType
from growth.planning.rehearsal import Arrival
from growth.planning.solve import Options

SECOND_SHARE: Final = 0.005  # of the pods may be left to a second purchase
# Prices within a part in a thousand are equal: Karpenter's plans vary from run to run.
EQUAL: Final = 1.001
BELOW_FIRST_FIT: Final = 0.95
CELLS_BELOW: Final = 4
DAEMON: Final = (200.0, 300.0, 1.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--only", default="", help="only cells whose name holds this text")
    parser.add_argument("--without-peer", action="store_true", help="do not run Karpenter")
    parser.add_argument("--without-bound", action="store_true", help="do not compute the configuration bound")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    rows, faults = [], []
    for cell in (*cells.plain(options.pods), *cells.constrained(options.pods)):
        if options.only not in cell.name:
            continue
        row = _row(cell, peer=not options.without_peer, bounded=not options.without_bound)
        rows.append((cell, row))
        faults += _faults(cell, row)
        if sys.stderr.isatty():
            print(cell.name, file=sys.stderr, flush=True)
    below = [cell.name for cell, row in rows if cell.most is None and _below(row)]
    if not options.only and len(below) < CELLS_BELOW:
        faults.append(f"only {len(below)} cells with rules are 5 % below first fit")
    return {
        "karpenter": karpenter.version(),
        "pods": options.pods,
        "plain pods": [line for cell, row in rows if cell.most is not None for line in _lines(cell, row)],
        "with rules": [line for cell, row in rows if cell.most is None for line in _lines(cell, row)],
        "5 % below first fit": ", ".join(below) or "none",
        "faults": "; ".join(faults) or "none",
    }


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["faults"] != "none")


class Side:
    """One planner's row: its purchase, and what came of it."""

    def __init__(self, market: Market, cell: Cell, planner: Planner) -> None:
        self.purchase: Purchase = planner(cell.objects)
        self.at_once: Outcome = market.carried_out(cell.objects, self.purchase, planner, Arrival.AT_ONCE)
        self.one_by_one: Outcome = market.carried_out(cell.objects, self.purchase, planner, Arrival.ONE_BY_ONE)


Row = dict[str, Any]


def _row(cell: Cell, *, peer: bool, bounded: bool) -> Row:
    catalogue = catalogue_of(cell.types)
    market = Market(cell.types, catalogue)
    row: Row = {
        "cost": Side(market, cell, market.growth(Options(packer="cost"))),
        "first-fit": Side(market, cell, market.growth(Options(packer="first-fit"))),
    }
    if peer and cell.karpenter:
        row["karpenter"] = Side(market, cell, market.peer)
    if bounded and cell.most is not None:
        problem = _problem(cell, catalogue)
        found = patterns.bound(problem)
        row["bound"] = found.value
        row["integer bound"] = integers.integer_bound(problem, found)
    return row


def _problem(cell: Cell, catalogue: Catalogue) -> patterns.Problem:
    """The plain cell as the bound sees it."""
    daemon = np.array(DAEMON if any(each["kind"] == "DaemonSet" for each in cell.objects) else (0.0, 0.0, 0.0))
    sold = [
        (price, kind)
        for kind in catalogue.types
        if kind.labels[names.ARCH_LABEL] == ("amd64",) and "linux" in kind.labels[names.OS_LABEL]
        for price in (_price(kind),)
        if price is not None
    ]
    room = [(a["cpu"], a["memory"] / (1 << 20), a["pods"]) for _, kind in sold for a in (kind.allocatable,)]
    request, count = patterns.classes_of(cells.requests(cell.objects))
    return patterns.Problem(
        price=np.array([price for price, _ in sold]),
        room=np.array(room, dtype=np.float64) - daemon,
        request=request,
        count=count,
        fits=np.ones((len(sold), len(count)), dtype=np.bool_),
    )


def _price(kind: InstanceType) -> float | None:
    """An hour of the type on demand, where it is cheapest."""
    prices = [
        each.price
        for each in kind.offerings
        if each.price is not None and each.available and each.capacity_type == names.ON_DEMAND
    ]
    return min(prices) / NANO if prices else None


def _lines(cell: Cell, row: Row) -> Iterator[dict[str, Any]]:
    """A line for each planner; ratios are to the configuration bound where there is one."""
    bound: float | None = row.get("bound")
    for name in ("cost", "first-fit", "karpenter"):
        side: Side | None = row.get(name)
        if side is None:
            continue
        line: dict[str, Any] = {"cell": cell.name, "planner": name}
        if cell.most is not None:
            own = side.purchase.bound
            line["bound"] = "" if bound is None else f"{bound:.3f}"
            line["own_bound"] = "" if own is None else f"{own:.3f}"
            whole: float | None = row.get("integer bound")
            line["integer_bound"] = "" if whole is None else f"{whole:.3f}"
            line["line"] = "" if bound is None or whole is None else _line(cell.most, bound, whole)
            line["below_the_bound"] = "" if own is None or bound is None else f"{100 * (1 - own / bound):.1f} %"
        line["planned"] = f"{side.purchase.planned:.3f}"
        for way, outcome in (("at_once", side.at_once), ("one_by_one", side.one_by_one)):
            line[way] = f"{outcome.hourly:.3f}"
            if bound is not None:
                line[f"{way}_/_bound"] = f"{outcome.hourly / bound:.3f}"
                line[f"{way}_/_integer"] = f"{outcome.hourly / row['integer bound']:.3f}"
            line[f"{way}_second"] = outcome.second
        if cell.most is None:
            line["never"] = side.at_once.never
        line["nodes"] = side.at_once.nodes
        line["seconds"] = f"{side.purchase.seconds:.3f}"
        yield line


def _line(most: tuple[float, float], bound: float, whole: float) -> str:
    """Whether any plan of whole machines could be where the cell is to be."""
    missed = [f"{each:.2f}× is below the integer bound" for each in most if whole > each * bound]
    return "; ".join(missed) or "not excluded"


def _below(row: Row) -> bool:
    ours, other = row["cost"], row["first-fit"]
    return bool(0 < ours.at_once.hourly <= BELOW_FIRST_FIT * other.at_once.hourly)


def _faults(cell: Cell, row: Row) -> list[str]:
    """Where the row misses what it must show."""
    ours: Side = row["cost"]
    found = []
    pods = len(cells.requests(cell.objects))
    for number, way in enumerate(("at once", "one by one")):
        outcome: Outcome = (ours.at_once, ours.one_by_one)[number]
        bound = row.get("bound")
        if bound is not None and cell.most is not None and outcome.hourly > cell.most[number] * bound:
            found.append(f"{cell.name}: {way} {outcome.hourly / bound:.3f}× the bound")
        if cell.most is not None and outcome.second > SECOND_SHARE * pods:
            found.append(f"{cell.name}: {way} {outcome.second} pods are left to a second purchase")
        for name in ("first-fit", "karpenter"):
            other: Side | None = row.get(name)
            if other is None or (name == "first-fit" and cell.most is not None):
                continue
            theirs: Outcome = (other.at_once, other.one_by_one)[number]
            if theirs.never <= outcome.never and outcome.hourly > EQUAL * theirs.hourly:
                found.append(f"{cell.name}: {way} {outcome.hourly:.3f}, {name} {theirs.hourly:.3f}")
    return found
