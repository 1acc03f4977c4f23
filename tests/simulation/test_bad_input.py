"""Bad input beside good, before the whole autoscaler: each is told of where it stands, and everything else goes on."""

import asyncio

from growth.api.events import EVENT
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodePool
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD
from growth.sim import kernel as sim
from growth.sim.kernel import Kernel
from growth.sim.trials.owning.life import Life
from growth.sim.trials.owning.stage import Pool, Stage
from tests.manifests import KWOK_CLASS, need, node_pool, pod

GOOD_PODS = 6


def bad_pods() -> list[Json]:
    """A selector that compares with no number, one that contradicts itself, one that asks for what nobody sells."""
    wanted = "requiredDuringSchedulingIgnoredDuringExecution"
    more_than_text = {"key": "example.com/level", "operator": "Gt", "values": ["abc"]}
    affinity = {"nodeAffinity": {wanted: {"nodeSelectorTerms": [{"matchExpressions": [more_than_text]}]}}}
    amd = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    contrary = {"nodeAffinity": {wanted: {"nodeSelectorTerms": [{"matchExpressions": [amd]}]}}}
    return [
        pod("invalid-selector", affinity=affinity),
        pod("contradiction", affinity=contrary, nodeSelector={"kubernetes.io/arch": "arm64"}),
        pod("nowhere", nodeSelector={"example.com/nobody": "sets-this"}),
    ]


def bad_pools() -> list[Json]:
    arch = "kubernetes.io/arch"
    three_cores = need("karpenter.kwok.sh/instance-cpu", "In", "3")
    return [
        node_pool("no-class", template={"nodeClassRef": {**KWOK_CLASS, "name": "missing"}}, weight=90),
        node_pool("contrary", need(arch, "In", "arm64"), weight=80),
        node_pool("static", three_cores, replicas=3),
        node_pool("not-sold", three_cores, weight=70),
    ]


def bad_nodes() -> list[Json]:
    """One without a provider ID, one that somebody else made with our label."""
    ours = {"karpenter.sh/nodepool": "default"}
    return [
        {"metadata": {"name": "no-id", "labels": ours}, "spec": {}},
        {"metadata": {"name": "foreign", "labels": ours}, "spec": {"providerID": "other://machine"}},
    ]


async def everything(stage: Stage) -> None:
    """All of it is there before the autoscaler starts; then a workload comes and goes."""
    await stage.prepare(Pool())
    for body in bad_pools():
        await stage.admin.create(NODE_POOL, body)
    for body in bad_nodes():
        await stage.admin.create(NODE, body)
    for body in bad_pods():
        await stage.admin.create(POD, body, namespace="default")
    stage.start("growth", Life())
    await stage.deploy("good", GOOD_PODS)
    await asyncio.sleep(180)
    stage.check()


def conditions(pool: NodePool) -> dict[str, tuple[str, str]]:
    return {each.type: (each.status, each.reason) for each in pool.status.conditions}


async def told(stage: Stage, kind: str, name: str) -> dict[str, str]:
    """Reason and message of the warnings about an object."""
    events = (await stage.admin.list(EVENT)).items
    return {
        each.reason: each.message
        for each in events
        if (each.involved_object.kind, each.involved_object.name) == (kind, name) and each.type == "Warning"
    }


def test_bad_input_harms_only_itself() -> None:
    """Of everything bad at once each says so in a condition or an event, no other pool or pod notices."""

    async def main(kernel: Kernel) -> None:
        stage = Stage(kernel)
        await everything(stage)
        pools = {pool.metadata.name: pool for pool in (await stage.admin.list(NODE_POOL)).items}

        assert conditions(pools["default"])["Ready"][0] == "True"
        good = [each for each in await stage.pods() if each.metadata.name.startswith("good")]
        assert [each.status.phase for each in good] == ["Running"] * GOOD_PODS
        claims = (await stage.admin.list(NODE_CLAIM)).items
        assert {claim.metadata.labels["karpenter.sh/nodepool"] for claim in claims} == {"default"}

        assert conditions(pools["no-class"])["NodeClassReady"] == ("False", "NodeClassNotFound")
        assert conditions(pools["contrary"])["ValidationSucceeded"] == ("False", "NodePoolValidationFailed")
        assert list(await told(stage, "NodePool", "static")) == ["NoCompatibleInstanceTypes"]
        assert list(await told(stage, "NodePool", "not-sold")) == ["NoCompatibleInstanceTypes"]
        assert await told(stage, "NodePool", "default") == {}

        for name, said in {
            "invalid-selector": "example.com/level: Gt takes exactly one integer",
            "contradiction": "kubernetes.io/arch",
            "nowhere": "example.com/nobody",
        }.items():
            assert said in (await told(stage, "Pod", name))["FailedScheduling"], name

        assert list(await told(stage, "Node", "no-id")) == ["ProviderIDMissing"]
        assert list(await told(stage, "Node", "foreign")) == ["NodeClaimNotFound"]
        for node in bad_nodes():
            name = node["metadata"]["name"]
            kept = await stage.admin.get(NODE, name)
            assert (kept.metadata.deletion_timestamp, kept.metadata.finalizers, kept.spec.taints) == (None, (), ())

    sim.run(main, seed=1, limit_seconds=100_000)
