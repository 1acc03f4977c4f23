"""Holds a world to its promises: every change at once, everything anew every fifty steps, and the rest at the end."""

import collections
import contextvars
import hashlib
import math
import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from growth.api.decisions import DECISION
from growth.api.events import EVENT
from growth.api.kinds import Json
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.operator.wiring import Role
from growth.sim.invariants import liveness, safety
from growth.sim.invariants.books import Books
from growth.sim.invariants.calls import Calls
from growth.sim.invariants.counts import Limits, Money
from growth.sim.invariants.invariant import Case, Complaint, Invariant, Quiet, Violation
from growth.sim.invariants.leading import Led
from growth.sim.invariants.liveness import AtTheEnd, Ending
from growth.sim.invariants.purchases import InVain
from growth.sim.ledger import NO_CAPS, Caps
from growth.sim.seams import Step
from growth.sim.world.world import HETZNER, LINODE, NAMESPACE_OF_GROWTH, World

STEPS_BETWEEN_DERIVATIONS: Final = 50
# What is broken where a check itself fails.
DEFECT: Final = "the checks themselves"
# One broken promise is enough; of the same one no more than this are kept.
MOST_OF_ONE: Final = 3

ALL: Final[Mapping[str, str]] = {
    each.name: each.promise for each in (*safety.SAFETY, Led, Limits, Money, Calls, *liveness.LIVENESS)
}
"""Every invariant by name, with its promise."""


class DerivationFailed(AssertionError):
    """The books that were kept change by change are not those of the server: a defect of the checks."""


class Auditor:
    """`attach` before the world moves, `calm` when load and faults end, `end` at the end; `violations` at any time.

    `by_hand` is where those who interfere write down the UIDs of claims whose machines they took.
    """

    def __init__(self, *, caps: Caps = NO_CAPS) -> None:
        self.violations: list[Violation] = []
        self.derivations = 0
        self.told: list[Callable[[Violation], None]] = []
        self._caps = caps
        self._world: World | None = None
        self._case: Case | None = None
        self._invariants: tuple[Invariant, ...] = ()
        self._stepping: tuple[Invariant, ...] = ()  # those that judge single changes
        self._counts: collections.Counter[str] = collections.Counter()
        self._steps = 0
        self._deriving = False

    @property
    def case(self) -> Case:
        assert self._case is not None, "attach() first"
        return self._case

    @property
    def world(self) -> World:
        assert self._world is not None, "attach() first"
        return self._world

    def attach(self, world: World) -> None:
        """Before anything happens in the world."""
        self._world = world
        home = world.server.get(world.server.resource("", "v1", "namespaces"), "kube-system")
        self._case = Case(books=Books(hashlib.sha256(home.object["metadata"]["uid"].encode()).hexdigest()[:10]))
        if world.settings.growth.process.provider == HETZNER:
            self._case.class_group = HETZNER_NODE_CLASS.group
        elif world.settings.growth.process.provider == LINODE:
            self._case.class_group = LINODE_NODE_CLASS.group
        settings = world.settings.growth.controllers
        patience = min(settings.registration_ttl, settings.initialization_ttl)
        own: dict[type, Callable[[], Invariant]] = {
            safety.Unknown: lambda: safety.Unknown(patience=patience),
            InVain: lambda: InVain(rest=settings.vain_back_off),
        }
        self._invariants = (
            *(own.get(each, each)() for each in safety.SAFETY),
            Led(world.settings.growth.lease.renew_deadline_seconds),
            Limits(self._caps),
            Money(self._caps),
            Calls(world),
            *(each() for each in liveness.LIVENESS),
        )
        self._stepping = tuple(each for each in self._invariants if type(each).step is not Quiet.step)
        world.witness.listeners.append(self._see)

    def calm(self) -> None:
        """From now on nothing disturbs, and the load stays."""
        self.case.calm_since = self.world.kernel.time()

    def _see(self, step: Step) -> None:
        """Called inside the request that makes the change: a defect here must not look like an answer of the server."""
        try:
            self._judge(step)
        except Exception:  # noqa: BLE001 - the code under test would swallow it
            self.violations.append(Violation(DEFECT, step.at, traceback.format_exc()))

    def _judge(self, step: Step) -> None:
        case, world = self.case, self.world
        case.see(step)
        if step.actor.is_growth:
            self._look_at_sender(step)
        for invariant in self._stepping:
            self._say(invariant, invariant.step(step, case))
        self._steps += 1
        if self._steps % STEPS_BETWEEN_DERIVATIONS == 0 and not self._deriving:
            # Not now: the request that makes this change may make more of them.
            self._deriving = True
            contextvars.Context().run(world.kernel.call_soon, self._derive_soon)

    def _look_at_sender(self, step: Step) -> None:
        """When the request left, whether its process stood still before, what it had heard and how late it believed it to be.

        A dead process's requests are late.
        """
        case, role = self.case, step.actor.role
        case.sent = float("-inf")
        case.thawed = case.froze = float("-inf")
        case.boot = -math.inf
        case.skew = 0.0
        for replica in self.world.replicas:
            own = replica.process
            if own is None or own.name != step.actor.process:
                continue
            case.thawed, case.froze = own.thawed, own.froze
            case.heard[own.name] = (
                set(replica.networks[Role.GROWTH].heard) if Role.GROWTH in replica.networks else set()
            )
            network = replica.networks.get(role) if role is not None else None
            if network is not None and network.serving is not None:
                case.sent = network.serving
            if math.isfinite(case.sent):
                case.boot = replica.clock.boot_time() - (step.at - case.sent)
            case.skew = replica.clock.ahead(case.sent if math.isfinite(case.sent) else step.at)

    def _derive_soon(self) -> None:
        self._deriving = False
        self.derive()

    def derive(self) -> None:
        """Everything anew from the server's objects, compared with what was kept, and judged as a whole."""
        case, world = self.case, self.world
        case.now = world.kernel.time()
        self.derivations += 1
        fresh = Books.of(world.server, cluster=case.books.cluster)
        different = case.books.differences(fresh)
        if different:
            raise DerivationFailed("; ".join(different))
        for invariant in self._invariants:
            self._say(invariant, invariant.state(case))

    @property
    def rest_at(self) -> float:
        """When the end can be judged, if nothing more happens."""
        return max(each.rest_at for each in self._invariants if isinstance(each, AtTheEnd))

    async def end(self, world: World) -> list[Violation]:
        """The last derivation, and what must be true in the end."""
        self.derive()
        decisions = sorted((await world.admin.list(DECISION.raw)).items, key=_when)
        newest: dict[str, Json] = {each["spec"]["controller"]: each for each in decisions}
        events: list[Any] = []
        for namespace in ("default", NAMESPACE_OF_GROWTH, "kube-system"):
            events += (await world.admin.list(EVENT.raw, namespace=namespace)).items
        ending = Ending(events=events, decisions=tuple(newest.values()), catalogue=world.settings.catalogue)
        for invariant in self._invariants:
            if isinstance(invariant, AtTheEnd):
                self._say(invariant, invariant.end(self.case, ending))
        return self.violations

    def _say(self, invariant: Invariant, complaints: Iterator[Complaint]) -> None:
        for each in complaints:
            self._counts[invariant.name] += 1
            if self._counts[invariant.name] <= MOST_OF_ONE:
                violation = Violation(invariant.name, self.case.now, each.said, each.about)
                self.violations.append(violation)
                for listener in self.told:
                    listener(violation)


def _when(decision: Json) -> str:
    return str(decision["spec"]["at"])
