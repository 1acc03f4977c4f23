"""python -m bench.peers.karpenter build | measure MIX:PODS[:Ignore] …

build     builds the peer and Karpenter's KWOK controller into the cache and prints where they are
measure   solves mixes (diverse, generic, preferences, varied_preferences, web, trace) over Karpenter's 400 benchmark
          types, or the steady cluster (steady:NODES) over the KWOK types, and prints a line for each
"""

import os
import sys
from collections.abc import Callable
from typing import Final

from bench import catalogues, mixes
from bench.peers import karpenter
from bench.peers.karpenter import PeerError, PreferencePolicy, kwok
from bench.settled import steady
from growth.api.kinds import Json
from tools.gobuild import BuildError

MIXES: Final[dict[str, Callable[[int], list[Json]]]] = {
    "diverse": mixes.diverse,
    "generic": mixes.generic,
    "preferences": mixes.preferences,
    "trace": mixes.trace,
    "varied_preferences": mixes.varied_preferences,
    "web": mixes.web,
}
HEADINGS: Final = (
    "mix",
    "policy",
    "pods",
    "nodes",
    "price/h",
    "seconds",
    "solve",
    "cpu",
    "pods/s",
    "pods/cpu-s",
    "MB",
    "load",
)
WIDTHS: Final = (20, 8, 7, 7, 10, 9, 9, 9, 8, 11, 6, 5)


def main(arguments: list[str]) -> int:
    """0, 1 where something failed, 2 where the command is not understood."""
    try:
        match arguments:
            case ["build"]:
                print(karpenter.build())
                print(kwok.controller())
            case ["measure", _, *_]:
                print(f"Karpenter {karpenter.version()}, {karpenter.WORKERS} workers, {os.cpu_count()} cpus")
                _print_row(HEADINGS)
                for cell in arguments[1:]:
                    _measure(cell)
            case _:
                print(__doc__, file=sys.stderr)
                return 2
    except (BuildError, PeerError, catalogues.DataMissingError) as error:
        print(f"karpenter: {error}", file=sys.stderr)
        return 1
    return 0


def _measure(cell: str) -> None:
    name, count, policy = _parse(cell)
    if name == "steady":
        objects, types = steady(count), catalogues.kwok_types()
    else:
        objects, types = [mixes.node_pool(), *MIXES[name](count)], catalogues.fake_types()
    answer = karpenter.solve(objects, instance_types=types, preference_policy=policy)
    run = answer.best
    if answer.errors:
        print(f"karpenter: {cell}: {len(answer.errors)} pods were not placed", file=sys.stderr)
    _print_row(
        (
            f"{name}:{count}",
            policy,
            str(answer.pods),
            str(run.nodes),
            f"{answer.hourly:.2f}",
            f"{run.seconds:.2f}",
            f"{run.solve_seconds:.2f}",
            f"{run.cpu_seconds:.2f}",
            f"{answer.pods / run.seconds:.0f}",
            f"{answer.pods / run.cpu_seconds:.0f}",
            f"{answer.peak_memory_bytes / 1e6:.0f}",
            f"{os.getloadavg()[0]:.1f}",
        )
    )


def _parse(cell: str) -> tuple[str, int, PreferencePolicy]:
    name, _, rest = cell.partition(":")
    count, _, policy = rest.partition(":")
    if name not in (*MIXES, "steady") or not count.isdigit() or policy not in ("", "Respect", "Ignore"):
        raise PeerError(f"{cell!r} is not MIX:PODS[:Ignore] with one of {', '.join((*MIXES, 'steady'))}")
    return name, int(count), "Ignore" if policy == "Ignore" else "Respect"


def _print_row(words: tuple[str, ...]) -> None:
    first, *rest = (word.rjust(width) for word, width in zip(words, WIDTHS, strict=True))
    print(first.strip().ljust(WIDTHS[0]), *rest, flush=True)


sys.exit(main(sys.argv[1:]))
