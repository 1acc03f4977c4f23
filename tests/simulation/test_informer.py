"""The informer on the kernel: over bad networks, lost history, silent streams and for a whole day."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.crds import all_crds
from growth.api.kinds import Json, Kind
from growth.api.meta import ObjectMeta
from growth.api.overlays import NODE_OVERLAY
from growth.kube.errors import TooManyRequests
from growth.kube.informer import Informer, Informers, Why, unchanged
from growth.kube.memory import MemoryApi, MemoryServer
from growth.kube.store import Change, Deleted, Entry, Key, Store
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.trials.following import Followed, follow

DEFINITION: Kind[Json] = Kind(
    "apiextensions.k8s.io",
    "v1",
    "CustomResourceDefinition",
    "customresourcedefinitions",
    namespaced=False,
    type=dict,
)


def overlays_definition() -> Json:
    return next(each for each in all_crds() if each["metadata"]["name"] == str(NODE_OVERLAY))


class World:
    """A server, a network and an informer of ConfigMaps that is not yet running."""

    def __init__(self, kernel: Kernel, *, faults: Faults | None = None) -> None:
        random = SimRandom(kernel.seed, "test")
        self.clock = SimClock(kernel)
        self.server = MemoryServer(self.clock, random.stream("server"))
        self.admin = MemoryApi(self.server)
        self.network = NetworkApi(self.admin, kernel=kernel, random=random.stream("wire"), faults=faults or Faults())
        self.informers = Informers(self.network, clock=self.clock, random=random.stream("jitter"))
        self.informer = self.informers.watch(CONFIG_MAP, indexes={"name": lambda item: [item.metadata.name]})
        self.changes: list[Change[ConfigMap]] = []
        self.informer.subscribe(self.changes.append)

    async def put(self, name: str) -> None:
        await self.admin.create(CONFIG_MAP, {"metadata": {"name": name}}, namespace="default")

    async def drop(self, name: str) -> None:
        await self.admin.delete(CONFIG_MAP, name, namespace="default")


def kinds(changes: Sequence[Change[ConfigMap]]) -> list[str]:
    return [f"{type(change).__name__} {change.key[1]}" for change in changes]


@pytest.mark.parametrize("seed", range(20))
def test_the_store_follows_the_server_through_every_fault(seed: int) -> None:
    """2,000 changes, 100 cuts and 20 compactions later the store equals a fresh list and no deletion was lost."""
    followed = follow(seed, shuffle=seed % 3 == 0)
    assert followed.statistics.gone > 0
    assert followed.statistics.deletions_by_relist > 0
    assert followed.statistics.watches >= 100


def test_the_trial_notices_a_lost_deletion(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that forgets deletions when it lists again is found out within a few seeds."""
    honest: Callable[[Store[Any], Mapping[Key, Entry[Any]]], Sequence[Change[Any]]] = Store.replace

    def forgetful(store: Store[Any], fresh: Mapping[Key, Entry[Any]]) -> Sequence[Change[Any]]:
        return [change for change in honest(store, fresh) if not isinstance(change, Deleted)]

    monkeypatch.setattr(Store, "replace", forgetful)
    with pytest.raises(AssertionError, match=r"added twice|never told"):
        follow(3)


def test_different_seeds_differ() -> None:
    """The digest depends on what happens: two seeds have two."""
    first, second = (follow(seed, changes=50, cuts=2, compactions=1) for seed in (1, 2))
    assert isinstance(first, Followed)
    assert first.digest != second.digest


def test_what_was_missed_is_told_as_a_deletion() -> None:
    """An object deleted while history was lost is delivered as deleted, with the last state that was seen."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        kernel.create_task(world.informers.run())
        await world.put("kept")
        await world.put("dropped")
        await world.informers.wait_synced()
        await asyncio.sleep(1)
        world.network.partition()
        await world.drop("dropped")
        world.server.compact()
        world.network.cut_watches()
        world.network.heal()
        await asyncio.sleep(60)
        assert world.informer.statistics().gone == 1
        last = world.changes[-1]
        assert isinstance(last, Deleted)
        assert not last.final
        return kinds(world.changes)

    assert sim.run(main, seed=1).value[-1] == "Deleted dropped"


def test_a_silent_stream_is_noticed() -> None:
    """A watch that delivers neither events nor bookmarks is given up after the stall time, and nothing is missed."""

    async def main(kernel: Kernel) -> int:
        world = World(kernel, faults=Faults(watch_stall_seconds=1e-9))
        kernel.create_task(world.informers.run())
        await world.informers.wait_synced()
        await world.put("late")
        await asyncio.sleep(100)
        assert world.informer.store.get("late", "default") is None
        world.network.faults = Faults()
        await asyncio.sleep(100)
        assert world.informer.store.get("late", "default") is not None
        return world.informer.statistics().stalls

    assert sim.run(main, seed=1).value == 1


def test_what_is_not_synced_is_said_with_its_reason() -> None:
    """Before the first list, after lost history and during a long break the cache says what it lacks, and heals."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        said = [state.why for state in world.informers.unsynced()]
        world.network.partition()
        kernel.create_task(world.informers.run())
        await asyncio.sleep(10)
        state = world.informer.unsynced()
        assert state is not None
        assert state.failures > 0
        assert "Unreachable" in state.error
        world.network.heal()
        await world.informers.wait_synced()
        world.network.partition()
        world.network.cut_watches()
        await asyncio.sleep(20)
        assert world.informers.synced, "a short break is no reason"
        await asyncio.sleep(60)
        said += [state.why for state in world.informers.unsynced()]
        await world.put("unseen")
        world.server.compact()
        world.network.heal()
        while not world.informer.statistics().gone:  # noqa: ASYNC110 - virtual time
            await asyncio.sleep(0.1)
        said += [state.why for state in world.informers.unsynced()]
        await world.informers.wait_synced()
        assert world.informer.store.get("unseen", "default") is not None
        return [str(why) for why in said]

    assert sim.run(main, seed=1).value == [Why.NEVER_LISTED, Why.DISCONNECTED, Why.HISTORY_GONE]


def test_a_late_subscriber_hears_of_everything_that_is_there() -> None:
    """A subscriber that comes after the sync is told of all objects first, then of every change once."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        kernel.create_task(world.informers.run())
        await world.put("first")
        await world.informers.wait_synced()
        await asyncio.sleep(1)
        late: list[Change[ConfigMap]] = []
        world.informer.subscribe(late.append)
        await world.put("second")
        await asyncio.sleep(1)
        assert [item.metadata.name for item in world.informer.store.find("name", "second")] == ["second"]
        return kinds(late)

    assert sim.run(main, seed=1).value == ["Added first", "Added second"]


def test_pages_that_lose_their_history_are_asked_for_in_one() -> None:
    """A 410 between two pages leads to one whole list, not to a half-filled store."""

    async def main(kernel: Kernel) -> tuple[int, int]:
        world = World(kernel, faults=Faults(gone=1.0))
        for number in range(600):
            await world.put(f"config-{number:03}")
        informer = Informer(world.network, CONFIG_MAP, clock=world.clock, random=SimRandom(1, "x"), transform=unchanged)
        kernel.create_task(informer.run())
        await informer.wait_synced()
        return len(informer.store), informer.statistics().gone

    assert sim.run(main, seed=1).value == (600, 1)


def test_a_subscriber_that_fails_ends_the_informer() -> None:
    """An exception of a subscriber is not swallowed: `run` raises it."""

    async def main(kernel: Kernel) -> None:
        world = World(kernel)

        def broken(_: Change[ConfigMap]) -> None:
            raise LookupError("a bug")

        world.informer.subscribe(broken)
        await world.put("any")
        await world.informer.run()

    with pytest.raises(LookupError, match="a bug"):
        sim.run(main, seed=1)


def test_a_network_that_cuts_idle_watches_does_not_make_the_informer_shy() -> None:
    """Watches that are cut every half minute without news are taken up again soon, the hundredth as the first."""

    async def main(kernel: Kernel) -> int:
        world = World(kernel)
        kernel.create_task(world.informers.run())
        for _ in range(100):
            await world.network.watched()
            await asyncio.sleep(30)
            world.network.cut_watches()
        await asyncio.sleep(3)
        assert world.informers.synced
        assert kernel.time() < 100 * (30 + 2) + 3
        return world.informer.statistics().relists

    assert sim.run(main, seed=1).value == 0


def test_an_idle_day_costs_few_calls() -> None:
    """Over an idle virtual day the informer lists once and its watches live on bookmarks, ended only by their timeouts."""

    async def main(kernel: Kernel) -> tuple[int, int, int, int]:
        world = World(kernel)
        kernel.create_task(world.informers.run())
        await asyncio.sleep(86_400)
        statistics = world.informer.statistics()
        assert statistics.watches < 86_400 / 300 + 2
        return statistics.lists, statistics.failures, statistics.stalls, statistics.gone

    assert sim.run(main, seed=1).value == (1, 0, 0, 0)


def test_a_bookmark_asks_nothing_of_the_kind() -> None:
    """A kind whose struct requires a field is followed through bookmarks, whose objects have none."""

    class Strict(msgspec.Struct, frozen=True):
        metadata: ObjectMeta
        data: dict[str, str]

    async def main(kernel: Kernel) -> int:
        world = World(kernel)
        kind: Kind[Strict] = Kind("", "v1", "ConfigMap", "configmaps", namespaced=True, type=Strict)
        informer = world.informers.watch(kind)
        kernel.create_task(world.informers.run())
        await asyncio.sleep(600)
        return informer.statistics().bookmarks

    assert sim.run(main, seed=1).value > 5


def test_a_kind_that_is_not_installed_counts_as_empty_until_it_is() -> None:
    """Synced without it; its objects are found within a minute of the definition; without it again they are gone."""

    async def main(kernel: Kernel) -> tuple[list[str], list[str]]:
        world = World(kernel)
        overlays = world.informers.watch(NODE_OVERLAY, optional=True)
        changes: list[Change[Any]] = []
        overlays.subscribe(changes.append)
        running = kernel.create_task(world.informers.run())
        async with asyncio.timeout(5):
            await world.informers.wait_synced()
        seen = [f"missing {overlays.missing}, {len(overlays.store)} objects"]
        await world.admin.create(DEFINITION, overlays_definition())
        body = {"metadata": {"name": "cheap"}, "spec": {"requirements": [], "price": "1"}}
        await world.admin.create(NODE_OVERLAY, body)
        await asyncio.sleep(60)
        seen.append(f"missing {overlays.missing}, {len(overlays.store)} objects")
        await world.admin.delete(DEFINITION, str(NODE_OVERLAY))
        await asyncio.sleep(600)
        seen.append(f"missing {overlays.missing}, {len(overlays.store)} objects")
        running.cancel()
        return seen, [type(change).__name__ for change in changes]

    seen, changes = sim.run(main, seed=1).value
    assert seen == ["missing True, 0 objects", "missing False, 1 objects", "missing True, 0 objects"]
    assert changes == ["Added", "Deleted"]


def test_a_server_that_asks_for_an_hour_is_asked_again_sooner() -> None:
    """A cache must not be blind for as long as some proxy likes."""

    class Busy(MemoryApi):
        """Refuses the first list."""

        refused = 0

        async def list(self, kind: Kind[Any], **how: Any) -> Any:
            if not self.refused:
                self.refused += 1
                raise TooManyRequests("come back tomorrow", retry_after_seconds=3600)
            return await super().list(kind, **how)

    async def main(kernel: Kernel) -> bool:
        clock, random = SimClock(kernel), SimRandom(kernel.seed, "test")
        api = Busy(MemoryServer(clock, random.stream("server")))
        informers = Informers(api, clock=clock, random=random)
        followed = informers.watch(CONFIG_MAP)
        kernel.create_task(informers.run(), name="informers")
        await asyncio.sleep(70)
        return followed.synced

    assert sim.run(main, seed=1).value
