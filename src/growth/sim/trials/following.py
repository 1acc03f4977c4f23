"""An informer follows a server that changes all the time, over a network that breaks, while history is thrown away.

Promises that are checked: subscribers see one consistent story of each object (added once, changed from what they saw
last, deleted once), every object that they ever saw and that is gone was told as deleted, and once the faults stop the
store equals a fresh list.
"""

import asyncio
import dataclasses
from typing import Final

from growth.api.core import CONFIG_MAP, ConfigMap
from growth.kube.backoff import BackoffSettings
from growth.kube.informer import Informer, InformerSettings, InformerStatistics, unchanged
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.store import Added, Change, Changed, Deleted, Key
from growth.sim import kernel as sim
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.network import GOOD, Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.process import Process

BAD: Final = Faults(
    latency=(0.001, 0.3),
    gone=0.02,
    throttled=0.02,
    server_error=0.05,
    unreachable=0.05,
    lost_request=0.01,
    lost_answer=0.02,
    broken_answer=0.02,
    watch_delay=(0.0, 0.2),
    watch_cut_seconds=60.0,
    watch_stall_seconds=200.0,
    watch_gone=0.2,
)

# Quicker than in production, so that most cuts meet an open watch.
QUICK: Final = BackoffSettings(base_seconds=0.1, cap_seconds=2.0)

# After the faults the slowest way back is a stalled watch that must be noticed first, then one back-off and a list.
RECOVERY_SECONDS: Final = 600.0


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What one run was like."""

    seed: int
    digest: str
    seconds: float
    changes: int
    cuts: int
    compactions: int
    statistics: InformerStatistics


class Story:
    """A subscriber that believes nothing: it checks each change against what it was told before."""

    def __init__(self) -> None:
        self.objects: dict[Key, ConfigMap] = {}
        self.ever: dict[str, Key] = {}
        self.deleted: dict[str, None] = {}

    def hear(self, change: Change[ConfigMap]) -> None:
        match change:
            case Added(key, new):
                assert key not in self.objects, f"{key} was added twice"
                assert new.metadata.uid not in self.deleted, f"{key} came back from the dead"
                self.ever[new.metadata.uid] = key
                self.objects[key] = new
            case Changed(key, old, new):
                assert self.objects[key] == old, f"{key} changed from a state that nobody was told of"
                assert old.metadata.uid == new.metadata.uid, f"{key} changed its uid"
                self.objects[key] = new
            case Deleted(key, old, final):
                told = self.objects.pop(key)
                assert told.metadata.uid == old.metadata.uid, f"{key} was deleted as another object"
                assert final or told == old, f"{key} was deleted with a state that nobody was told of"
                assert old.metadata.uid not in self.deleted, f"{key} was deleted twice"
                self.deleted[old.metadata.uid] = None


def follow(
    seed: int, *, changes: int = 2000, cuts: int = 100, compactions: int = 20, shuffle: bool = False
) -> Followed:
    """One run: `changes` writes spread over some minutes, `cuts` broken watches, `compactions` losses of history."""

    async def main(kernel: Kernel) -> InformerStatistics:
        random = SimRandom(seed, "following")
        server = MemoryServer(SimClock(kernel), random.stream("server"))
        story = Story()
        running: asyncio.Future[tuple[NetworkApi, Informer[ConfigMap, ConfigMap]]] = kernel.create_future()

        async def body(own: Process) -> None:
            api = NetworkApi(MemoryApi(server), kernel=kernel, random=random.stream("network"), process=own, faults=BAD)
            informer = Informer(
                api,
                CONFIG_MAP,
                clock=SimClock(kernel),
                random=random.stream("jitter"),
                transform=unchanged,
                indexes={"kind": lambda item: [item.data.get("colour", "none")]},
                settings=InformerSettings(page_size=50, stall_seconds=30.0, backoff=QUICK),
            )
            informer.subscribe(story.hear)
            running.set_result((api, informer))
            await informer.run()

        follower = process.start(kernel, "follower", body)
        network, informer = await running

        async def stress() -> None:
            async with asyncio.TaskGroup() as group:
                group.create_task(_write(server, random.stream("writer"), changes))
                group.create_task(_break(server, network, random.stream("breaker"), cuts=cuts, compactions=compactions))
            network.faults = GOOD
            network.cut_watches()
            await _recovered(server, informer)

        ended = kernel.create_task(follower.wait())
        stressing = kernel.create_task(stress())
        await asyncio.wait((ended, stressing), return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            raise AssertionError(f"the follower ended: {ended.result()}") from ended.result().error
        await stressing
        informer.store.validate()
        assert informer.statistics().watches >= cuts, "not every cut met an open watch"
        alive = {item.metadata.uid for item in informer.store}
        lost = sorted(str(key) for uid, key in story.ever.items() if uid not in alive and uid not in story.deleted)
        assert not lost, f"deletions never told: {lost}"
        assert story.objects == dict(informer.store.items())
        return informer.statistics()

    done = sim.run(main, seed=seed, shuffle=shuffle, keep=20)
    return Followed(
        seed=seed,
        digest=done.digest,
        seconds=done.seconds,
        changes=changes,
        cuts=cuts,
        compactions=compactions,
        statistics=done.value,
    )


async def _write(server: MemoryServer, random: SimRandom, changes: int) -> None:
    """Creates, changes and deletes; a name is used again soon after its object's deletion."""
    api = MemoryApi(server, user="writer")
    names: dict[str, None] = {}
    for number in range(changes):
        await asyncio.sleep(random.exponential(0.2))
        what = random.uniform(0.0, 1.0)
        if not names or what < 0.4:
            name = f"config-{random.between(0, changes // 8)}"
            if name not in names:
                body = {"metadata": {"name": name}, "data": {"colour": random.choice(("red", "green"))}}
                await api.create(CONFIG_MAP, body, namespace="default")
                names[name] = None
                continue
        name = random.choice(tuple(names))
        if what < 0.75:
            colour = random.choice(("red", "green", "blue"))
            patch = {"data": {"colour": colour, "number": str(number)}}
            await api.patch(CONFIG_MAP, name, patch, namespace="default")
        else:
            await api.delete(CONFIG_MAP, name, namespace="default")
            del names[name]
            if random.chance(0.3):
                await api.create(CONFIG_MAP, {"metadata": {"name": name}}, namespace="default")
                names[name] = None


async def _break(server: MemoryServer, network: NetworkApi, random: SimRandom, *, cuts: int, compactions: int) -> None:
    """Cuts open watches, so many times; some of the cuts find their history gone when they come back."""
    compacting = {number * cuts // compactions for number in range(compactions)}
    for number in range(cuts):
        await asyncio.sleep(random.exponential(2.0))
        await network.watched()
        network.cut_watches()
        if number in compacting:
            # The watch comes back after a tenth of a second or more; by then there must be something that it missed.
            await asyncio.sleep(random.uniform(0.0, 0.2))
            server.compact()


async def _recovered(server: MemoryServer, informer: Informer[ConfigMap, ConfigMap]) -> None:
    """Returns when the store equals a fresh list, which must be soon."""
    fresh = MemoryApi(server)
    for _ in range(int(RECOVERY_SECONDS)):
        await asyncio.sleep(1.0)
        listed = {(item.metadata.namespace, item.metadata.name): item for item in (await fresh.list(CONFIG_MAP)).items}
        if listed == dict(informer.store.items()) and informer.synced:
            return
    raise AssertionError(f"the store still differs after {RECOVERY_SECONDS} s: {informer.unsynced()}")
