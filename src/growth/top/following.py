"""A cluster as watches tell it, whatever it has installed: what `growth top` looks at."""

import asyncio
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from growth.api.decisions import DECISION, Decision
from growth.api.instance_types import Catalogue
from growth.api.linodeclasses import LINODE_NODE_CLASS
from growth.api.nodeclasses import HETZNER_NODE_CLASS, KWOK_NODE_CLASS
from growth.api.policy import PodDisruptionBudget
from growth.cluster.assemble import Picture
from growth.cluster.shapes import CachedPod
from growth.cluster.state import State
from growth.kube.api import Api
from growth.kube.informer import Informers
from growth.ports import Clock, Random

NODE_CLASSES: Final = (KWOK_NODE_CLASS, HETZNER_NODE_CLASS, LINODE_NODE_CLASS)

# What is sold there, judged by what the cluster has.
Choose = Callable[[State], Catalogue]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sight:
    """The cluster at one moment."""

    picture: Picture
    decisions: Sequence[Decision] = ()
    changes: int = 0
    problems: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Matter:
    """What is needed to think about it: `pods` are those on nodes, by the node's name."""

    picture: Picture
    pods: Mapping[str, Sequence[CachedPod]] = dataclasses.field(default_factory=dict)
    budgets: Sequence[PodDisruptionBudget] = ()


class Following:
    """`run` follows until cancelled; `see` says how things stand, once `wait_synced` has returned."""

    def __init__(self, api: Api, *, clock: Clock, random: Random, choose: Choose) -> None:
        self._clock = clock
        self._choose = choose
        self._sizes = (0, 0, 0)
        self.state = State(api, clock=clock, random=random, node_classes=NODE_CLASSES, any_cluster=True)
        self._own = Informers(api, clock=clock, random=random)
        self._decisions = self._own.watch(DECISION, optional=True)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.state.run(), name="state")
            group.create_task(self._own.run(), name="decisions")

    async def wait_synced(self) -> None:
        await self.state.wait_synced()
        await self._own.wait_synced()

    def problems(self) -> tuple[str, ...]:
        """What cannot be relied on now, in words."""
        return tuple(str(each) for each in (*self.state.unsynced(), *self._own.unsynced()))

    def see(self) -> Sight:
        """The cluster now. What it costs grows with what has changed since the last time."""
        self._know_prices()
        return Sight(
            picture=self.state.picture(self._clock.now()),
            decisions=tuple(self._decisions.store),
            changes=self.state.changes,
            problems=self.problems(),
        )

    def matter(self) -> Matter:
        """Everything that a thought needs, as values: it may be read on another thread."""
        self._know_prices()
        pods = self.state.pods.store
        picture = self.state.picture(self._clock.now())
        return Matter(
            picture=picture,
            pods={name: pods.find("node", name) for name in picture.counted},
            budgets=tuple(self.state.disruption_budgets.store),
        )

    def pods_on(self, node: str) -> tuple[CachedPod, ...]:
        return tuple(self.state.pods.store.find("node", node))

    def pod(self, key: str) -> CachedPod | None:
        """By namespace/name."""
        namespace, _, name = key.partition("/")
        return self.state.pods.store.get(name, namespace)

    def _know_prices(self) -> None:
        """Whose machines these are may show only with the first pool or node."""
        state = self.state
        sizes = (len(state.pools.store), len(state.growth_pools.store), len(state.nodes.store))
        if state.catalogue is None or sizes != self._sizes:
            self._sizes = sizes
            state.catalogue = self._choose(state)
