"""The event recorder: what people are told, how often, and what happens when nobody listens."""

import asyncio

from growth.api.events import EVENT, WARNING, Event
from growth.api.meta import ObjectReference
from growth.kube.events import Recorder, RecorderSettings
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom

POOL = ObjectReference(api_version="karpenter.sh/v1", kind="NodePool", name="default", uid="u1")
POD = ObjectReference(api_version="v1", kind="Pod", namespace="kube-system", name="web", uid="u2")


class World:
    """A server, and a recorder that is running unless `silent`."""

    def __init__(
        self,
        kernel: Kernel,
        *,
        settings: RecorderSettings | None = None,
        faults: Faults | None = None,
        silent: bool = False,
    ) -> None:
        random = SimRandom(kernel.seed, "test")
        self.clock = SimClock(kernel)
        self.admin = MemoryApi(MemoryServer(self.clock, random.stream("server")))
        self.network = NetworkApi(self.admin, kernel=kernel, random=random.stream("wire"), faults=faults or Faults())
        self.recorder = Recorder(
            self.network, clock=self.clock, random=random.stream("names"), settings=settings or RecorderSettings()
        )
        self.task = None if silent else kernel.create_task(self.recorder.run(), name="recorder")

    async def told(self) -> list[Event]:
        return sorted((await self.admin.list(EVENT)).items, key=lambda event: event.metadata.name)


def test_an_event_stands_beside_its_object() -> None:
    """Object, reason, message, type and reporter are those given; cluster-scoped objects' events are in `default`."""

    async def main(kernel: Kernel) -> tuple[Event, Event]:
        world = World(kernel)
        world.recorder.event(POOL, "DisruptionBlocked", "node limit", type=WARNING)
        world.recorder.event(POD, "Nominated", "on claim default-x")
        await asyncio.sleep(5)
        pool, pod = await world.told()
        return pool, pod

    pool, pod = sim.run(main, seed=1).value
    assert (pool.metadata.namespace, pod.metadata.namespace) == ("default", "kube-system")
    assert (pool.type, pool.reason, pool.message, pool.count) == ("Warning", "DisruptionBlocked", "node limit", 1)
    assert pool.involved_object.uid == "u1"
    assert pod.reporting_component == "growth"
    assert pod.first_timestamp == pod.last_timestamp


def test_repeats_are_counted_and_not_written_again() -> None:
    """A hundred equal events within two minutes are one write then and one count at the end."""

    async def main(kernel: Kernel) -> tuple[int, int, int, float]:
        world = World(kernel)
        for _ in range(100):
            world.recorder.event(POD, "FailedScheduling", "no room")
            await asyncio.sleep(1)
        await asyncio.sleep(60)
        (event,) = await world.told()
        assert event.first_timestamp is not None
        assert event.last_timestamp is not None
        statistics = world.recorder.statistics()
        lasted = (event.last_timestamp - event.first_timestamp).total_seconds()
        return event.count, statistics.created, statistics.counted, lasted

    assert sim.run(main, seed=1).value == (100, 1, 1, 99.0)


def test_after_its_time_an_event_is_told_anew() -> None:
    """What was not repeated is forgotten after the time of its reason, and then is a new Event."""

    async def main(kernel: Kernel) -> list[int]:
        world = World(kernel, settings=RecorderSettings(repeat_seconds_of={"Often": 10.0}))
        for reason in ("Often", "Seldom"):
            world.recorder.event(POD, reason, "x")
        await asyncio.sleep(30)
        for reason in ("Often", "Seldom"):
            world.recorder.event(POD, reason, "x")
        await asyncio.sleep(300)
        events = await world.told()
        return [sum(event.reason == reason for event in events) for reason in ("Often", "Seldom")]

    assert sim.run(main, seed=1).value == [2, 1]


def test_an_object_that_is_talked_about_too_much_is_cut_short() -> None:
    """Different messages about one object pass up to the burst; another object is not harmed."""

    async def main(kernel: Kernel) -> tuple[int, int, int]:
        world = World(kernel, settings=RecorderSettings(burst_per_object=5, refill_seconds=30))
        for number in range(50):
            world.recorder.event(POD, "Noise", f"message {number}")
        world.recorder.event(POOL, "Calm", "heard")
        await asyncio.sleep(65)
        world.recorder.event(POD, "Noise", "after a while")
        await asyncio.sleep(5)
        events = await world.told()
        by_reason = [sum(event.reason == reason for event in events) for reason in ("Noise", "Calm")]
        return by_reason[0], by_reason[1], world.recorder.statistics().limited

    assert sim.run(main, seed=1).value == (6, 1, 45)


def test_a_full_queue_drops_and_counts() -> None:
    """While nothing is written the queue is bounded and the caller is never held up."""

    async def main(kernel: Kernel) -> tuple[int, float]:
        world = World(kernel, settings=RecorderSettings(queue_length=10), silent=True)
        for number in range(25):
            world.recorder.event(renamed(POD, name=f"pod-{number}"), "Waiting", "x")
        return world.recorder.statistics().dropped, kernel.time()

    assert sim.run(main, seed=1).value == (15, 0.0)


def renamed(reference: ObjectReference, *, name: str) -> ObjectReference:
    return ObjectReference(
        api_version=reference.api_version, kind=reference.kind, namespace=reference.namespace, name=name
    )


def test_trouble_of_the_server_is_waited_out_and_refusals_are_not() -> None:
    """A server error is tried again, a missing namespace is given up, and neither reaches the caller."""

    async def main(kernel: Kernel) -> tuple[int, int, bool]:
        world = World(kernel, faults=Faults(server_error=0.4, throttled=0.2))
        world.recorder.event(POD, "Patient", "x")
        world.recorder.event(renamed(POOL, name="y"), "Patient", "x")
        nowhere = ObjectReference(kind="Pod", namespace="no-such-namespace", name="z")
        world.recorder.event(nowhere, "Lost", "x")
        await asyncio.sleep(120)
        assert world.task is not None
        return len(await world.told()), world.recorder.statistics().failed, world.task.done()

    assert sim.run(main, seed=1).value == (2, 1, False)


def test_a_conflict_is_no_refusal() -> None:
    """A namespace's quota that others count against at that moment answers so: the same Event is taken a moment later."""

    async def main(kernel: Kernel) -> tuple[list[str], int]:
        world = World(kernel, faults=Faults(conflict=0.3))
        for number in range(8):
            world.recorder.event(renamed(POD, name=f"pod-{number}"), "Patient", "x")
        await asyncio.sleep(600)
        return [event.involved_object.name for event in await world.told()], world.recorder.statistics().failed

    assert sim.run(main, seed=1).value == ([f"pod-{number}" for number in range(8)], 0)


def test_an_event_whose_answer_is_lost_is_told_once() -> None:
    """Whether the request arrived or not: it is sent again under its own name, so that it is there and not there twice."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel, faults=Faults(lost_request=0.3, lost_answer=0.3))
        for number in range(8):
            world.recorder.event(renamed(POD, name=f"pod-{number}"), "Once", "x")
        await asyncio.sleep(1200)
        return [event.involved_object.name for event in await world.told()]

    assert sim.run(main, seed=1).value == [f"pod-{number}" for number in range(8)]


def test_an_event_that_the_server_forgot_is_made_again() -> None:
    """When the count of a vanished Event is due, a new Event with the whole count takes its place."""

    async def main(kernel: Kernel) -> list[int]:
        world = World(kernel)
        world.recorder.event(POD, "Long", "x")
        await asyncio.sleep(5)
        (event,) = await world.told()
        await world.admin.delete(EVENT, event.metadata.name, namespace="kube-system")
        world.recorder.event(POD, "Long", "x")
        await asyncio.sleep(300)
        return [event.count for event in await world.told()]

    assert sim.run(main, seed=1).value == [2]


def test_no_secret_is_told() -> None:
    """What a message should not have held is cut out, whoever wrote it, also where the cut would fall into it."""

    async def main(kernel: Kernel) -> list[str]:
        world = World(kernel)
        world.recorder.event(POOL, "Failed", "refused: Authorization: Bearer abcdef0123456789 was wrong")
        world.recorder.event(POD, "Failed", "x" * 1000 + " password=abcdef0123456789abcdef0123456789")
        await asyncio.sleep(5)
        return [each.message for each in await world.told()]

    told = sim.run(main, seed=1).value
    assert len(told) == 2
    assert not any("abc" in message for message in told)


def test_long_messages_are_cut_between_characters() -> None:
    """A message is at most 1024 bytes, still valid text, and shows that it was cut."""

    async def main(kernel: Kernel) -> str:
        world = World(kernel)
        world.recorder.event(POD, "Long", "é" * 2000)
        await asyncio.sleep(5)
        return (await world.told())[0].message

    message = sim.run(main, seed=1).value
    assert len(message.encode()) <= 1024
    assert message.endswith("é…")


def test_an_idle_recorder_is_quiet() -> None:
    """Without news the recorder writes nothing and wakes for nothing."""

    async def main(kernel: Kernel) -> int:
        world = World(kernel)
        world.recorder.event(POD, "Once", "x")
        await asyncio.sleep(86_400)
        return world.network.statistics().calls

    done = sim.run(main, seed=1)
    assert done.value == 1
    assert done.steps < 100
