"""Leaks are collected both ways, and nothing is taken on a doubt."""

import asyncio
import dataclasses
import datetime as dt
from typing import Any

from growth.api import names
from growth.api.clouds import CloudMachine, CloudUnavailable
from growth.api.core import CONFIG_MAP, NAMESPACE
from growth.api.karpenter import NODE_CLAIM
from growth.api.nodes import NODE
from growth.controllers.collection import Collection
from growth.controllers.collection.controller import COLLECTED, FAILED, HELD, UNREADABLE
from growth.controllers.disrupted import CLAIMS_DISRUPTED
from growth.controllers.settings import ControllerSettings
from growth.controllers.termination import Termination
from tests.simulation.ending import CLASS_LABEL, add_owned, add_pod, left, pods, start_kubelets
from tests.simulation.owning import BlindApi, Stage, on_stage


def leak(stage: Stage, name: str, *, age: float | None = 3600, **more: Any) -> CloudMachine:
    """A machine whose claim is gone."""
    born = None if age is None else stage.env.clock.now() - dt.timedelta(seconds=age)
    uid = more.pop("uid", f"uid-{name}")
    machine = CloudMachine(provider_id=f"scripted://{name}", claim=name, claim_uid=uid, created=born, **more)
    stage.cloud.machines[uid or name] = machine
    return machine


def machines(stage: Stage) -> list[str]:
    return sorted(each.provider_id.removeprefix("scripted://") for each in stage.cloud.machines.values())


async def held(stage: Stage) -> dict[str, str]:
    """What stands in the ConfigMap; empty where there is none."""
    listed = await stage.admin.list(CONFIG_MAP, namespace="growth")
    return next((dict(each.data) for each in listed.items if each.metadata.name == "growth-collection"), {})


async def prepare(stage: Stage, owned: int = 4) -> None:
    await stage.admin.create(NAMESPACE, {"metadata": {"name": "growth"}})
    for number in range(owned):
        await add_owned(stage, f"web-{number}")


def test_a_machine_without_a_claim_goes() -> None:
    """Its claim is looked for once more, by name; machines with claims are left alone."""

    async def body(stage: Stage) -> list[str]:
        await prepare(stage)
        leak(stage, "lost")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(10)
        assert stage.env.metrics.value(COLLECTED, kind="machine") == 1
        return machines(stage)

    assert on_stage(body).value == ["web-0", "web-1", "web-2", "web-3"]


def test_a_machine_of_another_claim_of_the_same_name_is_a_leak() -> None:
    """Names may be used again; the UID says whose machine it is."""

    async def body(stage: Stage) -> tuple[list[str], list[str]]:
        await prepare(stage)
        leak(stage, "web-0-old", uid="before")
        stage.cloud.machines["before"] = dataclasses.replace(stage.cloud.machines["before"], claim="web-0")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(10)
        return machines(stage), [each.metadata.name for each in (await stage.admin.list(NODE_CLAIM)).items]

    kept, claims = on_stage(body).value
    assert kept == claims == ["web-0", "web-1", "web-2", "web-3"]


def test_young_machines_are_left_until_they_are_old_enough() -> None:
    """A machine may be listed a moment before its claim can be; where the cloud tells no age it is seen twice first."""

    async def body(stage: Stage) -> list[list[str]]:
        await prepare(stage, 1)
        leak(stage, "young", age=5)
        leak(stage, "ageless", age=None)
        await stage.start(Collection(stage.env))
        await asyncio.sleep(60)
        seen = [machines(stage)]
        await asyncio.sleep(90)
        return [*seen, machines(stage)]

    assert on_stage(body).value == [["ageless", "web-0", "young"], ["web-0"]]


def test_a_machine_that_is_going_is_left_to_go() -> None:
    """What the cloud is taking down already is no leak."""

    async def body(stage: Stage) -> tuple[list[str], float]:
        await prepare(stage, 1)
        leak(stage, "going", deleting=True)
        await stage.start(Collection(stage.env))
        await asyncio.sleep(300)
        return machines(stage), stage.env.metrics.value(COLLECTED, kind="machine")

    assert on_stage(body).value == (["going", "web-0"], 0.0)


def test_unknown_is_not_zero() -> None:
    """A list that fails, of machines or of claims, collects nothing; nor does a question that gets no answer."""

    async def body(stage: Stage) -> tuple[list[str], int, float]:
        await prepare(stage)
        leak(stage, "lost")

        async def broken() -> list[CloudMachine]:
            raise CloudUnavailable("the list broke off")

        async def fail(provider_id: str) -> CloudMachine:
            raise CloudUnavailable(f"no answer about {provider_id}")

        stage.cloud.list = broken  # type: ignore[method-assign]
        await stage.start(Collection(stage.env))
        await asyncio.sleep(600)
        failed = stage.env.metrics.value(FAILED)

        async def nothing() -> list[CloudMachine]:
            return []

        stage.cloud.list = nothing  # type: ignore[method-assign]
        stage.cloud.get = fail  # type: ignore[method-assign]
        await asyncio.sleep(600)
        return machines(stage), len((await stage.admin.list(NODE_CLAIM)).items), failed

    left_over, claims, failed = on_stage(body).value
    assert left_over == ["lost", "web-0", "web-1", "web-2", "web-3"]
    assert claims == 4
    assert failed >= 5


def test_nothing_is_collected_while_nodes_cannot_be_seen() -> None:
    """A machine whose Node came while the watch was broken might run pods: it waits until Nodes are known again."""

    async def body(stage: Stage) -> list[list[str]]:
        await prepare(stage)
        await stage.start(Collection(stage.env), Termination(stage.env))
        assert isinstance(stage.env.api, BlindApi)
        stage.env.api.blind.append(NODE)
        await asyncio.sleep(900)  # until the server ends the watch
        assert not stage.env.state.nodes.synced
        await stage.join("late", provider_id="scripted://lost", labels={CLASS_LABEL: "default"}, taints=())
        await stage.admin.patch(NODE, "late", {"metadata": {"finalizers": [names.TERMINATION_FINALIZER]}})
        await add_pod(stage, "p", node="late", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        leak(stage, "lost")
        await asyncio.sleep(600)
        seen = [machines(stage)]
        stage.env.api.blind.clear()
        await asyncio.sleep(600)
        assert (await stage.node("late")).metadata.deletion_timestamp is not None, "its pods are asked to leave"
        return [*seen, machines(stage)]

    everything = ["lost", "web-0", "web-1", "web-2", "web-3"]
    assert on_stage(body, api=BlindApi).value == [everything, everything]


def test_a_claim_goes_when_its_machine_was_not_found_twice() -> None:
    """Twice, a minute apart, and its Node is not ready; then Node and claim are gone without a drain."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await prepare(stage)
        claim = await stage.claim("web-0")
        await stage.set_ready("node-of-web-0", "Unknown")
        await add_pod(stage, "p", node="node-of-web-0", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
        del stage.cloud.machines[claim.metadata.uid]
        await stage.start(Collection(stage.env), Termination(stage.env))
        await asyncio.sleep(50)
        seen = [await left(stage)]
        await asyncio.sleep(30)
        assert stage.env.metrics.value(COLLECTED, kind="nodeclaim") == 1
        labels = {
            "reason": "garbage_collected",
            "nodepool": "",
            "capacity_type": "on-demand",
            "consolidation_policy": "",
            "termination_mode": "graceful",
        }
        assert stage.env.metrics.value(CLAIMS_DISRUPTED, **labels) == 1
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(4, 4, 3), (3, 3, 3)]


def test_a_claim_goes_when_its_node_was_taken_away() -> None:
    """Finalizer and Node were removed by hand: no pod can come there, so the machine goes too, a minute later."""

    async def body(stage: Stage) -> list[tuple[int, int, int]]:
        await prepare(stage)
        await stage.start(Collection(stage.env), Termination(stage.env))
        await asyncio.sleep(10)
        await stage.admin.patch(NODE, "node-of-web-0", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE, "node-of-web-0")
        await asyncio.sleep(160)
        seen = [await left(stage)]
        await asyncio.sleep(60)
        return [*seen, await left(stage)]

    assert on_stage(body).value == [(4, 3, 4), (3, 3, 3)]


def test_a_node_that_comes_back_keeps_its_claim() -> None:
    """A kubelet that registers again in time is forgiven; a claim that never had a Node is not looked at."""

    async def body(stage: Stage) -> tuple[int, int, int]:
        await prepare(stage)
        await stage.cloud.create(await stage.add_claim("starting"))
        await stage.start(Collection(stage.env), Termination(stage.env))
        await asyncio.sleep(10)
        await stage.admin.patch(NODE, "node-of-web-0", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE, "node-of-web-0")
        await asyncio.sleep(130)
        await stage.join("node-of-web-0", provider_id="scripted://web-0", ready=False)
        await asyncio.sleep(900)
        return await left(stage)

    assert on_stage(body).value == (5, 4, 5)


def test_many_nodes_taken_away_are_held_back() -> None:
    """Whoever deleted all Nodes did not mean to give all machines back: people are asked."""

    async def body(stage: Stage) -> tuple[tuple[int, int, int], str]:
        await prepare(stage, 5)
        await stage.start(Collection(stage.env), Termination(stage.env))
        for number in range(5):
            await stage.admin.patch(NODE, f"node-of-web-{number}", {"metadata": {"finalizers": None}})
            await stage.admin.delete(NODE, f"node-of-web-{number}")
        await asyncio.sleep(900)
        return await left(stage), (await held(stage))["why"]

    assert on_stage(body).value == (
        (5, 0, 5),
        "5 of 5 NodeClaims would be removed, more than 3 and more than 20%",
    )


def test_a_claim_whose_node_is_ready_stays() -> None:
    """A kubelet that reports is a machine, whatever the cloud says; and one that comes back in between is forgiven."""

    async def body(stage: Stage) -> int:
        await prepare(stage)
        ready, back = await stage.claim("web-0"), await stage.claim("web-1")
        del stage.cloud.machines[ready.metadata.uid]
        machine = stage.cloud.machines.pop(back.metadata.uid)
        await stage.set_ready("node-of-web-1", "Unknown")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(30)
        stage.cloud.machines[back.metadata.uid] = machine
        await asyncio.sleep(600)
        return len((await stage.admin.list(NODE_CLAIM)).items)

    assert on_stage(body).value == 4


def test_a_sweep_that_would_take_many_takes_none() -> None:
    """More than three and more than a fifth: nothing goes; list and hash stand in the ConfigMap, an event and a metric tell."""

    async def body(stage: Stage) -> None:
        await prepare(stage, 6)
        for number in range(4):
            leak(stage, f"lost-{number}")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(1200)
        assert len(machines(stage)) == 10
        told = await held(stage)
        assert told["machines"].splitlines() == [f"scripted://lost-{number}" for number in range(4)]
        assert told["nodeclaims"] == ""
        assert told["why"] == "4 of 10 machines would be removed, more than 3 and more than 20%"
        (event,) = await stage.events(names.COLLECTION_HELD)
        assert event.involved_object.name == names.COLLECTION_CONFIG_MAP
        assert f"{names.CONFIRM_COLLECTION_ANNOTATION}={told['hash']}" in event.message
        assert event.count == 1
        assert stage.env.metrics.value(HELD, kind="machine") == 4
        assert stage.writes() == 1, "the same list is written once"

    on_stage(body)


def test_a_fifth_of_many_may_go() -> None:
    """Of forty machines eight are a fifth: they go. A ninth would be too many."""

    async def body(stage: Stage, leaks: int) -> int:
        await prepare(stage, 40 - leaks)
        for number in range(leaks):
            leak(stage, f"lost-{number}")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(30)
        return len(machines(stage))

    assert on_stage(lambda stage: body(stage, 8)).value == 32
    assert on_stage(lambda stage: body(stage, 9)).value == 40


def test_machines_and_no_claim_at_all_is_a_wrong_cluster() -> None:
    """A single machine is held back where there is no claim: the cluster may be a restored one."""

    async def body(stage: Stage) -> tuple[list[str], str]:
        await prepare(stage, 0)
        leak(stage, "lost")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(600)
        return machines(stage), (await held(stage))["why"]

    assert on_stage(body).value == (
        ["lost"],
        "there are 1 machines and no NodeClaim at all: is this the right cluster?",
    )


async def confirm(stage: Stage, text: str) -> None:
    patch = {"metadata": {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: text}}}
    await stage.admin.patch(CONFIG_MAP, names.COLLECTION_CONFIG_MAP, patch, namespace="growth")


def test_a_confirmation_releases_exactly_its_list_once() -> None:
    """Another hash releases nothing; the right one releases that list, and the next list needs its own."""

    async def body(stage: Stage) -> list[int]:
        await prepare(stage, 0)
        for number in range(4):
            leak(stage, f"lost-{number}")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(10)
        first = (await held(stage))["hash"]
        await confirm(stage, "0123456789abcdef")
        await asyncio.sleep(130)
        seen = [len(machines(stage))]
        leak(stage, "one-more")
        await confirm(stage, first)
        await asyncio.sleep(130)
        seen.append(len(machines(stage)))
        await confirm(stage, (await held(stage))["hash"])
        await asyncio.sleep(130)
        seen.append(len(machines(stage)))
        for number in range(4):
            leak(stage, f"lost-{number}")
        leak(stage, "one-more")
        await asyncio.sleep(300)
        seen.append(len(machines(stage)))
        return seen

    assert on_stage(body).value == [4, 5, 0, 5]


def test_a_list_that_is_no_longer_true_is_taken_back() -> None:
    """When nothing is held back any more the ConfigMap goes, so that nobody confirms yesterday's list."""

    async def body(stage: Stage) -> list[bool]:
        await prepare(stage, 1)
        for number in range(4):
            leak(stage, f"lost-{number}")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(10)
        seen = [bool(await held(stage))]
        for number in range(4):
            del stage.cloud.machines[f"uid-lost-{number}"]
        await asyncio.sleep(130)
        return [*seen, bool(await held(stage))]

    assert on_stage(body).value == [True, False]


def test_many_claims_without_machines_are_held_back_too() -> None:
    """A cloud that has lost everything is asked about by people, not believed."""

    async def body(stage: Stage) -> tuple[int, str]:
        await prepare(stage, 6)
        for number in range(6):
            await stage.set_ready(f"node-of-web-{number}", "Unknown")
        stage.cloud.machines.clear()
        await stage.start(Collection(stage.env), Termination(stage.env))
        await asyncio.sleep(900)
        return len((await stage.admin.list(NODE_CLAIM)).items), (await held(stage))["why"]

    assert on_stage(body).value == (6, "6 of 6 NodeClaims would be removed, more than 3 and more than 20%")


def test_a_machine_that_nobody_can_name_is_left_to_people() -> None:
    """Its tags are unreadable: its claim cannot be looked for, so it is counted and left alone."""

    async def body(stage: Stage) -> tuple[list[str], float]:
        await prepare(stage, 1)
        machine = leak(stage, "odd", uid="")
        stage.cloud.machines["odd"] = dataclasses.replace(machine, claim="")
        await stage.start(Collection(stage.env))
        await asyncio.sleep(600)
        return machines(stage), stage.env.metrics.value(UNREADABLE)

    assert on_stage(body).value == (["odd", "web-0"], 1.0)


def test_pods_of_a_leaked_machine_leave_in_order() -> None:
    """The claim was removed by hand while its Node runs pods: the Node is drained first, then the machine goes."""

    async def body(stage: Stage) -> list[tuple[list[str], tuple[int, int, int]]]:
        await prepare(stage)
        await add_pod(stage, "p", node="node-of-web-0", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "10m"})
        start_kubelets(stage)
        await stage.start(Collection(stage.env), Termination(stage.env))
        await stage.admin.patch(NODE_CLAIM, "web-0", {"metadata": {"finalizers": None}})
        await stage.admin.delete(NODE_CLAIM, "web-0")
        await asyncio.sleep(500)
        seen = [(await pods(stage), await left(stage))]
        await asyncio.sleep(400)
        return [*seen, (await pods(stage), await left(stage))]

    settings = ControllerSettings(collection_grace=30.0)
    assert on_stage(body, settings=settings).value == [(["p"], (3, 4, 4)), ([], (3, 3, 3))]
