"""A machine that is suspended: its monotonic clock and its timers stand still, its boot clock and everybody else go on."""

import asyncio

import pytest

from growth.controllers.fresh import GOOD_SECONDS, Look
from growth.kube.errors import GateClosed
from growth.kube.lease import Elector, LeaseLost
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim import kernel as sim
from growth.sim import process
from growth.sim.kernel import Kernel
from growth.sim.network import NetworkApi
from growth.sim.ports import EPOCH, SimClock, SimRandom
from growth.sim.process import Process
from growth.sim.scenario.vendors import PROVIDERS
from growth.sim.trials.sleeping import moments, sleep


class Machine:
    """One candidate for the Lease on a machine of its own, which tries to pass the gate ten times a second."""

    def __init__(self, kernel: Kernel, server: MemoryServer, name: str) -> None:
        random = SimRandom(kernel.seed, name)
        self.clock = SimClock(kernel)
        self.elector: Elector | None = None
        self.passed: list[float] = []
        self.refused: list[float] = []

        async def body(own: Process) -> None:
            network = NetworkApi(MemoryApi(server), kernel=kernel, random=random, process=own, name=name)
            self.elector = elector = Elector(
                network, clock=self.clock, random=random, name="growth", namespace="kube-system", identity=name
            )

            async def lead() -> None:
                while True:
                    try:
                        elector.gate.check()
                        self.passed.append(kernel.time())
                    except GateClosed:
                        self.refused.append(kernel.time())
                    await asyncio.sleep(0.1)

            await elector.run(lead)

        self.process = process.start(kernel, name, body)

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)
        self.process.sleep(seconds)


def two(kernel: Kernel) -> tuple[Machine, Machine]:
    server = MemoryServer(SimClock(kernel), SimRandom(kernel.seed, "server"))
    return Machine(kernel, server, "a"), Machine(kernel, server, "b")


def test_clocks_of_a_suspended_machine() -> None:
    """The monotonic clock goes on where it was, the boot clock and the wall clock have counted the time."""

    async def main(kernel: Kernel) -> list[tuple[float, float, float]]:
        clock, seen = SimClock(kernel), []

        def look() -> None:
            seen.append((clock.monotonic(), clock.boot_time(), (clock.now() - EPOCH).total_seconds()))

        await asyncio.sleep(5.0)
        clock.sleep(20.0)
        await asyncio.sleep(10.0)
        look()
        await asyncio.sleep(12.0)
        look()
        clock.sleep(3.0)
        await asyncio.sleep(4.0)
        look()
        return seen

    assert sim.run(main, seed=1).value == [(5.0, 15.0, 15.0), (7.0, 27.0, 27.0), (8.0, 31.0, 31.0)]


def test_a_paused_machine_stops_all_its_clocks_but_the_wall_clock() -> None:
    """What a hypervisor pauses cannot count the time by itself: neither clock moves."""

    async def main(kernel: Kernel) -> tuple[float, float, float]:
        clock = SimClock(kernel)
        await asyncio.sleep(5.0)
        clock.stop()
        await asyncio.sleep(20.0)
        clock.go()
        await asyncio.sleep(1.0)
        return clock.monotonic(), clock.boot_time(), (clock.now() - EPOCH).total_seconds()

    assert sim.run(main, seed=1).value == (6.0, 6.0, 26.0)


def test_timers_of_a_suspended_machine_stand_still_and_those_of_a_stopped_process_do_not() -> None:
    """Half way through a wait of 10 s: after a sleep of 20 s the other half is left, after a stop none."""

    async def main(kernel: Kernel) -> list[float]:
        done: list[float] = []

        async def wait(_: Process) -> None:
            await asyncio.sleep(10.0)
            done.append(kernel.time())

        stopped, asleep = process.start(kernel, "stopped", wait), process.start(kernel, "asleep", wait)
        await asyncio.sleep(5.0)
        stopped.freeze(20.0)
        asleep.sleep(20.0)
        await asyncio.sleep(60.0)
        return done

    assert sim.run(main, seed=1).value == [25.0, 30.0]


@pytest.mark.parametrize("moment", [20.0 + step / 4 for step in range(16)])
@pytest.mark.parametrize("seconds", [8.0, 12.0, 20.0, 200.0])
def test_no_write_passes_after_another_leads(moment: float, seconds: float) -> None:
    """Whenever in its rhythm of renewals a leader falls asleep: when it wakes, the gate knows how long that was."""

    async def main(kernel: Kernel) -> None:
        a, b = two(kernel)
        await asyncio.sleep(moment)
        leader, other = (a, b) if a.passed else (b, a)
        leader.sleep(seconds)
        await asyncio.sleep(seconds + 60.0)
        since = other.passed[0] if other.passed else float("inf")
        assert not [at for at in leader.passed if at >= since]
        if seconds > 10.0:
            assert not [at for at in leader.passed if at > moment]
            assert isinstance((await leader.process.wait()).error, LeaseLost)

    sim.run(main, seed=round(moment * 4))


def test_a_short_sleep_does_not_end_a_term() -> None:
    """A leader that slept for a second renews and leads on."""

    async def main(kernel: Kernel) -> None:
        a, b = two(kernel)
        await asyncio.sleep(20.0)
        leader, other = (a, b) if a.passed else (b, a)
        leader.sleep(1.0)
        await asyncio.sleep(60.0)
        assert leader.passed[-1] > 79.0
        assert not other.passed
        assert not leader.refused

    sim.run(main, seed=3)


def test_a_look_grows_old_while_the_machine_sleeps() -> None:
    """It may be acted by for as long as it took twice over, of the time in which the machine ran; sleep is not added."""

    async def main(kernel: Kernel) -> None:
        clock = SimClock(kernel)
        look = Look.begin(clock)
        await asyncio.sleep(3.0)
        assert look.good_until(clock) == 6.0
        clock.sleep(9.0)
        await asyncio.sleep(9.0)
        assert look.good_until(clock) == 6.0 < clock.boot_time()
        quick = Look.begin(clock)
        assert quick.good_until(clock) == clock.boot_time() + GOOD_SECONDS

    sim.run(main, seed=1)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_worlds_whose_leader_sleeps(provider: str) -> None:
    """No write after another had the Lease, and no machine lost or doubled, whoever sells the machines."""
    writes = sleep(5000, after=0, seconds=0.0, provider=provider).writes
    plan = ((1.0, 6), (20.0, 3), (20.0, 2), (200.0, 5)) if provider == "kwok" else ((20.0, 3),)
    for seconds, part in plan:
        slept = sleep(5000, after=writes // part, seconds=seconds, provider=provider)
        assert (slept.late, slept.doubled, slept.lost, slept.broken) == ((), 0, 0, ()), slept
        assert slept.taken == (seconds > 15.0)


def test_the_worlds_would_show_a_late_write() -> None:
    """With a gate that reads the monotonic clock the server's own log has writes of sleepers under another's Lease."""
    worlds = [sleep(5000, after=after, seconds=20.0, sabotage="count-only-awake") for after in moments(60, 6)]
    assert sum(each.taken for each in worlds) > 3
    assert any(each.late for each in worlds)
    assert any("lease" in {said.split(":")[0] for said in each.broken} for each in worlds)


def test_the_worlds_would_show_a_late_purchase() -> None:
    """What the cloud performs is read too: with such a gate the sleeper buys while another leads."""
    slept = sleep(5000, after=10, seconds=20.0, provider="hetzner", sabotage="count-only-awake")
    assert [each for each in slept.late if each.startswith("POST ")], slept.late
