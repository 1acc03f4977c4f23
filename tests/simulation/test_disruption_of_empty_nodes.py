"""Scale-down of empty nodes: who goes, who stays, and what a late look finds."""

import asyncio
import functools
from typing import Any

import pytest

from growth.api import names
from growth.api.decisions import DECISION
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.controllers.decisions import Decisions
from growth.controllers.disrupted import CLAIMS_DISRUPTED
from growth.controllers.disruption import Disruption
from growth.controllers.disruption.metrics import (
    ALLOWED_DISRUPTIONS,
    CONSUMING_BUDGETS,
    DECISIONS,
    FAILED_VALIDATIONS,
)
from growth.controllers.settings import ControllerSettings
from growth.controllers.termination import Termination
from growth.kube.api import Api
from growth.kube.memory import MemoryApi
from tests.simulation.ending import add_owned, add_pod, left, start_kubelets
from tests.simulation.owning import Stage, on_stage

ALL = {"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}], "consolidationPolicy": "WhenEmpty"}


async def claims(stage: Stage) -> list[str]:
    """Names of the claims that nobody has deleted."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sorted(each.metadata.name for each in listed if each.metadata.deletion_timestamp is None)


async def tainted(stage: Stage) -> list[str]:
    listed = (await stage.admin.list(NODE)).items
    return sorted(
        each.metadata.name for each in listed if any(taint.key == names.DISRUPTED_TAINT for taint in each.spec.taints)
    )


def test_an_empty_node_goes_with_its_machine() -> None:
    """Nothing but DaemonSets' pods and finished pods runs there: claim, Node and machine are gone soon, and it is told."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        await add_pod(stage, "daemon", owner="DaemonSet")
        await add_pod(stage, "done")
        await stage.admin.patch(
            POD, "done", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status"
        )
        start_kubelets(stage)
        await stage.start(Termination(stage.env), Disruption(stage.env))
        await asyncio.sleep(60)
        labels = {
            "reason": "empty",
            "nodepool": "default",
            "capacity_type": "on-demand",
            "consolidation_policy": "WhenEmpty",
            "termination_mode": "graceful",
        }
        assert stage.env.metrics.value(CLAIMS_DISRUPTED, **labels) == 1
        labels = {"decision": "delete", "reason": "empty", "consolidation_type": "empty"}
        assert stage.env.metrics.value(DECISIONS, **labels) == 1
        told = {(each.involved_object.kind, each.message) for each in await stage.events(names.DISRUPTION_TERMINATING)}
        assert told == {("Node", "Disrupting Node: Empty"), ("NodeClaim", "Disrupting NodeClaim: Empty")}
        return await left(stage)

    assert on_stage(body).value == (0, 0, 0)


def test_a_node_with_a_pod_that_needs_a_place_stays() -> None:
    """One ordinary pod keeps its node where only empty ones are to go; when it goes, so does the node."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        await add_pod(stage, "a")
        start_kubelets(stage)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        seen = [await claims(stage)]
        await stage.admin.delete(POD, "a", namespace="default")
        await asyncio.sleep(60)
        return [*seen, await claims(stage)]

    assert on_stage(body).value == [["web-1"], []]


def test_consolidate_after_counts_from_the_last_pod() -> None:
    """A node is left alone until no pod has come or gone for that long; Never means never."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(disruption={**ALL, "consolidateAfter": "10m"})
        never = await stage.add_pool("never", disruption={**ALL, "consolidateAfter": "Never"})
        await add_owned(stage, pool=pool)
        await add_owned(stage, "web-2", pool=never)
        start_kubelets(stage)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(500)
        await add_pod(stage, "a")
        await asyncio.sleep(200)
        seen = [await claims(stage)]
        await stage.admin.delete(POD, "a", namespace="default")
        await asyncio.sleep(590)
        seen.append(await claims(stage))
        await asyncio.sleep(40)
        return [*seen, await claims(stage)]

    assert on_stage(body).value == [["web-1", "web-2"], ["web-1", "web-2"], ["web-2"]]


def test_a_restart_counts_from_itself() -> None:
    """What happened before is not known: a node has been quiet for no longer than we have watched."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(disruption={**ALL, "consolidateAfter": "10m"})
        await add_owned(stage, pool=pool)
        await asyncio.sleep(3600)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(590)
        seen = [await claims(stage)]
        await asyncio.sleep(30)
        return [*seen, await claims(stage)]

    assert on_stage(body).value == [["web-1"], []]


def test_a_node_whose_claim_does_not_say_that_it_is_up_stays() -> None:
    """However long ago the claim said so: from when it says that the machine is up, pods have their time to come."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(disruption=ALL)
        made = await add_owned(stage, pool=pool)
        conditions = [
            {"type": each.type, "status": "True", "reason": each.type, "lastTransitionTime": "2030-01-07T08:00:00Z"}
            for each in made.status.conditions
            if each.type != names.INITIALIZED
        ]

        async def tell(status: str) -> None:
            when = f"{stage.env.clock.now():%Y-%m-%dT%H:%M:%SZ}"
            told = {"type": names.INITIALIZED, "status": status, "reason": "Told", "lastTransitionTime": when}
            changed = {"status": {"conditions": [*conditions, told]}}
            await stage.admin.patch(NODE_CLAIM, "web-1", changed, subresource="status")

        await tell("Unknown")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(600)
        seen = [await claims(stage)]
        await tell("True")
        await asyncio.sleep(stage.env.settings.nomination - 5)
        seen.append(await claims(stage))
        await asyncio.sleep(60)
        return [*seen, await claims(stage)]

    assert on_stage(body).value == [["web-1"], ["web-1"], []]


def test_nominated_nodes_stay() -> None:
    """Pods are on their way: the node is not taken from under them."""

    async def body(stage: Stage) -> list[list[str]]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        stage.env.state.nominate("node-of-web-1", seconds=100)
        await asyncio.sleep(95)
        seen = [await claims(stage)]
        await asyncio.sleep(30)
        return [*seen, await claims(stage)]

    assert on_stage(body).value == [["web-1"], []]


def test_nodes_that_hold_a_buffer_stay_and_say_so() -> None:
    """Room that a CapacityBuffer keeps is used, though no pod is there; without the buffer the node goes."""

    async def body(stage: Stage) -> tuple[list[list[str]], set[str]]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        stage.env.state.keep_for_buffers(["web-1"])
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        seen = [await claims(stage)]
        told = {each.message for each in await stage.events(names.UNCONSOLIDATABLE)}
        stage.env.state.keep_for_buffers([])
        await asyncio.sleep(30)
        return [*seen, await claims(stage)], told

    assert on_stage(body).value == ([["web-1"], []], {"The node holds capacity of a CapacityBuffer"})


def test_what_is_protected_stays_and_says_why() -> None:
    """do-not-disrupt on the node or on any of its pods, a pause of node or pool: each is told once, on node and claim."""

    async def body(stage: Stage) -> dict[str, str]:
        pool = await stage.add_pool(disruption=ALL)
        paused = await stage.add_pool("paused", disruption=ALL, annotations={names.PAUSED_ANNOTATION: "true"})
        await add_owned(stage, "of-node", pool=pool, annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await add_owned(stage, "of-pod", pool=pool)
        await add_pod(
            stage,
            "daemon",
            node="node-of-of-pod",
            owner="DaemonSet",
            annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"},
        )
        await add_owned(stage, "on-pause", pool=pool, annotations={names.PAUSED_ANNOTATION: ""})
        await add_owned(stage, "in-paused", pool=paused)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(3600)
        assert len(await claims(stage)) == 4
        events = await stage.events(names.DISRUPTION_BLOCKED)
        assert {each.count for each in events} == {1}
        assert len(events) == 8
        return {each.involved_object.name: each.message for each in events if each.involved_object.kind == "NodeClaim"}

    assert on_stage(body).value == {
        "of-node": "The node has the annotation karpenter.sh/do-not-disrupt",
        "of-pod": "Pod default/daemon has the annotation karpenter.sh/do-not-disrupt",
        "on-pause": "The node is paused",
        "in-paused": "NodePool paused is paused",
    }


def test_two_nodes_of_one_machine_stay_and_say_why() -> None:
    """Nobody can tell which of them is the machine's: both are told of, and neither goes."""

    async def body(stage: Stage) -> tuple[list[str], set[tuple[str, str]]]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, "web-1", pool=pool)
        known = await stage.admin.get(NODE, "node-of-web-1")
        twin = {"metadata": {"name": "twin"}, "spec": {"providerID": known.spec.provider_id}}
        await stage.admin.create(NODE, twin)
        await stage.start(Termination(stage.env), Disruption(stage.env))
        await asyncio.sleep(3600)
        events = await stage.events(names.DISRUPTION_BLOCKED)
        nodes = {(each.involved_object.name, each.message) for each in events if each.involved_object.kind == "Node"}
        return await claims(stage), {(name, message.split(" have ")[0]) for name, message in nodes}

    told = {("node-of-web-1", "2 Nodes and 1 NodeClaim"), ("twin", "2 Nodes and 1 NodeClaim")}
    assert on_stage(body).value == (["web-1"], told)


@pytest.mark.parametrize("goes", ["nothing", "claim", "twin"])
def test_a_machine_of_two_nodes_that_goes_uses_up_the_budget(goes: str) -> None:
    """No move touches it, but it is a node of its pool, and while it leaves no other of a budget of one does."""

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]})
        await add_owned(stage, "web-1", pool=pool)
        await add_owned(stage, "web-2", pool=pool)
        known = await stage.admin.get(NODE, "node-of-web-2")
        twin = {
            "metadata": {"name": "twin", "finalizers": [names.TERMINATION_FINALIZER]},
            "spec": {"providerID": known.spec.provider_id},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }
        await stage.admin.create(NODE, twin)
        if goes == "claim":
            await stage.admin.delete(NODE_CLAIM, "web-2")
        elif goes == "twin":
            await stage.admin.delete(NODE, "twin")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        return await claims(stage)

    stay = {"nothing": ["web-2"], "claim": ["web-1"], "twin": ["web-1", "web-2"]}
    assert on_stage(body).value == stay[goes]


def test_a_paused_cluster_loses_no_node() -> None:
    """The setting stops scale-down everywhere; what is being deleted still ends."""

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        await add_owned(stage, "web-2", pool=pool)
        await stage.start(Disruption(stage.env), Termination(stage.env))
        await stage.admin.delete(NODE_CLAIM, "web-2")
        await asyncio.sleep(300)
        return sorted(each.metadata.name for each in (await stage.admin.list(NODE_CLAIM)).items)

    assert on_stage(body, settings=ControllerSettings(paused=True)).value == ["web-1"]


def test_a_budget_lets_only_so_many_go_at_a_time() -> None:
    """Of ten empty nodes two at a time, and the next two only when those are gone; a node that is not ready counts too."""

    async def body(stage: Stage) -> list[int]:
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "2"}]})
        for number in range(10):
            await add_owned(stage, f"web-{number}", pool=pool)
        await stage.start(Disruption(stage.env), Termination(stage.env))
        most = []
        for _ in range(600):
            await asyncio.sleep(0.5)
            listed = (await stage.admin.list(NODE_CLAIM)).items
            most.append(
                sum(
                    each.metadata.deletion_timestamp is not None
                    and not any(one.type == names.INSTANCE_TERMINATING for one in each.status.conditions)
                    for each in listed
                )
            )
        assert await left(stage) == (0, 0, 0)
        return [max(most)]

    assert on_stage(body).value == [2]

    async def unready(stage: Stage) -> tuple[list[str], float, float]:
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]})
        await add_owned(stage, pool=pool)
        await add_owned(stage, "broken", pool=pool, ready=False)
        await add_pod(stage, "a", node="node-of-broken")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        metrics = stage.env.metrics
        allowed = metrics.value(ALLOWED_DISRUPTIONS, nodepool="default", reason="Empty")
        return await claims(stage), allowed, metrics.value(CONSUMING_BUDGETS, nodepool="default", reason="Empty")

    assert on_stage(unready).value == (["broken", "web-1"], 1.0, 1.0)


def test_a_budget_that_cannot_be_read_allows_nothing() -> None:
    """An invalid schedule fails closed; the pool's event names the budget."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        wrong = {"nodes": "50%", "schedule": "0 25 * * *", "duration": "1h"}
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "100%"}, wrong]})
        await add_owned(stage, pool=pool)
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(300)
        events = await stage.events(names.DISRUPTION_BLOCKED)
        return await claims(stage), [each.message for each in events if each.involved_object.kind == "NodePool"]

    kept, (message,) = on_stage(body).value
    assert kept == ["web-1"]
    assert message.startswith("No allowed disruptions for disruption reason Empty due to blocking budget")
    assert "spec.disruption.budgets[1]: schedule '0 25 * * *' is no cron schedule: Bad hour" in message


class Meddling:
    """An API that does something right after the first taint has been written, as a slow scheduler would."""

    def __init__(self, api: MemoryApi) -> None:
        self._api = api
        self.meddle: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    async def patch(self, kind: Kind[Any], name: str, patch: Any, **more: Any) -> Any:
        answer = await self._api.patch(kind, name, patch, **more)
        if kind.kind == "Node" and self.meddle is not None and "taints" in patch.get("spec", {}):
            meddle, self.meddle = self.meddle, None
            await meddle()
        return answer


def meddling_stage(meddle: str) -> list[Any]:
    """Runs scale-down of one empty node while something happens right after its taint; what is left and tainted then."""
    holder: list[Meddling] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Meddling(real))
        return holder[0]

    async def body(stage: Stage) -> list[Any]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)

        async def happens() -> None:
            match meddle:
                case "pod":
                    await add_pod(stage, "late", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
                case "annotation":
                    annotation = {names.DO_NOT_DISRUPT_ANNOTATION: "true"}
                    await stage.admin.patch(NODE, "node-of-web-1", {"metadata": {"annotations": annotation}})
                case "pause":
                    annotation = {names.PAUSED_ANNOTATION: "true"}
                    await stage.admin.patch(NODE_POOL, "default", {"metadata": {"annotations": annotation}})
                case "nomination":
                    stage.env.state.nominate("node-of-web-1", seconds=1000)

        holder[0].meddle = happens
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(100)
        failed = stage.env.metrics.value(FAILED_VALIDATIONS, consolidation_type="empty")
        node = await stage.node("node-of-web-1")
        excluded = names.EXCLUDE_FROM_LOAD_BALANCERS_LABEL in node.metadata.labels
        return [await claims(stage), await tainted(stage), excluded, failed]

    return on_stage(body, api=api).value


def test_what_comes_after_the_taint_saves_the_node() -> None:
    """A pod, an annotation, a pause or a nomination that came meanwhile is found by the late look, and the mark goes."""
    for meddle in ("pod", "annotation", "pause", "nomination"):
        assert meddling_stage(meddle) == [["web-1"], [], False, 1.0], meddle


def test_a_node_that_lost_its_mark_is_not_removed() -> None:
    """Somebody takes the taint off again before the late look: the node is marked anew before it goes."""
    holder: list[Meddling] = []
    marked: list[list[str]] = []

    def api(real: MemoryApi) -> Api:
        holder.append(Meddling(real))
        return holder[0]

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)

        async def delete(kind: Kind[Any], name: str, **more: Any) -> None:
            if kind == NODE_CLAIM:
                marked.append(await tainted(stage))
            await holder[0]._api.delete(kind, name, **more)

        holder[0].meddle = functools.partial(stage.admin.patch, NODE, "node-of-web-1", {"spec": {"taints": None}})
        holder[0].delete = delete  # type: ignore[attr-defined]
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(100)
        return await claims(stage)

    assert on_stage(body, api=api).value == []
    assert marked == [["node-of-web-1"]]


def test_taints_that_nobody_stands_for_are_removed() -> None:
    """After a crash a node may be left tainted: unless somebody is deleting it, it takes pods again."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        pool = await stage.add_pool(disruption={"consolidateAfter": "Never"})
        await add_owned(stage, pool=pool)
        await add_owned(stage, "web-2", pool=pool)
        await stage.join("foreign", provider_id="other://1", taints=())
        taint = {"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"}
        for name in ("node-of-web-1", "node-of-web-2", "foreign"):
            await stage.set_taints(name, [taint])
        await stage.admin.delete(NODE_CLAIM, "web-2")
        await stage.start(Disruption(stage.env))
        await asyncio.sleep(30)
        return await tainted(stage), await claims(stage)

    assert on_stage(body).value == (["foreign", "node-of-web-2"], ["web-1"])


def test_an_idle_cluster_is_not_written_to() -> None:
    """Nodes that are used, and empty ones that must stay, cost no write and no further event."""

    async def body(stage: Stage) -> tuple[int, int]:
        pool = await stage.add_pool(disruption=ALL)
        never = await stage.add_pool("never", disruption={"consolidateAfter": "Never"})
        for number in range(5):
            await add_owned(stage, f"web-{number}", pool=pool)
            await add_pod(stage, f"p-{number}", node=f"node-of-web-{number}")
            await add_owned(stage, f"idle-{number}", pool=never)
        await stage.start(Disruption(stage.env), Termination(stage.env))
        await asyncio.sleep(60)
        before = stage.server.revision
        await asyncio.sleep(3600)
        return stage.writes(), stage.server.revision - before

    assert on_stage(body).value == (0, 0)


def test_observing_only_says_what_it_would_do() -> None:
    """No taint, no deletion, no event; the decision names the nodes, what stays and why, and the costs."""

    async def body(stage: Stage) -> tuple[int, list[Any]]:
        pool = await stage.add_pool(disruption=ALL)
        await add_owned(stage, pool=pool)
        await add_owned(stage, "kept", pool=pool, annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        await add_owned(stage, "used", pool=pool)
        await add_pod(stage, "a", node="node-of-used")
        decisions = Decisions(stage.env)
        await stage.start(Disruption(stage.env, decisions=decisions), decisions)
        await asyncio.sleep(60)
        assert await stage.events() == []
        told = (await stage.admin.list(DECISION)).items[-1].spec
        assert told.cost is not None
        assert told.cost.before is not None
        assert told.cost.after is not None
        assert 2.99 < told.cost.before / (told.cost.before - told.cost.after) < 3.01
        assert (1, "node-of-kept", "the node has the annotation karpenter.sh/do-not-disrupt") in {
            (each.nodes, each.example, each.reason) for each in told.kept
        }
        written = stage.writes() - len((await stage.admin.list(DECISION)).items)
        return written, [told.outcome, told.summary, [each.object for each in told.actions]]

    assert on_stage(body, settings=ControllerSettings(observe=True)).value == (
        0,
        ["WouldAct", "would remove 1 empty node", ["NodeClaim/web-1"]],
    )


def test_the_dearest_empty_node_goes_first() -> None:
    """With a budget of one, the machine that costs most is the first to go."""

    async def body(stage: Stage) -> list[str]:
        pool = await stage.add_pool(disruption={"consolidateAfter": "0s", "budgets": [{"nodes": "1"}]})
        for name, kind in (
            ("small", "c-1x-amd64-linux"),
            ("large", "c-64x-amd64-linux"),
            ("middle", "c-8x-amd64-linux"),
        ):
            await add_owned(stage, name, pool=pool)
            await stage.admin.patch(
                NODE, f"node-of-{name}", {"metadata": {"labels": {names.INSTANCE_TYPE_LABEL: kind}}}
            )
        await stage.start(Disruption(stage.env), Termination(stage.env))
        gone: list[str] = []
        for _ in range(300):
            await asyncio.sleep(0.5)
            there = await claims(stage)
            gone += [name for name in ("small", "middle", "large") if name not in there and name not in gone]
        return gone

    assert on_stage(body).value == ["large", "middle", "small"]
