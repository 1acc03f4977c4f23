"""The demo in readable lines, for a pipe, a log or a person without a full screen.

12.4s  rush hour: web 6 → 23, api 3 → 8
13.6s  growth bought 2 × cx43 at €0.0513/h for 20 pods
"""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Final

from growth.api import names
from growth.api.decisions import DECISION, Decision
from growth.api.growthpools import NODE_REMOVAL_REQUEST, NodeRemovalRequest
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.nodes import NODE, Node
from growth.api.pods import POD, Pod
from growth.cluster.pricing import by_name, price_of, type_of
from growth.kube.api import Api
from growth.kube.informer import Informers
from growth.kube.store import Added, Change, Deleted
from growth.ports import Clock, Random
from growth.providers.catalogues import hours_of_month
from growth.top import sentences

ACTED: Final = "Acted"
BLOCKED: Final = "Blocked"
# News of pods come in bursts: one line for all of one moment.
PAUSE_SECONDS: Final = 0.5


class Telling:
    """`run` tells until cancelled; `say` adds a line of somebody else's."""

    def __init__(
        self,
        api: Api,
        *,
        catalogue: Catalogue,
        clock: Clock,
        random: Random,
        speed: float,
        write: Callable[[str], None],
    ) -> None:
        self._write = write
        self._clock = clock
        self._begun = clock.now()
        self._speed = speed
        self._currency = catalogue.currency
        self._types = by_name(catalogue.types)
        self._hours = hours_of_month(catalogue.cloud)
        self._informers = Informers(api, clock=clock, random=random)
        self._pods = self._informers.watch(POD)
        self._nodes = self._informers.watch(NODE)
        self._claims = self._informers.watch(NODE_CLAIM)
        self._ready: set[str] = set()
        self._last = ""
        self._informers.watch(DECISION).subscribe(self._on_decision)
        self._informers.watch(NODE_REMOVAL_REQUEST).subscribe(self._on_removal)
        self._nodes.subscribe(self._on_node)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informers.run())
            while True:
                await asyncio.sleep(PAUSE_SECONDS * self._speed)
                self._tell_sums()

    def say(self, text: str) -> None:
        passed: dt.timedelta = self._clock.now() - self._begun
        self._write(f"{passed.total_seconds():7.1f}s  {text}")

    def _on_decision(self, change: Change[Decision]) -> None:
        if not isinstance(change, Added):
            return
        spec = change.new.spec
        if spec.outcome == ACTED or (spec.outcome == BLOCKED and spec.unschedulable):
            self.say(f"growth {spec.summary}")
            for why in sentences.whys(spec):
                self.say(f"    {why}")
            for left in spec.unschedulable:
                reasons = "; ".join(f"{each.node_pool}: {each.message}" for each in left.reasons)
                self.say(f"    {left.pods} pods such as {left.example}: {reasons}")
            sum_ = sentences.arithmetic(spec, hours=self._hours)
            if sum_:
                self.say(f"    {sum_}")

    def _on_removal(self, change: Change[NodeRemovalRequest]) -> None:
        if isinstance(change, Added):
            spec = change.new.spec
            self.say(f"growth gives back {spec.node_name}: {spec.reason}")

    def _on_node(self, change: Change[Node]) -> None:
        name = change.key[1]
        if isinstance(change, Deleted):
            self._ready.discard(name)
            self.say(f"node {self._named(change.old)} is gone")
        elif name not in self._ready and _usable(change.new):
            self._ready.add(name)
            self.say(f"node {self._named(change.new)} is ready")

    def _named(self, node: Node) -> str:
        price = self._price(node)
        kind = node.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "")
        return f"{node.metadata.name} ({kind}{f', {sentences.hourly(price, self._currency)}' if price else ''})"

    def _price(self, thing: Node | NodeClaim) -> int | None:
        labels = thing.metadata.labels
        return price_of(labels, type_of(labels, self._types))

    def _tell_sums(self) -> None:
        """How things stand, where that has changed."""
        pods = [pod for pod in self._pods.store if pod.metadata.deletion_timestamp is None]
        running = sum(pod.status.phase == "Running" for pod in pods)
        cost = sum(self._price(claim) or 0 for claim in self._claims.store)
        bill = f"{sentences.hourly(cost, self._currency)}, {sentences.monthly(cost, self._currency, hours=self._hours)}"
        nodes = len(self._nodes.store)
        waiting = _counted(_waiting(pods), "pod")
        text = f"{waiting} pending, {running} running · {_counted(nodes, 'node')} · {bill}"
        if text != self._last:
            self._last = text
            self.say(text)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _waiting(pods: list[Pod]) -> int:
    return sum(pod.status.phase == "Pending" for pod in pods)


def _usable(node: Node) -> bool:
    return node.metadata.labels.get(names.INITIALIZED_LABEL) == "true"
