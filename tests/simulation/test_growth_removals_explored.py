"""Every state of a NodeRemovalRequest with everything that can be true of its machine, node and pods, by the real controller."""

import asyncio
import dataclasses
import datetime as dt
import itertools
from typing import Any

import pytest

from growth.api import names
from growth.api.clouds import CloudError, CloudMachine, CloudUnavailable, MachineNotFound
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST, NodeRemovalRequest
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.api.workloads import DAEMON_SET
from growth.controllers.growth.removals import Removals
from growth.controllers.growth.removing import DELETION_ACCEPTED, DELETION_POSTPONED, DELETION_REQUESTED
from growth.units import print_time
from tests.manifests import growth_pool, pod, workload
from tests.simulation.clouds import TYPE, ScriptedCloud
from tests.simulation.owning import Stage, on_stage

PHASES = ("", "Pending", "Deprovisioning", "CouldNotRemove", "RemovalFailed")
# gone: after the cloud had accepted; denied: the cloud says so of a machine whose deletion it has not accepted.
MACHINES = ("there", "deleting", "gone", "denied", "unknown", "refuses")
PODS = ("none", "running", "daemon", "finished")
# By the mark of a removal; by that of the move that asked for it; not any more.
MARKS = ("marked", "disrupted", "bare")
ATTEMPTS = ("due", "early", "last")  # last: due, and as often as it may be
REASONS = ("Empty", "NotReady", "Underutilized")
MOST = 5


@dataclasses.dataclass(frozen=True)
class Case:
    phase: str
    machine: str
    pods: str
    mark: str
    attempts: str
    reason: str

    @property
    def name(self) -> str:
        parts = (self.phase or "new", self.machine, self.pods, self.mark, self.attempts, self.reason)
        return "-".join(("n", *parts)).lower()

    @property
    def marked(self) -> bool:
        return self.mark == "marked"

    @property
    def asked(self) -> int:
        """How often the cloud was asked before."""
        if self.phase in {"", "Pending"}:
            return 0
        return MOST if self.attempts == "last" or self.phase == "RemovalFailed" else 2

    @property
    def accepted(self) -> bool:
        return self.machine == "deleting"

    @property
    def busy(self) -> bool:
        return self.pods == "running"


CASES = [
    Case(*each)
    for each in itertools.product(PHASES, MACHINES, PODS, MARKS, ATTEMPTS, REASONS)
    if each[4] == "due" or each[0] in {"Deprovisioning", "CouldNotRemove"}
]


def expected(case: Case) -> str:
    """What becomes of it within a moment."""
    due = case.attempts != "early" or not case.asked
    if case.phase == "RemovalFailed":
        return "nothing"
    if case.machine == "gone":
        return "finished" if case.asked else "waits"
    if case.machine in {"denied", "unknown"}:
        return "waits"
    if case.accepted:
        if case.busy:
            return "drains"
        if not due:
            return "waits"
        return "failed" if case.asked >= MOST else "asked"
    if case.reason == "Empty" and (case.busy or not case.marked):
        return "cancelled"
    if case.reason == "Underutilized" and case.mark == "bare":
        return "cancelled"
    if case.busy:
        return "drains"
    if not due:
        return "waits"
    if case.asked >= MOST:
        return "failed"
    return "refused" if case.machine == "refuses" else "asked"


class Cloud(ScriptedCloud):
    """Does with each machine what the case says. `asked` are the claims whose machines were to be taken down."""

    def __init__(self) -> None:
        super().__init__()
        self.cases: dict[str, Case] = {}
        self.asked: dict[str, int] = {}
        self.down: set[str] = set()

    async def get(self, provider_id: str) -> CloudMachine:
        name = provider_id.removeprefix("scripted://")
        case = self.cases[name]
        if case.machine in {"gone", "denied"}:
            raise MachineNotFound(name)
        if case.machine == "unknown":
            raise CloudUnavailable("no answer")
        return CloudMachine(provider_id=provider_id, claim=name, deleting=case.accepted or name in self.down)

    async def delete(self, claim: NodeClaim) -> None:
        name = claim.metadata.name
        self.asked[name] = self.asked.get(name, 0) + 1
        if self.cases[name].machine == "refuses":
            raise CloudError("insufficient permission")
        if self.cases[name].machine == "busy":
            raise CloudUnavailable("its node is not listed yet")
        if self.cases[name].machine == "vanishes":
            self.cases[name] = dataclasses.replace(self.cases[name], machine="denied")
            raise MachineNotFound(name)
        self.down.add(name)


async def prepare(stage: Stage, case: Case, now: dt.datetime) -> None:
    name = case.name
    await stage.add_claim(name, labels={names.POOL_LABEL: "default"})
    status: Json = {"providerID": f"scripted://{name}", "nodeName": name}
    await stage.admin.patch(NODE_CLAIM, name, {"status": status}, subresource="status")
    marks = {"marked": names.SCALE_DOWN_TAINT, "disrupted": names.DISRUPTED_TAINT}
    taints = [{"key": marks[case.mark], "effect": "NoSchedule"}] if case.mark in marks else []
    annotations = {names.SCALE_DOWN_AT_ANNOTATION: print_time(now)} if case.marked else {}
    node: Json = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"providerID": f"scripted://{name}", "taints": taints},
    }
    await stage.admin.create(NODE, node)
    if case.pods != "none":
        body = pod(name, nodeName=name)
        if case.pods == "daemon":
            agent = await stage.admin.get(DAEMON_SET, "agent", namespace="default")
            owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": agent.metadata.uid}
            body["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
        await stage.admin.create(POD, body, namespace="default")
        phase = {"status": {"phase": "Succeeded" if case.pods == "finished" else "Running"}}
        await stage.admin.patch(POD, name, phase, namespace="default", subresource="status")
    removal = {"metadata": {"name": name}, "spec": {"nodeName": name, "nodeClaimName": name, "reason": case.reason}}
    await stage.admin.create(NODE_REMOVAL_REQUEST, removal)
    if case.phase:
        ago = dt.timedelta(seconds=10 if case.attempts == "early" else 600)
        told: Json = {"phase": case.phase}
        if case.asked:
            told |= {"removalAttempt": case.asked, "removeAttemptedAt": print_time(now - ago)}
            if case.machine == "gone":
                told["events"] = [{"at": print_time(now - ago), "name": DELETION_ACCEPTED}]
        await stage.admin.patch(NODE_REMOVAL_REQUEST, name, {"status": told}, subresource="status")


def outcome(
    case: Case,
    cloud: Cloud,
    *,
    removals: dict[str, NodeRemovalRequest],
    claims: dict[str, NodeClaim],
    pods: dict[str, Any],
    tainted: dict[str, bool],
) -> str:
    name = case.name
    removal = removals.get(name)
    if removal is None:
        going = claims[name].metadata.deletion_timestamp is not None
        assert going or not tainted[name]
        return "finished" if going else "cancelled"
    if removal.status.phase == "RemovalFailed":
        return "nothing" if case.phase == "RemovalFailed" and name not in cloud.asked else "failed"
    if name in cloud.asked:
        assert cloud.asked[name] == 1
        assert removal.status.removal_attempt == case.asked + 1
        return "refused" if removal.status.phase == "CouldNotRemove" else "asked"
    leaves = case.busy and (name not in pods or pods[name].metadata.deletion_timestamp is not None)
    return "drains" if leaves else "waits"


def test_every_state_with_every_machine_and_every_pod_leads_where_it_should() -> None:
    """The cloud is asked when it may be and only then; whatever cancels, cancels; what failed for good is left alone."""

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        await stage.admin.create(DAEMON_SET, workload("DaemonSet", "agent"), namespace="default")
        now = stage.env.clock.now()
        for case in CASES:
            cloud.cases[case.name] = case
            await prepare(stage, case, now)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(4)
        claims = {each.metadata.name: each for each in (await stage.admin.list(NODE_CLAIM)).items}
        removals = {each.metadata.name: each for each in (await stage.admin.list(NODE_REMOVAL_REQUEST)).items}
        pods = {each.metadata.name: each for each in (await stage.admin.list(POD)).items}
        tainted = {
            each.metadata.name: any(taint.key == names.SCALE_DOWN_TAINT for taint in each.spec.taints)
            for each in (await stage.admin.list(NODE)).items
        }
        wrong = {}
        for case in CASES:
            found = outcome(case, cloud, removals=removals, claims=claims, pods=pods, tainted=tainted)
            if found != expected(case):
                wrong[case.name] = (found, expected(case))
        assert wrong == {}
        assert all(not cloud.cases[name].busy for name in cloud.asked)

    on_stage(body)


def speaking(machine: str, *, seconds: float) -> bool:
    """Whether the claim goes of a machine of which the cloud says so, while its Node is Ready."""
    gone: list[bool] = []

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        case = Case("Deprovisioning", machine, "none", "marked", "early", "Empty")
        cloud.cases[case.name] = case
        await prepare(stage, case, stage.env.clock.now())
        await stage.set_ready(case.name)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(seconds)
        gone.append((await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is not None)

    on_stage(body)
    return gone[0]


def test_a_cloud_that_says_gone_of_a_machine_that_speaks_is_not_believed() -> None:
    """As long as the Node is Ready nothing is concluded from «not found» where the cloud has accepted no deletion."""
    assert not speaking("denied", seconds=300)


def test_a_machine_whose_deletion_was_accepted_is_gone_with_one_denial() -> None:
    """Its Node is Ready for most of a minute more, and the claim does not wait for that; a new process knows it too."""
    assert speaking("gone", seconds=2)


async def denied(stage: Stage, *, reason: str = "NotReady") -> tuple[Cloud, Case]:
    """A removal that wrote its attempt and got no further, and whose machine the cloud denies; its Node is silent."""
    cloud = Cloud()
    object.__setattr__(stage.env, "provider", cloud)
    await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
    case = Case("Deprovisioning", "denied", "none", "marked", "due", reason)
    cloud.cases[case.name] = case
    await prepare(stage, case, stage.env.clock.now())
    return cloud, case


def test_one_denial_ends_no_claim_whose_machine_nobody_has_let_go() -> None:
    """A crash after the attempt was written, then one false «not found»: the claim stays, and the cloud is asked."""

    async def body(stage: Stage) -> None:
        cloud, case = await denied(stage)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(2)
        cloud.cases[case.name] = dataclasses.replace(case, machine="there")
        await asyncio.sleep(30)
        assert (await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is None
        assert cloud.asked == {case.name: 1}

    on_stage(body)


def test_a_machine_that_is_denied_for_long_is_gone() -> None:
    """«Not found» for as long as collection asks for too: the claim goes, whoever took the machine down."""

    async def body(stage: Stage) -> None:
        cloud, case = await denied(stage)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(stage.env.settings.collection_confirm - 5)
        assert (await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is None
        await asyncio.sleep(15)
        assert (await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is not None
        assert cloud.asked == {}

    on_stage(body)


def test_a_denial_that_is_taken_back_counts_no_more() -> None:
    """Two answers «not found» with another one between them are two first ones."""

    async def body(stage: Stage) -> None:
        cloud, case = await denied(stage)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(40)
        cloud.cases[case.name] = dataclasses.replace(case, machine="refuses")
        await asyncio.sleep(10)
        cloud.cases[case.name] = case
        await stage.admin.patch(NODE_CLAIM, case.name, {"metadata": {"annotations": {"looked": "at"}}})
        await asyncio.sleep(40)
        assert (await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is None

    on_stage(body)


def test_a_machine_of_which_the_deletion_says_that_it_is_gone_is_gone() -> None:
    """The look found it and the deletion did not: the claim goes at once."""

    async def body(stage: Stage) -> None:
        cloud, case = await denied(stage)
        cloud.cases[case.name] = dataclasses.replace(case, machine="vanishes")
        await stage.start(Removals(stage.env))
        await asyncio.sleep(4)
        assert (await stage.admin.get(NODE_CLAIM, case.name)).metadata.deletion_timestamp is not None
        assert cloud.asked == {case.name: 1}

    on_stage(body)


@pytest.mark.parametrize("processes", [1, 4])
def test_a_cloud_that_cannot_do_it_now_uses_up_no_attempt(processes: int) -> None:
    """However often it says so, and whichever process hears it: it is one attempt, asked again soon, told once, and given up by
    nobody; the machine goes soon after the cloud can do it.
    """

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        case = Case("Pending", "busy", "none", "marked", "due", "NotReady")
        cloud.cases[case.name] = case
        await prepare(stage, case, stage.env.clock.now())
        await stage.start()
        for number in range(processes):
            working = asyncio.create_task(Removals(stage.env).run())
            stage.tasks.append(working)
            await asyncio.sleep(3600 / processes)
            if number < processes - 1:
                working.cancel()
        removal = await stage.admin.get(NODE_REMOVAL_REQUEST, case.name)
        assert (removal.status.phase, removal.status.removal_attempt) == ("CouldNotRemove", 1)
        assert [each.name for each in removal.status.events] == [DELETION_REQUESTED, DELETION_POSTPONED]
        assert 3600 / 36 <= cloud.asked[case.name] <= 3600 / 20
        cloud.cases[case.name] = dataclasses.replace(case, machine="there")
        await asyncio.sleep(40)
        assert case.name in cloud.down
        removal = await stage.admin.get(NODE_REMOVAL_REQUEST, case.name)
        assert (removal.status.phase, removal.status.removal_attempt) == ("Deprovisioning", 1)
        assert removal.status.events[-1].name == DELETION_ACCEPTED

    on_stage(body)


def test_the_first_answers_that_it_cannot_be_done_now_are_asked_again_within_seconds() -> None:
    """A cloud that lists a node a minute late is asked six times in that minute, and not once in two."""

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        case = Case("Pending", "busy", "none", "marked", "due", "Empty")
        cloud.cases[case.name] = case
        await prepare(stage, case, stage.env.clock.now())
        await stage.start(Removals(stage.env))
        await asyncio.sleep(60)
        assert 4 <= cloud.asked[case.name] <= 8

    on_stage(body)


def test_a_refusal_after_it_could_not_be_done_counts() -> None:
    """The attempt that went on is the first that is refused; the next one is the second, and comes later."""

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        case = Case("Pending", "busy", "none", "marked", "due", "NotReady")
        cloud.cases[case.name] = case
        await prepare(stage, case, stage.env.clock.now())
        await stage.start(Removals(stage.env))
        await asyncio.sleep(20)
        cloud.cases[case.name] = dataclasses.replace(case, machine="refuses")
        await asyncio.sleep(40)
        first = (await stage.admin.get(NODE_REMOVAL_REQUEST, case.name)).status
        assert (first.phase, first.removal_attempt) == ("CouldNotRemove", 1)
        await asyncio.sleep(1200)
        last = (await stage.admin.get(NODE_REMOVAL_REQUEST, case.name)).status
        assert (last.phase, last.removal_attempt) == ("RemovalFailed", MOST)

    on_stage(body)


def test_a_claim_that_goes_or_is_gone_ends_its_removal() -> None:
    """In every state: while somebody else ends the claim nothing is done, and without it the request goes."""

    async def body(stage: Stage) -> None:
        cloud = Cloud()
        object.__setattr__(stage.env, "provider", cloud)
        await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        now = stage.env.clock.now()
        cases = [Case(phase, "there", "none", "marked", "due", "Empty") for phase in PHASES]
        for case in cases:
            cloud.cases[case.name] = case
            await prepare(stage, case, now)
            await stage.admin.delete(NODE_CLAIM, case.name)
        await stage.start(Removals(stage.env))
        await asyncio.sleep(4)
        assert len((await stage.admin.list(NODE_REMOVAL_REQUEST)).items) == len(cases)
        for case in cases:
            await stage.admin.patch(NODE_CLAIM, case.name, {"metadata": {"finalizers": None}})
        await asyncio.sleep(4)
        assert (await stage.admin.list(NODE_REMOVAL_REQUEST)).items == ()
        assert cloud.asked == {}

    on_stage(body)
