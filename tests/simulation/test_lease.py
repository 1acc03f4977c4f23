"""Leader election on the kernel: who may write, when, and how a term ends."""

import asyncio
import dataclasses

import pytest

from growth.api.coordination import LEASE
from growth.kube.errors import GateClosed
from growth.kube.lease import Elector, LeaseLost, LeaseSettings
from growth.kube.memory import MemoryApi, MemoryServer
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.network import Faults, NetworkApi
from growth.sim.ports import SimClock, SimRandom
from growth.sim.trials.electing import elect, without_late_writes


class Field:
    """One Lease and candidates for it, each with its own network and its own wrong clock."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.random = SimRandom(kernel.seed, "test")
        self.server = MemoryServer(SimClock(kernel), self.random.stream("server"))
        self.admin = MemoryApi(self.server)

    def candidate(
        self, identity: str, *, skew: float = 0.0, faults: Faults | None = None
    ) -> tuple[Elector, NetworkApi]:
        network = NetworkApi(
            self.admin,
            kernel=self.kernel,
            random=self.random.stream(identity),
            faults=faults or Faults(),
            name=identity,
        )
        elector = Elector(
            network,
            clock=SimClock(self.kernel, skew_seconds=skew),
            random=self.random.stream(f"{identity} jitter"),
            name="growth",
            namespace="kube-system",
            identity=identity,
        )
        return elector, network

    async def holder(self) -> str:
        return (await self.admin.get(LEASE, "growth", namespace="kube-system")).spec.holder_identity


async def for_ever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("seed", range(25))
def test_a_late_write_changes_nothing_and_no_write_passes_late(seed: int) -> None:
    """Through partitions, crashes, freezes and wrong clocks the end state is that of a run without late writes."""
    disturbed = elect(seed, shuffle=seed % 3 == 0)
    assert disturbed.terms > 2
    assert disturbed.state == without_late_writes()


def test_the_trial_has_late_writes_and_refusals_to_speak_of() -> None:
    """The trial is not vacuous: writes do land late, gates do refuse, and a run without held writes ends alike."""
    runs = [elect(seed) for seed in range(12)]
    assert sum(run.late for run in runs) > 12
    assert sum(run.refused for run in runs) > 0
    assert sum(run.lost for run in runs) > 12
    assert elect(3, hold_writes=False).state == without_late_writes()


def test_the_trial_notices_writes_without_preconditions() -> None:
    """Without the revision as precondition late writes spoil the end state of some runs."""
    assert any(elect(seed, preconditions=False).state != without_late_writes() for seed in range(20))


def test_the_trial_notices_a_missing_gate() -> None:
    """Without the gate somebody writes after the deadline in some runs, and the trial says so."""
    caught = 0
    for seed in range(15):
        try:
            elect(seed, gated=False)
        except AssertionError as error:
            caught += "passed the gate" in str(error)
    assert caught > 1


def test_equal_seeds_elect_equally() -> None:
    """Equal seeds give equal traces."""
    assert elect(9).digest == elect(9).digest
    assert elect(9).digest != elect(10).digest


def test_the_gate_is_closed_before_the_lease_is_held_and_after_it_is_given_back() -> None:
    """Nothing may be written before the first and after the last moment of a term."""

    async def main(kernel: Kernel) -> list[str]:
        field = Field(kernel)
        elector, _ = field.candidate("a")
        said: list[str] = []

        def try_gate(when: str) -> None:
            try:
                elector.gate.check()
                said.append(f"{when}: open")
            except GateClosed as error:
                said.append(f"{when}: {str(error).split(':')[0]}")

        async def lead() -> None:
            try_gate("during")

        try_gate("before")
        await elector.run(lead)
        try_gate("after")
        assert await field.holder() == ""
        return said

    assert sim.run(main, seed=1).value == [
        "before: the lease is not held yet",
        "during: open",
        "after: the lease was lost or given back",
    ]


def test_a_lease_that_was_given_back_is_taken_at_once() -> None:
    """The next replica does not wait for the lease duration after an orderly end."""

    async def main(kernel: Kernel) -> float:
        field = Field(kernel)
        first, _ = field.candidate("a")
        second, _ = field.candidate("b")
        enough = asyncio.Event()
        leading = kernel.create_task(first.run(enough.wait))
        await asyncio.sleep(1)
        waiting = kernel.create_task(second.acquire())
        await asyncio.sleep(30)
        assert not waiting.done()
        enough.set()
        await leading
        released = kernel.time()
        await waiting
        lease = await field.admin.get(LEASE, "growth", namespace="kube-system")
        assert lease.spec.lease_transitions == 1
        return kernel.time() - released

    assert sim.run(main, seed=1).value < 5.0


def test_a_dead_leader_is_followed_after_the_lease_duration_whatever_the_clocks_say() -> None:
    """Another replica leads no earlier than the lease duration after the last renewal, with clocks hours apart."""

    async def main(kernel: Kernel) -> float:
        field = Field(kernel)
        first, _ = field.candidate("a", skew=7200)
        second, _ = field.candidate("b", skew=-7200)
        await first.acquire()
        renewed = kernel.time()
        await second.acquire()
        return kernel.time() - renewed

    for seed in range(20):
        assert 15.0 <= sim.run(main, seed=seed).value < 15.0 + 2 * 2.2 * 2


def test_losing_the_lease_ends_the_term_at_the_deadline() -> None:
    """Cut off from the server, the leader stops at the renew deadline and says why; its work is cancelled."""

    async def main(kernel: Kernel) -> tuple[float, str]:
        field = Field(kernel)
        elector, network = field.candidate("a")
        kernel.call_later(20.0, network.partition)
        try:
            await elector.run(for_ever)
        except LeaseLost as error:
            return kernel.time(), str(error)
        return 0.0, ""

    at, why = sim.run(main, seed=1).value
    assert 20.0 + 10.0 - 3.5 <= at <= 30.0
    assert "could not be renewed within 10.0 s: Unreachable" in why


def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    """If somebody else holds the Lease the term is over, without waiting for the deadline."""

    async def main(kernel: Kernel) -> tuple[float, str]:
        field = Field(kernel)
        elector, _ = field.candidate("a")

        async def usurp() -> None:
            await asyncio.sleep(20)
            await field.admin.patch(LEASE, "growth", {"spec": {"holderIdentity": "b"}}, namespace="kube-system")

        kernel.create_task(usurp())
        try:
            await elector.run(for_ever)
        except LeaseLost as error:
            return kernel.time(), str(error)
        return 0.0, ""

    at, why = sim.run(main, seed=1).value
    assert at < 26.0
    assert "b holds the lease" in why


def test_who_holds_the_lease_can_be_asked_over_another_connection() -> None:
    """Cut off from its own, a leader learns there that another has it. Where nobody has it, nobody else leads."""

    async def body(kernel: Kernel) -> list[bool]:
        field = Field(kernel)
        elector, network = field.candidate("a")
        await elector.acquire()
        network.partition()
        asked = [await elector.is_taken(field.admin)]
        other = {"spec": {"holderIdentity": "b"}}
        await field.admin.patch(LEASE, "growth", other, namespace="kube-system")
        asked.append(await elector.is_taken(field.admin))
        await field.admin.delete(LEASE, "growth", namespace="kube-system")
        return [*asked, await elector.is_taken(field.admin)]

    assert sim.run(body, seed=1).value == [False, True, False]


def test_only_who_made_the_lease_is_the_first_to_lead() -> None:
    """After it was given back another may have led, and its requests may be on their way."""

    async def body(kernel: Kernel) -> list[bool]:
        field = Field(kernel)
        one, _ = field.candidate("a")
        await one.acquire()
        await one.release()
        other, _ = field.candidate("b")
        await other.acquire()
        return [one.first, other.first]

    assert sim.run(body, seed=1).value == [True, False]


def test_work_that_will_not_stop_cannot_keep_a_lost_term_alive() -> None:
    """`run` raises at the deadline even while the work ignores its cancellation."""

    async def main(kernel: Kernel) -> float:
        field = Field(kernel)
        elector, network = field.candidate("a")

        async def stubborn() -> None:
            for _ in range(100):
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    continue

        kernel.call_later(5.0, network.partition)
        with pytest.raises(LeaseLost):
            await elector.run(stubborn)
        return kernel.time()

    assert sim.run(main, seed=1).value <= 15.0


def test_the_lease_is_kept_while_cancelled_work_puts_its_things_in_order() -> None:
    """An orderly end that takes a minute still holds the lease, may still write, and gives it back at its end."""

    async def main(kernel: Kernel) -> list[str]:
        field = Field(kernel)
        elector, _ = field.candidate("a")
        said: list[str] = []

        async def tidy() -> None:
            try:
                await asyncio.sleep(1000)
            finally:
                await asyncio.sleep(60)
                elector.gate.check()
                said.append(await field.holder())

        leading = kernel.create_task(elector.run(tidy))
        await asyncio.sleep(20)
        leading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leading
        said.append(await field.holder())
        return said

    assert sim.run(main, seed=1).value == ["a", ""]


def test_a_failure_of_the_work_is_the_outcome_of_the_term() -> None:
    """What the work raises comes out, and the lease is given back."""

    async def main(kernel: Kernel) -> str:
        field = Field(kernel)
        elector, _ = field.candidate("a")

        async def broken() -> None:
            await asyncio.sleep(5)
            raise LookupError("a bug")

        with pytest.raises(LookupError):
            await elector.run(broken)
        return await field.holder()

    assert sim.run(main, seed=1).value == ""


def test_a_renewal_whose_answer_was_lost_is_looked_up_and_not_believed() -> None:
    """Over an hour with lost answers the lease is kept: its record is read again before the next renewal."""

    async def main(kernel: Kernel) -> tuple[bool, int]:
        field = Field(kernel)
        elector, _ = field.candidate("a", faults=Faults(broken_answer=0.03, conflict=0.03))
        running = kernel.create_task(elector.run(for_ever))
        await asyncio.sleep(3600)
        assert elector.statistics().renewals > 900
        return running.done(), elector.statistics().failures

    for seed in range(5):
        ended, failures = sim.run(main, seed=seed).value
        assert not ended
        assert failures > 50


def test_settings_that_cannot_be_safe_are_refused() -> None:
    """The lease must outlive the deadline and the deadline the retry, and the message says which does not hold."""
    with pytest.raises(ValueError, match=r"10 s > 12\.0 s"):
        LeaseSettings(lease_seconds=10, renew_deadline_seconds=12.0)
    assert dataclasses.replace(LeaseSettings(), lease_seconds=30).lease_seconds == 30
