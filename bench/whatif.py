"""What `growth whatif --remove-node` says, beside what happens in the simulated world when the node is removed.

Each case is a random cluster: pools of both APIs with limits, taints and zones, Deployments that spread, keep apart or ask
for zones and pools, a DaemonSet, budgets of pods. The real autoscaler brings it up in virtual time, without faults and with
consolidation off. When it has settled it is read as `growth whatif` reads a cluster, a random node of ours is chosen, and
the question is asked. Then the Node is deleted, and time passes until all has settled again. A case agrees where

- the pods without a place are the same, by the workload that they are of (their successors have other names), and
- the machines bought since are the same: pool, type, zone and terms, as many of each.

Where `whatif` says that the drain would wait for pods that cannot be evicted, it agrees if the node is there for good.

The others are listed with what each side says and why they differ, which is tried out (`bench.foretelling`). Where nothing
that was tried gives what happened, the difference is not explained, and is counted as such.

`--first N` begins at another seed. Nothing is timed. It ends with 1 where fewer than 95 in 100 agree.
"""

import argparse
import asyncio
import collections
import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench.foretelling import UNEXPLAINED, Came, Machine, Watch, labelled, planned, why, workload
from growth.api import names
from growth.api.growthpools import GROWTH_POOL
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import NODE
from growth.api.pods import POD, Pod
from growth.cli.live import read_from
from growth.cli.manifests.collection import Collection
from growth.planning.explaining.scene import Scene
from growth.planning.explaining.whatif import Changed, Played, compared, likely, removed
from growth.planning.solve import Options
from growth.providers.catalogues import builtin
from growth.sim import kernel as sim
from growth.sim.campaign import quiet
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests
from growth.sim.scenario.model import PodShape
from growth.sim.world.world import World, WorldSettings

ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c")
SETTLED_SECONDS: Final = 400.0  # without a change: more than the longest rest of a pod that was refused
LONGEST_SECONDS: Final = 3600.0
LOOK_SECONDS: Final = 20.0
AGREEING: Final = 0.95
TYPES: Final = ("c-4x-amd64-linux", "s-4x-amd64-linux", "s-8x-amd64-linux", "m-4x-amd64-linux")

Machines = collections.Counter[Machine]
Waiting = collections.Counter[str]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What both sides say of one seed. `why` is empty where they agree."""

    seed: int
    node: str
    nodes: int
    pods: int
    said: tuple[Waiting, Machines]
    happened: tuple[Waiting, Machines]
    held: bool = False
    stuck: bool = False
    why: str = ""

    @property
    def agrees(self) -> bool:
        return self.held == self.stuck and (self.held or self.said == self.happened)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first case")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    quiet()
    cases = [run(seed) for seed in range(options.first, options.first + options.cases)]
    differing = [case for case in cases if not case.agrees]
    return {
        "cases": len(cases),
        "agree": len(cases) - len(differing),
        "nodes": sum(case.nodes for case in cases),
        "pods": sum(case.pods for case in cases),
        "cases with machines bought": sum(bool(case.happened[1]) for case in cases),
        "cases in which the drain waits": sum(case.stuck for case in cases),
        "cases with pods left over": sum(bool(case.happened[0]) for case in cases),
        "cases not explained": sum(case.why.startswith(UNEXPLAINED) for case in differing),
        "differ": [
            {
                "seed": case.seed,
                "node": case.node,
                "said": _shown(case.said),
                "happened": _shown(case.happened),
                "why": case.why,
            }
            for case in differing
        ],
    }


def failed(result: Mapping[str, Any]) -> bool:
    return bool(result["agree"] < AGREEING * result["cases"])


def _shown(side: tuple[Waiting, Machines]) -> str:
    waiting, machines = side
    parts = [f"{number} of {name} left over" for name, number in sorted(waiting.items())]
    parts += [f"{number} {kind} in {zone} for {pool}" for (pool, kind, zone, _), number in sorted(machines.items())]
    return ", ".join(parts) or "nothing"


# -- one case ---------------------------------------------------------------------------------------------------------


def run(seed: int) -> Case:
    """One cluster, one node."""

    async def main(kernel: Kernel) -> Case:
        world = World(kernel, WorldSettings(replicas=("growth-a",)))
        await world.begin()
        watch = Watch()
        world.witness.listeners.append(watch)
        await world.create(cluster(random.Random(f"whatif {seed}")))
        world.start()
        await _settle(world)
        return await _case(world, seed, watch)

    return sim.run(main, seed=seed).value


async def _case(world: World, seed: int, watch: Watch) -> Case:
    before = await _claims(world)
    scene = await _scene(world)
    chosen = _chosen(scene, before, random.Random(f"node {seed}"))
    changed = removed(scene, [chosen])
    found = compared(scene, changed)
    said = _outcome(likely(changed))
    watch.ask()
    await world.admin.delete(NODE, chosen)
    await _settle(world)
    claims = await _claims(world)
    pods = await _pods(world)
    bought = [claim for name, claim in claims.items() if name not in before]
    happened = (
        collections.Counter(_workload(pod) for pod in pods if not pod.spec.node_name and not _done(pod)),
        collections.Counter(labelled(claim.metadata.labels) for claim in bought),
    )
    case = Case(
        seed=seed,
        node=chosen,
        nodes=len(before),
        pods=len(pods),
        said=said,
        happened=happened,
        held=bool(found.held),
        stuck=any(each.metadata.name == chosen for each in (await world.admin.list(NODE)).items),
    )
    return case if case.agrees else dataclasses.replace(case, why=_why(case, changed, watch.came()))


def _chosen(scene: Scene, claims: Mapping[str, NodeClaim], chance: random.Random) -> str:
    """One of our nodes that would be drained now, where there is one: `whatif` says which would not."""
    nodes = sorted(claim.status.node_name for claim in claims.values() if claim.status.node_name)
    chance.shuffle(nodes)
    return next((name for name in nodes if not compared(scene, removed(scene, [name])).held), nodes[0])


async def _scene(world: World) -> Scene:
    """As `growth whatif` reads a cluster."""
    collection = Collection()
    await read_from(world.admin, collection)
    collected = collection.finished(expand=False)
    return Scene(
        objects=collected.objects,
        catalogue=builtin("kwok"),
        now=world.cluster.clock.now(),
        overlays=collected.overlays,
        disruption_budgets=collected.disruption_budgets,
        buffered=collected.buffered,
        planning=Options(packer="cost"),
    )


def _outcome(found: Played) -> tuple[Waiting, Machines]:
    scene = found.scene
    return (
        collections.Counter(workload(scene.pods[each.pod]) for each in scene.plan.unplaced),
        collections.Counter(map(planned, found.bought)),
    )


def _workload(pod: Pod) -> str:
    return pod.metadata.labels.get("app", pod.metadata.name)


def _done(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"} or pod.metadata.deletion_timestamp is not None


def _why(case: Case, changed: Changed, came: Came) -> str:
    if case.held != case.stuck:
        return "the drain waits for a budget of pods" if case.stuck else "the budgets of pods let it go in the end"
    return why(changed, came, happened=case.happened, outcome=_outcome)


async def _claims(world: World) -> dict[str, NodeClaim]:
    listed = (await world.admin.list(NODE_CLAIM)).items
    return {each.metadata.name: each for each in listed if each.metadata.deletion_timestamp is None}


async def _pods(world: World) -> Sequence[Pod]:
    listed = (await world.admin.list(POD)).items
    return [pod for pod in listed if not any(each.kind == "DaemonSet" for each in pod.metadata.owner_references)]


async def _settle(world: World) -> None:
    """Until pods, claims and nodes have been the same for a while."""
    last: object = None
    since = began = world.kernel.time()
    while world.kernel.time() - began < LONGEST_SECONDS:
        await asyncio.sleep(LOOK_SECONDS)
        world.check()
        pods = await _pods(world)
        now = (
            sorted((pod.metadata.name, pod.spec.node_name) for pod in pods),
            sorted(each.metadata.name for each in (await world.admin.list(NODE_CLAIM)).items),
            sorted(each.metadata.name for each in (await world.admin.list(NODE)).items),
        )
        if now != last:
            last, since = now, world.kernel.time()
        elif world.kernel.time() - since >= SETTLED_SECONDS:
            return


# -- random clusters --------------------------------------------------------------------------------------------------


def cluster(chance: random.Random) -> list[Json]:
    """Pools, workloads, and what else a cluster has."""
    objects: list[Json] = [manifests.storage_class(), _general(chance)]
    taint = {"key": "team", "value": "data", "effect": "NoSchedule"}
    if chance.random() < 0.4:
        objects.append(
            manifests.node_pool(
                "data",
                requirements=(manifests.cores("4", "8"), *_plain()),
                taints=(taint,),
                consolidate_after="Never",
                weight=chance.choice((None, 10)),
                limits={"nodes": str(chance.randint(1, 4))} if chance.random() < 0.5 else None,
            )
        )
    growth = chance.random() < 0.4
    if growth:
        objects.append(_growth_pool(chance))
    for number in range(chance.randint(3, 6)):
        shape = _shape(chance, f"app-{number}", data=len(objects) > 2, growth=growth, taint=taint)
        objects.append(manifests.deployment(f"app-{number}", chance.randint(1, 14), shape))
        if chance.random() < 0.25:
            objects.append(_budget(f"app-{number}", chance))
    if chance.random() < 0.4:
        objects.append(_daemon_set(chance))
    return objects


def _plain() -> tuple[Json, ...]:
    return (
        manifests.asks(names.CAPACITY_TYPE_LABEL, "In", names.ON_DEMAND),
        manifests.asks(names.ARCH_LABEL, "In", "amd64"),
    )


def _general(chance: random.Random) -> Json:
    zones = chance.sample(ZONES, chance.randint(1, 3))
    cores = chance.choice((("4",), ("4", "8"), ("2", "4", "8"), ("8", "16")))
    limits = {"nodes": str(chance.randint(3, 24))} if chance.random() < 0.3 else None
    if limits is None and chance.random() < 0.2:
        limits = {"cpu": str(chance.randint(16, 128))}
    return manifests.node_pool(
        "general",
        requirements=(manifests.cores(*cores), *_plain(), manifests.asks(names.ZONE_LABEL, "In", *zones)),
        consolidate_after="Never",
        limits=limits,
    )


def _growth_pool(chance: random.Random) -> Json:
    kinds = chance.sample(TYPES, chance.randint(1, 2))
    return {
        "apiVersion": GROWTH_POOL.api_version,
        "kind": GROWTH_POOL.kind,
        "metadata": {"name": "simple"},
        "spec": {
            "serverTypes": [{"name": kind, "max": chance.randint(1, 5)} for kind in kinds],
            "nodeClassRef": manifests.NODE_CLASS,
            "scaleDownAfter": "24h",
        },
    }


def _shape(chance: random.Random, app: str, *, data: bool, growth: bool, taint: Json) -> PodShape:
    spec: Json = {"terminationGracePeriodSeconds": chance.choice((1, 30))}
    selector = {"matchLabels": {"app": app}}
    kind = chance.random()
    if kind < 0.2:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": chance.choice((1, 2)),
                "topologyKey": chance.choice((names.ZONE_LABEL, names.HOSTNAME_LABEL)),
                "whenUnsatisfiable": chance.choice(("DoNotSchedule", "ScheduleAnyway")),
                "labelSelector": selector,
            }
        ]
    elif kind < 0.35:
        term = {"topologyKey": names.HOSTNAME_LABEL, "labelSelector": selector}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    elif kind < 0.45:
        spec["nodeSelector"] = {names.ZONE_LABEL: chance.choice(ZONES)}
    elif kind < 0.6 and growth:
        spec["nodeSelector"] = {names.POOL_LABEL: "simple"}
    elif kind < 0.75 and data:
        spec["tolerations"] = [{"key": taint["key"], "operator": "Exists"}]
    return PodShape(
        cpu=f"{chance.choice((100, 250, 500, 900, 1500, 2500, 3500))}m",
        memory=f"{chance.choice((128, 512, 1024, 3000, 6000))}Mi",
        spec=spec,
    )


def _budget(app: str, chance: random.Random) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": manifests.NAMESPACE},
        "spec": {"maxUnavailable": chance.choice((1, 2)), "selector": {"matchLabels": {"app": app}}},
    }


def _daemon_set(chance: random.Random) -> Json:
    template = manifests.pod_template("agent", PodShape(cpu=f"{chance.choice((50, 200))}m", memory="128Mi"))
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": manifests.NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template},
    }
