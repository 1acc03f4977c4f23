"""Every state of a NodeRequest with everything that can be true of its claim, by the real controller."""

import asyncio
import dataclasses
import datetime as dt
import itertools
from typing import Any

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, NODE_REMOVAL_REQUEST, NODE_REQUEST, GrowthPool, NodeRequest
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.controllers.growth.requests import NodeRequests
from growth.controllers.growth.reserving import GrowthReserving
from growth.units import print_time
from tests.manifests import growth_pool
from tests.simulation.clouds import TYPE
from tests.simulation.owning import Stage, on_stage

PHASES = ("", "Pending", "Provisioning", "Ready", "Unmet", "Deprovisioning")
MACHINES = ("contrary", "launched", "registered", "initialized", "going")  # contrary: with a machine and «no stock»
CLAIMS = ("none", "stranger", "new", "failing", "no stock", *MACHINES)
AGES = ("young", "old")  # old: every wait and TTL is over


@dataclasses.dataclass(frozen=True)
class Case:
    phase: str
    claim: str
    age: str

    @property
    def name(self) -> str:
        return "-".join(("r", self.phase.lower() or "new", self.claim.replace(" ", "-"), self.age))


CASES = [Case(*each) for each in itertools.product(PHASES, CLAIMS, AGES)]


def expected(case: Case) -> tuple[str, str]:
    """The phase afterwards («gone» where the request is), and what became of the claim: kept, made, ended, removed, none."""
    own = case.claim not in {"none", "stranger"}
    kept = "kept" if own or case.claim == "stranger" else "none"
    match case.phase, case.claim:
        case "Unmet", ("none" | "stranger" | "going" | "no stock"):
            after = "Unmet" if case.age == "young" else "gone"
            return after, "ended" if case.claim == "no stock" else kept
        case (("" | "Pending"), "going"):
            return "gone", "kept"
        case (("" | "Pending"), "none"):
            return "Pending", "made"
        case (("" | "Pending" | "Unmet"), ("stranger" | "new" | "failing" | "contrary")):
            return "Pending", "kept"
        case (("" | "Pending"), "no stock"):
            return "Unmet", "ended"
        case (("" | "Pending" | "Unmet" | "Provisioning"), "initialized"):
            return "Ready", "kept"
        case (("" | "Pending" | "Unmet" | "Provisioning"), ("launched" | "registered")):
            return ("Provisioning", "kept") if case.age == "young" else ("gone", "removed")
        case "Provisioning", ("none" | "stranger" | "going"):
            return "gone", kept
        case "Provisioning", _:  # a claim that says less than it did: it is waited for, and not for ever
            return ("Provisioning", "kept") if case.age == "young" else ("gone", "removed")
        case "Ready", ("none" | "stranger" | "going"):
            return "gone", kept
        case "Ready", _:
            return ("Ready" if case.age == "young" else "gone"), "kept"
        case _:  # Deprovisioning
            return "gone", "removed" if own and case.claim != "going" else kept


def conditions(case: Case, then: dt.datetime) -> list[Json]:
    def condition(type_: str, status: str = "True", reason: str = "", message: str = "") -> Json:
        return {
            "type": type_,
            "status": status,
            "reason": reason or type_,
            "message": message,
            "lastTransitionTime": print_time(then),
        }

    launched = condition(names.LAUNCHED)
    match case.claim:
        case "failing":
            return [condition(names.LAUNCHED, "Unknown", "QuotaExceeded", "no more than 10")]
        case "no stock" | "contrary":
            return [condition(names.LAUNCHED, "False", names.INSUFFICIENT_CAPACITY_ERROR, "none anywhere")]
        case "launched" | "going":
            return [launched]
        case "registered":
            return [launched, condition(names.REGISTERED)]
        case "initialized":
            return [launched, condition(names.REGISTERED), condition(names.INITIALIZED)]
        case _:
            return []


async def prepare(stage: Stage, case: Case, pool: GrowthPool, now: dt.datetime) -> NodeRequest:
    then = now if case.age == "young" else now - dt.timedelta(hours=2)
    request: Json = {
        "metadata": {
            "name": case.name,
            "ownerReferences": [
                {
                    "apiVersion": GROWTH_POOL.api_version,
                    "kind": "NodePool",
                    "name": pool.metadata.name,
                    "uid": pool.metadata.uid,
                }
            ],
        },
        "spec": {"targetOffering": f"kwok-{TYPE}", "pool": "default"},
    }
    made = await stage.admin.create(NODE_REQUEST, request)
    if case.phase:
        status: Json = {
            "phase": case.phase,
            "nodeClaimName": case.name,
            "events": [{"at": print_time(then), "name": "nodeRequested"}],
        }
        if case.phase == "Unmet":
            status["unmetUntil"] = print_time(then + dt.timedelta(minutes=10))
        await stage.admin.patch(NODE_REQUEST, case.name, {"status": status}, subresource="status")
    if case.claim != "none":
        owner = "another" if case.claim == "stranger" else made.metadata.uid
        await stage.add_claim(
            case.name, labels={names.POOL_LABEL: "default"}, annotations={names.NODE_REQUEST_ANNOTATION: owner}
        )
        told: Json = {"conditions": conditions(case, then)}
        if case.claim in MACHINES:
            told |= {"providerID": f"scripted://{case.name}", "nodeName": case.name}
        await stage.admin.patch(NODE_CLAIM, case.name, {"status": told}, subresource="status")
        if case.claim == "going":
            await stage.admin.delete(NODE_CLAIM, case.name)
    return made


async def outcome(stage: Stage, case: Case, before: dict[str, NodeClaim]) -> tuple[str, str]:
    requests = {each.metadata.name: each for each in (await stage.admin.list(NODE_REQUEST)).items}
    claims = {each.metadata.name: each for each in (await stage.admin.list(NODE_CLAIM)).items}
    removals = {each.metadata.name for each in (await stage.admin.list(NODE_REMOVAL_REQUEST)).items}
    phase = requests[case.name].status.phase if case.name in requests else "gone"
    claim = claims.get(case.name)
    if claim is None:
        return phase, "none"
    if case.name not in before:
        return phase, "made"
    if case.name in removals:
        return phase, "removed"
    ended = claim.metadata.deletion_timestamp is not None and before[case.name].metadata.deletion_timestamp is None
    return phase, "ended" if ended else "kept"


def test_every_state_with_every_claim_leads_where_it_should() -> None:
    """120 situations at once: the phase afterwards, and what became of the claim; then nothing more is written."""

    async def body(stage: Stage) -> None:
        pool = await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        now = stage.env.clock.now()
        for case in CASES:
            await prepare(stage, case, pool, now)
        before = {each.metadata.name: each for each in (await stage.admin.list(NODE_CLAIM)).items}
        await stage.start(NodeRequests(stage.env, GrowthReserving(stage.env)))
        await asyncio.sleep(10)
        wrong: dict[str, Any] = {}
        for case in CASES:
            found = await outcome(stage, case, before)
            if found != expected(case):
                wrong[case.name] = (found, expected(case))
        assert wrong == {}
        left = (await stage.admin.list(NODE_REQUEST)).items
        assert {each.status.phase for each in left if each.status.unmet_until is not None} == {"Unmet"}
        written = stage.writes()
        await asyncio.sleep(60)
        assert stage.writes() == written

    on_stage(body)


def test_a_phase_that_people_write_is_put_right_and_costs_no_machine() -> None:
    """A request that was Ready, told to be Unmet by hand: Ready again, its story unchanged, its claim untouched."""

    async def body(stage: Stage) -> None:
        pool = await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 10}))
        case = Case("Pending", "initialized", "young")
        await prepare(stage, case, pool, stage.env.clock.now())
        await stage.start(NodeRequests(stage.env, GrowthReserving(stage.env)))
        await asyncio.sleep(10)
        before = await stage.admin.get(NODE_REQUEST, case.name)
        assert before.status.phase == "Ready"
        claim = await stage.admin.get(NODE_CLAIM, case.name)
        unmet = {"phase": "Unmet", "unmetUntil": print_time(stage.env.clock.now() + dt.timedelta(days=1))}
        await stage.admin.patch(NODE_REQUEST, case.name, {"status": unmet}, subresource="status")
        await asyncio.sleep(10)
        assert (await stage.admin.get(NODE_REQUEST, case.name)).status == before.status
        assert await stage.admin.get(NODE_CLAIM, case.name) == claim

    on_stage(body)


def test_a_request_that_people_delete_leaves_the_claim_alone() -> None:
    """In every state: the machine is the pool's."""

    async def body(stage: Stage) -> None:
        pool = await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 1000}))
        cases = [
            case for case in CASES if case.age == "young" and case.claim in {"launched", "registered", "initialized"}
        ]
        now = stage.env.clock.now()
        for case in cases:
            await prepare(stage, case, pool, now)
            await stage.admin.delete(NODE_REQUEST, case.name)
        await stage.start(NodeRequests(stage.env, GrowthReserving(stage.env)))
        await asyncio.sleep(10)
        claims = (await stage.admin.list(NODE_CLAIM)).items
        assert len(claims) == len(cases)
        assert all(each.metadata.deletion_timestamp is None for each in claims)

    on_stage(body)


def test_a_story_keeps_its_newest_twenty_events() -> None:
    """However often a launch fails for another reason."""

    async def body(stage: Stage) -> None:
        pool = await stage.admin.create(GROWTH_POOL, growth_pool("default", {"name": TYPE, "max": 10}))
        case = Case("Pending", "failing", "young")
        await prepare(stage, case, pool, stage.env.clock.now())
        await stage.start(NodeRequests(stage.env, GrowthReserving(stage.env)))
        for number in range(30):
            told = {
                "type": names.LAUNCHED,
                "status": "Unknown",
                "reason": "QuotaExceeded",
                "message": f"failure {number}",
                "lastTransitionTime": print_time(stage.env.clock.now()),
            }
            await stage.admin.patch(NODE_CLAIM, case.name, {"status": {"conditions": [told]}}, subresource="status")
            await asyncio.sleep(1)
        request = await stage.admin.get(NODE_REQUEST, case.name)
        assert request.status.phase == "Pending"
        assert [each.reason for each in request.status.events] == [f"failure {number}" for number in range(10, 30)]

    on_stage(body)
