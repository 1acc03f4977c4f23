"""A defect of ours on one object, or a refusal that does not end: everything else goes on, and nobody is asked in a hot loop."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from growth.api import names
from growth.api.decisions import DecisionSpec
from growth.api.karpenter import NODE_CLAIM
from growth.api.kinds import Kind
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.controllers import overlays
from growth.controllers.decisions import Decisions
from growth.controllers.overlays import Overlays
from growth.controllers.provisioning import provisioner
from growth.controllers.termination import Termination
from growth.controllers.termination.evictions import Eviction, Evictions
from growth.kube.errors import Forbidden
from growth.kube.memory import MemoryApi
from tests.manifests import pod
from tests.simulation import buying
from tests.simulation.buying import Buyer, claims, decided, staged
from tests.simulation.ending import add_owned, add_pod, pods, start_kubelets
from tests.simulation.owning import Stage, on_stage

OVERLAY = {"metadata": {"name": "o"}, "spec": {"requirements": [], "price": "1"}}


def test_plans_that_fail_are_made_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in planning does not fill the log; when it is over, machines are bought."""
    calls = [0]

    def broken(question: Any) -> Any:
        calls[0] += 1
        raise ZeroDivisionError

    async def body(stage: buying.Stage) -> None:
        await stage.begin()
        await stage.add_pool()
        Buyer(stage, stage.environment())
        await stage.cluster.add_replica_set("web", 1)
        with monkeypatch.context() as patch:
            patch.setattr(provisioner, "answered", broken)
            await asyncio.sleep(600)
            assert 5 <= calls[0] <= 25
        await asyncio.sleep(90)
        assert len(await claims(stage)) == 1

    staged(body)


def test_a_bug_about_one_pod_keeps_no_other_from_leaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pod waits with its machine; another machine is drained to its end."""
    real = Evictions._evicted

    async def evicted(evictions: Evictions, eviction: Eviction) -> bool:
        if eviction.name == "odd":
            raise ZeroDivisionError
        return await real(evictions, eviction)

    monkeypatch.setattr(Evictions, "_evicted", evicted)

    async def body(stage: Stage) -> tuple[list[str], int]:
        await add_owned(stage)
        await add_owned(stage, "web-2")
        await add_pod(stage, "odd")
        await add_pod(stage, "plain", node="node-of-web-2")
        start_kubelets(stage)
        await stage.start(Termination(stage.env))
        for name in ("web-1", "web-2"):
            await stage.admin.delete(NODE_CLAIM, name)
        await asyncio.sleep(60)
        assert not any(task.done() for task in stage.tasks)
        return await pods(stage), len((await stage.admin.list(NODE_CLAIM)).items)

    assert on_stage(body).value == (["odd"], 1)


def test_a_decision_that_cannot_be_made_up_leaves_a_gap_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next one is written."""

    async def body(stage: buying.Stage) -> list[str]:
        await stage.begin()
        env = stage.environment()
        decisions = Decisions(env)
        stage.start(decisions.run())
        spec = DecisionSpec(at=stage.clock.now(), controller="test", outcome="Acted", summary="first")
        with monkeypatch.context() as patch:
            patch.setattr(Decisions, "_list", _divide)
            decisions.record(spec)
            await asyncio.sleep(1)
        decisions.record(DecisionSpec(at=stage.clock.now(), controller="test", outcome="Acted", summary="second"))
        await asyncio.sleep(1)
        return [each.summary for each in await decided(stage)]

    assert staged(body).value == ["second"]


async def _divide(_: Decisions) -> None:
    raise ZeroDivisionError


def test_an_overlay_that_cannot_be_judged_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is looked at later and later; when it can be judged its status says so."""
    calls = [0]

    def broken(_: Any) -> Any:
        calls[0] += 1
        raise ZeroDivisionError

    async def body(stage: Stage) -> None:
        await stage.start(Overlays(stage.env))
        with monkeypatch.context() as patch:
            patch.setattr(overlays, "_problems", broken)
            await stage.admin.create(NODE_OVERLAY, OVERLAY)
            await asyncio.sleep(600)
            assert 3 <= calls[0] <= 15
        await asyncio.sleep(400)
        (told, _) = (await stage.admin.get(NODE_OVERLAY, "o")).status.conditions
        assert (told.type, told.status) == (names.VALIDATION_SUCCEEDED, "True")

    on_stage(body)


class NoClaims(MemoryApi):
    """No claim may be created until it is healed."""

    refused = 0
    healed = False

    async def create(self, kind: Kind[Any], body: Any, *, namespace: str = "") -> Any:
        if kind.plural == NODE_CLAIM.plural and not self.healed:
            self.refused += 1
            raise Forbidden("a webhook says no")
        return await super().create(kind, body, namespace=namespace)


def test_claims_that_the_server_refuses_are_asked_for_less_and_less_often() -> None:
    """Nor are names reserved for them all the time; pods that come meanwhile are tried at once, and then all are served."""

    async def body(stage: buying.Stage) -> None:
        await stage.begin()
        await stage.add_pool(limits={"nodes": "100"})
        api = NoClaims(stage.cluster.server, user="growth")
        env = stage.environment(api=api)
        Buyer(stage, env)
        await stage.cluster.add_replica_set("web", 1)
        await asyncio.sleep(900)
        assert 3 <= api.refused <= 12
        told = env.events.statistics()
        assert stage.cluster.server.statistics().writes["growth"] - told.created - told.counted <= 2 * 12
        api.healed = True
        await stage.admin.create(POD, pod("other", cpu="2"), namespace="default")
        await asyncio.sleep(20)
        assert len(await claims(stage)) >= 1, "one machine holds both"

    staged(body)


def test_waiting_for_the_cloud_is_not_told_every_second() -> None:
    """What is waited for is logged at once and then once a minute."""

    async def body(stage: buying.Stage) -> list[Any]:
        await stage.begin()
        await stage.add_pool()
        env = stage.environment()
        env.state._catalogue = None
        Buyer(stage, env)
        await stage.cluster.add_replica_set("web", 1)
        with capture_logs() as lines:
            await asyncio.sleep(600)
        return [line["unsynced"] for line in lines if line["event"] == "waiting on cluster sync"]

    told = staged(body).value
    assert 5 <= len(told) <= 11
    assert told[0] == ["what the cloud sells"]


class Refusing(MemoryApi):
    """No status of an overlay may be written."""

    def __init__(self, api: MemoryApi) -> None:
        super().__init__(api._server, user="growth")
        self.refused = 0

    async def patch(self, kind: Kind[Any], *given: Any, **options: Any) -> Any:
        if kind.plural == NODE_OVERLAY.plural:
            self.refused += 1
            raise Forbidden("you may not")
        return await super().patch(kind, *given, **options)


def test_a_status_that_may_not_be_written_is_not_tried_every_second() -> None:
    """Rights that are missing are asked about later and later."""

    async def body(stage: Stage) -> int:
        await stage.start(Overlays(stage.env))
        await stage.admin.create(NODE_OVERLAY, OVERLAY)
        await asyncio.sleep(600)
        assert isinstance(stage.env.api, Refusing)
        return stage.env.api.refused

    assert 3 <= on_stage(body, api=Refusing).value <= 15
