"""The leader's machine is suspended right after its n-th write, in a small world of a scale-up and a scale-down.

What is counted comes from the simulated server's own log and from what reaches the cloud, and from nothing of ours: writes
of the sleeper that the server or the cloud performed while another held the Lease; machines of one claim beyond its first; and, at the end, machines without a claim
and claims without their machine. The world's invariants are judged too.
"""

import collections
import dataclasses
from typing import Final

from growth.api import names
from growth.operator.wiring import Role
from growth.ports import Response
from growth.sim.campaign import quiet
from growth.sim.chaos.sabotage import applied
from growth.sim.invariants.books import CLAIMS, CONFIG_MAPS, MACHINE_LABEL
from growth.sim.invariants.leading import LEASES
from growth.sim.ports import Request
from growth.sim.runs import run
from growth.sim.scenario.generate import small
from growth.sim.scenario.model import Order, lasting
from growth.sim.scenario.vendors import told_for
from growth.sim.seams import Actor, Step
from growth.sim.world.world import World

# How long the machine sleeps, and at how many moments of a world that is tried.
PLAN: Final = ((1.0, 60), (20.0, 60), (200.0, 10))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Slept:
    """One world. `late` are the sleeper's writes under another's Lease, `taken` whether another took the Lease meanwhile."""

    after: int
    seconds: float
    writes: int
    taken: bool
    late: tuple[str, ...]
    doubled: int
    lost: int
    broken: tuple[str, ...]
    digest: str


class _Log:
    """Reads the server's log, and suspends the machine of whoever makes the n-th write."""

    def __init__(self, after: int, seconds: float) -> None:
        self.count = 0
        self.holder = ""
        self.sleeper = ""
        self.taken = False
        self.late: list[str] = []
        self.bought: collections.Counter[str] = collections.Counter()
        self.machines: dict[str, str] = {}
        self.claims: dict[str, str] = {}
        self._after = after
        self._seconds = seconds
        self._world: World | None = None

    def attend(self, world: World) -> None:
        self._world = world
        world.witness.listeners.append(self._see)
        world.run(self._listen_to(world))

    async def _listen_to(self, world: World) -> None:
        """What the cloud performs, as soon as there is one."""
        half = world.vendor
        if half is None:
            return
        perform = half.perform

        def performed(request: Request, actor: Actor) -> tuple[Response, float]:
            if request.method != "GET" and self.sleeper == actor.process != self.holder:
                self.late.append(f"{request.method} {request.url} at {world.kernel.time():.1f}")
            return perform(request, actor)

        half.perform = performed  # type: ignore[method-assign]

    def _see(self, step: Step) -> None:
        if step.which == LEASES and step.key[1] == names.LEADER_LEASE:
            self.holder = step.last["spec"].get("holderIdentity") or self.holder
            self.taken = self.taken or (bool(self.sleeper) and self.holder != self.sleeper)
        elif step.which == CONFIG_MAPS and MACHINE_LABEL in step.last["metadata"].get("labels", {}):
            self._keep(self.machines, step, step.last["data"].get("claimUID", ""))
            self.bought[step.last["data"].get("claimUID", "")] += step.old is None
        elif step.which == CLAIMS and step.last.get("status", {}).get("providerID"):
            self._keep(self.claims, step, step.last["metadata"]["uid"])
        if step.actor.role in {Role.GROWTH, Role.CLOUD}:
            self._judge(step)

    def _judge(self, step: Step) -> None:
        if self.sleeper == step.actor.process != self.holder:
            self.late.append(f"{step.verb} {step.which[1]} {step.key[1]} at {step.at:.1f}")
        self.count += step.direct
        if self.count == self._after and not self.sleeper and self._world is not None:
            self.sleeper = step.actor.process
            for replica in self._world.replicas:
                if replica.process is not None and replica.process.name == self.sleeper:
                    replica.sleep(self._seconds)

    @staticmethod
    def _keep(kept: dict[str, str], step: Step, uid: str) -> None:
        if step.new is None:
            kept.pop(step.key[1], None)
        else:
            kept[step.key[1]] = uid


def sleep(seed: int, *, after: int, seconds: float, provider: str = "kwok", sabotage: str = "") -> Slept:
    """One world in which the machine of the process that makes the n-th write is suspended; with 0 none is.

    `sabotage` plants a bug, without the faults that it brings along.
    """
    quiet()
    scenario = told_for(provider, small(seed))
    log = _Log(after, seconds)
    order = Order(seed=seed, scenario=scenario, hours=lasting(scenario.hours), faults="none")
    with applied(sabotage):
        outcome = run(order, attend=log.attend)
    return Slept(
        after=after,
        seconds=seconds,
        writes=log.count,
        taken=log.taken,
        late=tuple(log.late),
        doubled=sum(number - 1 for number in log.bought.values()),
        lost=len(set(log.machines.values()) ^ set(log.claims.values())),
        broken=tuple(f"{each.invariant}: {each.story}" for each in outcome.violations),
        digest=outcome.digest,
    )


def moments(writes: int, count: int) -> tuple[int, ...]:
    """So many of the world's writes, evenly from the first to the last."""
    return tuple(1 + each * (writes - 1) // max(count - 1, 1) for each in range(count))
