"""The worlds that `bench branches` goes through, by kind and name. Imported after the probes: it brings in everything else."""

from bench import probes
from growth.sim.campaign import quiet
from growth.sim.runs import run
from growth.sim.scenario.generate import generate, small
from growth.sim.scenario.model import Order
from growth.sim.scenario.named import NAMED

Play = tuple[str, str]
"""What is played: of which kind, and which."""


def plays(seeds: int) -> list[Play]:
    """Those with a name, hours with all faults, and small worlds whose process ends after a write."""
    return [
        *(("named", name) for name in NAMED),
        *(("hour", str(seed)) for seed in range(seeds)),
        *(("small", str(seed)) for seed in range(seeds)),
    ]


def played(play: Play, hours: float) -> tuple[set[probes.Outcome], list[str]]:
    """The outcomes that were seen, and the promises that were broken."""
    quiet()
    probes.forget()
    outcome = run(_order(play, hours))
    return probes.outcomes(), [f"{each.invariant}: {each.story.splitlines()[0]}" for each in outcome.violations]


def _order(play: Play, hours: float) -> Order:
    kind, which = play
    match kind:
        case "hour":
            return Order(seed=int(which), scenario=generate(int(which), hours=hours), hours=hours, faults="all")
        case "small":
            scenario = small(int(which))
            return Order(seed=int(which), scenario=scenario, hours=scenario.hours, crash_after=int(which) + 1)
        case _:
            return Order(seed=0, scenario=NAMED[which], hours=NAMED[which].hours)
