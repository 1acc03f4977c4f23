"""Makes everything go wrong that the rates ask for, at the seams of one world, and counts what could matter.

A strike could matter when a claim, a write or a drain was in flight; strikes at the world wait for such a moment.
"""

import asyncio
import collections
import contextlib
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.kinds import Json
from growth.kube.api import Api
from growth.kube.errors import KubeError, NotFound
from growth.operator.wiring import Role
from growth.providers.contract import CloudProvider
from growth.providers.kwok.faults import FAULTS_CONFIG_MAP
from growth.providers.kwok.provider import KwokProvider
from growth.sim.chaos.clouds import LyingCloud, repriced
from growth.sim.chaos.hands import STRIKES, Hands
from growth.sim.chaos.joins import Joins
from growth.sim.chaos.network import KINDS, network_faults
from growth.sim.chaos.rates import CREATE, FAULTS, HOUR, JOIN
from growth.sim.invariants.books import CONFIG_MAPS, NODES, Books, labels
from growth.sim.network import GOOD, Faults, NetworkApi
from growth.sim.ports import SimRandom
from growth.sim.seams import Actor, Seams, Step
from growth.sim.world.half import Half
from growth.sim.world.world import NAMESPACE_OF_GROWTH, World

HOUR_SECONDS: Final = 3600.0
_NO_NODE: Final[Json] = {"metadata": {}}
LOOK_SECONDS: Final = 1.0
# Where there is nobody to strike at, somebody may come soon.
VICTIM_SECONDS: Final = 5.0


class Injector(Seams):
    """One run's misfortunes. `counts` are of strikes that could matter, `strikes` of all; `log` is what struck, and when.

    `denied` is when the cloud said of a machine that there is none, by provider ID.
    """

    def __init__(self, rates: Mapping[str, float], *, seed: int, books: Callable[[], Books]) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.strikes: collections.Counter[str] = collections.Counter()
        self.log: list[tuple[float, str]] = []
        self.by_hand: dict[str, str] = {}
        self.denied: dict[str, list[float]] = {}
        self._rates = rates
        self._books = books
        self._random = SimRandom(seed, "chaos")
        self._streams: dict[str, SimRandom] = {}
        self._network = network_faults(rates)
        self._world: World | None = None
        self._over = False
        self._stuck: dict[str, None] = {}
        self._stock: dict[str, None] = {}
        self._absent: dict[str, float] = {}  # claims whose machines do not join, and until when
        self._prices: dict[str, float] = {}
        self._told: dict[str, str] = {}
        self._mending: dict[int, Callable[[], Awaitable[object]]] = {}
        self._mended = 0
        self._tasks: list[asyncio.Task[object]] = []
        self._joins = Joins(strike=self._strikes_now, random=self._random.stream("joins"), later=self._later)

    # Counting.

    def _count(self, kind: str, *, matters: bool, what: str = "") -> None:
        self.strikes[kind] += 1
        if matters:
            self.counts[kind] += 1
        if self._world is not None and matters and not kind.startswith("watch-"):
            self.log.append((self._world.kernel.time(), f"{kind}{' ' + what if what else ''}"))

    def _strikes_now(self, kind: str) -> bool:
        """Draws for one opportunity. A purchase, a deletion or a machine that joins is in flight by itself."""
        struck = self._stream(kind).chance(self._rates.get(kind, 0.0)) and not self._over
        if struck:
            self._count(kind, matters=FAULTS[kind].unit in {CREATE, JOIN} or self._books().busy())
        return struck

    def _stream(self, kind: str) -> SimRandom:
        found = self._streams.get(kind)
        if found is None:
            found = self._streams[kind] = self._random.stream(kind)
        return found

    # The seams.

    def network(self, actor: Actor) -> Faults:
        del actor
        return GOOD if self._over else self._network

    def connection(self, api: Api, actor: Actor) -> Api:
        if isinstance(api, NetworkApi) and actor.role is not Role.ELECTOR:

            def struck(what: str, write: bool) -> None:  # noqa: FBT001 - the network's callback
                kind = KINDS.get(what)
                if kind is not None:
                    self._count(kind, matters=write or self._books().busy())

            api.struck = struck
        return api

    def provider(self, provider: CloudProvider, actor: Actor) -> CloudProvider:
        del actor
        world = self._world
        assert world is not None
        if isinstance(provider, KwokProvider):
            provider.faults = world.cloud.faults
            provider.sell(repriced(world.settings.catalogue, self._prices))
        return LyingCloud(
            provider,
            strike=self._strikes_now,
            random=self._random.stream("lists"),
            now=world.kernel.time,
            denied=lambda provider_id: self.denied.setdefault(provider_id, []).append(world.kernel.time()),
        )

    def cloud(self, half: Half) -> None:
        half.disturb(self._rates)

        def spoiled(uid: str) -> None:
            self.by_hand.setdefault(uid, "its machine failed, or went to another")

        half.spoiled = spoiled

    def part(self, api: Api, actor: Actor) -> Api:
        return self._joins.wrap(api) if actor.name == "cloud" else api

    # The world.

    def attach(self, world: World) -> None:
        self._world = world
        world.witness.listeners.append(self._see)

    def _see(self, step: Step) -> None:
        """A machine's fate is drawn when it is bought and ends with it; names of Nodes that are gone may come again."""
        if step.which == CONFIG_MAPS and step.new is None:
            world = self._world
            if self._absent.pop(step.key[1].removeprefix("kwok-"), None) is not None and world is not None:
                self._go(self._tell_cloud(world), "cloud faults")  # the next of its name is another machine
        elif step.which == CONFIG_MAPS and step.old is None and step.new is not None and step.actor.is_growth:
            claim = step.key[1].removeprefix("kwok-")
            slow = self._stream("slow-join").uniform(60.0, 600.0)
            if self._strikes_now("never-join"):
                self._absent[claim] = float("inf")
            elif self._strikes_now("slow-join"):
                self._absent[claim] = step.at + slow
        elif step.which == NODES and step.new is not None:
            now, before = (names.REGISTERED_LABEL in labels(each or _NO_NODE) for each in (step.new, step.old))
            if now and not before and self._world is not None:
                self._joins.otherwise.registered(self._world.admin, step.key[1])
        elif step.which == NODES and step.new is None and step.key[1] not in self._joins.names:
            self._joins.names.append(step.key[1])

    async def _tell_cloud(self, world: World) -> None:
        """As people do: in the ConfigMap of the cloud's faults."""
        now = world.kernel.time()
        data = {
            "noCapacity": "\n".join(self._stock),
            "neverRegister": "\n".join(claim for claim, until in self._absent.items() if until > now),
            "stuckDelete": "\n".join(self._stuck),
        }
        if data == self._told:
            return
        self._told = data
        body: Json = {"metadata": {"name": FAULTS_CONFIG_MAP}, "data": data}
        try:
            await world.admin.patch(CONFIG_MAP, FAULTS_CONFIG_MAP, body, namespace=NAMESPACE_OF_GROWTH)
        except NotFound:
            await world.admin.create(CONFIG_MAP, body, namespace=NAMESPACE_OF_GROWTH)

    async def disturb(self, world: World) -> None:
        """Until `world.over`; then everything is mended that would not mend by itself."""
        hands = Hands(
            world,
            self._books(),
            self._random.stream("hands"),
            later=self._later,
            by_hand=self.by_hand,
            stuck=self._stuck,
            stock=self._stock,
            prices=self._prices,
        )
        self._go(self._joins.keep(world.admin), "cloud controller manager")
        self._go(self._keep_cloud(world), "cloud faults")
        for kind, rate in self._rates.items():
            if FAULTS[kind].unit == HOUR and rate > 0:
                self._go(self._strike_often(kind, rate, hands), f"fault {kind}")
        await world.over.wait()
        await self._mend(world)

    async def _keep_cloud(self, world: World) -> None:
        while not world.over.is_set():
            await self._tell_cloud(world)
            await asyncio.sleep(LOOK_SECONDS)

    async def _strike_often(self, kind: str, rate: float, hands: Hands) -> None:
        random, world = self._stream(kind), hands.world
        now = world.kernel.time
        due = random.exponential(HOUR_SECONDS / rate)
        while not world.over.is_set():
            if now() < due or not self._books().busy():
                await asyncio.sleep(max(LOOK_SECONDS, due - now()))
                continue
            due = now() + VICTIM_SECONDS
            with contextlib.suppress(KubeError):  # its victim has gone
                if await STRIKES[kind](hands, random):
                    self._count(kind, matters=True)
                    due = now() + random.exponential(HOUR_SECONDS / rate)

    def _later(self, seconds: float, act: Callable[[], Awaitable[object]]) -> None:
        self._mended += 1
        number = self._mended
        self._mending[number] = act

        async def wait() -> None:
            await asyncio.sleep(seconds)
            mend = self._mending.pop(number, None)
            if mend is not None:
                await mend()

        self._go(wait(), "later")

    def _go(self, coroutine: "collections.abc.Coroutine[object, object, object]", name: str) -> None:
        world = self._world
        assert world is not None
        task: asyncio.Task[object] = world.kernel.create_task(coroutine, name=name, context=contextvars.Context())
        self._tasks.append(task)

    async def _mend(self, world: World) -> None:
        self._over = True
        self._network = GOOD
        if world.vendor is not None:
            world.vendor.disturb({})
        self._stuck.clear()
        self._stock.clear()
        self._absent = {claim: until for claim, until in self._absent.items() if until == float("inf")}
        await self._tell_cloud(world)
        for mend in tuple(self._mending.values()):
            await mend()
        self._mending.clear()
        for replica in world.replicas:
            for network in replica.networks.values():
                network.faults = GOOD
                network.heal()
                network.cut_watches()
