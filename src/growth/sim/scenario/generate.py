"""A scenario from a seed: pools, workloads of every kind, budgets, priorities, volumes, and a burst that comes and goes.

Each one has a pool of its own for the burst, so that machines are bought and given back in every run; the rest differs
from seed to seed. Everything that is asked for can be had: what stays pending is the autoscaler's doing. What else a cluster
may have in it comes from `growth.sim.scenario.oddities`.
"""

from typing import Any, Final

from growth.api import names
from growth.api.kinds import Json
from growth.sim.ports import SimRandom
from growth.sim.scenario import manifests, oddities
from growth.sim.scenario.manifests import asks, cores
from growth.sim.scenario.model import Batch, Burst, Cron, PodShape, Rollout, Scenario, Waves, Workload, busy_seconds
from growth.sim.world.nodes import AGENT_TAINT

DEDICATED: Final = "example.com/dedicated"
IMPORTANT: Final = "important"
SERVERS: Final = "servers"
PATIENT: Final = "patient"


def generate(seed: int, *, hours: float = 1.0) -> Scenario:
    """Equal seeds and hours give equal scenarios."""
    random = SimRandom(seed, "scenario")
    busy = busy_seconds(hours)
    workloads: list[Workload] = [
        _burst(random.stream("burst"), busy),
        *_waves(random.stream("waves"), busy),
        _rollout(random.stream("rollout"), busy),
        _batch(random.stream("batch"), busy),
        _cron(random.stream("cron"), busy),
    ]
    if random.chance(0.5):
        workloads.append(_stateful(random.stream("stateful"), busy))
    servers: tuple[Json, ...] = ()
    growth = random.stream("servers")
    if growth.chance(0.45):
        servers = (_server_pool(growth),)
        workloads += _on_servers(growth, busy)
    odd = oddities.objects(random.stream("oddities"))
    return Scenario(
        hours=hours,
        objects=(
            *_policies(),
            *_pools(random.stream("pools")),
            *servers,
            _agent(),
            *_extras(random.stream("extras")),
            *odd,
        ),
        workloads=tuple(workloads),
        events=(
            *oddities.events(random.stream("events"), busy),
            *oddities.resized(random.stream("sizes"), busy, odd),
        ),
        settings=_settings(random.stream("settings")),
    )


def small(seed: int) -> Scenario:
    """One scale-up and one scale-down, and nothing else: for runs that are made again for every write."""
    random = SimRandom(seed, "small")
    pods = random.between(8, 12)
    requirement = cores("4", "8")
    return Scenario(
        hours=0.5,
        objects=(manifests.node_pool("default", requirements=(_on_demand(), requirement), consolidate_after="30s"),),
        workloads=(Burst(name="app", pods=pods, at="30s", lasts="5m", pod=PodShape(cpu="1", memory="1Gi")),),
    )


def _settings(random: SimRandom) -> dict[str, str | int | float | bool]:
    """How the autoscaler is run. A cap on machines holds the burst back and nothing else."""
    found: dict[str, str | int | float | bool] = {
        "vainBackOff": "20s"
    }  # doubled five times it is over before a world ends
    if random.chance(0.2):
        found["packer"] = "first-fit"
    if random.chance(0.2):
        found["maxNodes"] = random.between(32, 40)
    return found


# -- pools and policies -----------------------------------------------------------------------------------------------------


# Half of the pools leave nodes alone that have pods; of the others a few weigh what a move is worth.
POLICIES: Final = ("WhenEmpty", "WhenEmpty", "WhenEmptyOrUnderutilized", "WhenEmptyOrUnderutilized", "Balanced")


def _pools(random: SimRandom) -> tuple[Json, ...]:
    """One for all, one for the burst, and sometimes one that is preferred and small."""
    policies = random.stream("policies")  # a stream of its own: what else is drawn stays as it is
    general = manifests.node_pool(
        "general",
        requirements=(
            *random.choice(_SIZES),
            *random.choice(_MAKES),
            *random.choice(((), (_on_demand(),))),
        ),
        limits=random.choice((None, {"nodes": "80"}, {"nodes": "60", "cpu": "400"}, {"memory": "1Ti"})),
        consolidate_after=random.choice(("20s", "60s", "2m")),
        budgets=random.choice(
            (({"nodes": "100%"},), ({"nodes": "30%"},), ({"nodes": "5"},), ({"nodes": "2", "reasons": ["Drifted"]},))
        ),
        startup_taints=random.choice(((), (), ({"key": AGENT_TAINT, "effect": "NoSchedule"},))),
        grace=random.choice(("", "", "5m")),
        policy=policies.choice(POLICIES),
    )
    dedicated = manifests.node_pool(
        "dedicated",
        requirements=(cores("4"), _on_demand()),
        taints=({"key": DEDICATED, "value": "burst", "effect": "NoSchedule"},),
        labels={DEDICATED: "burst"},
        limits={"nodes": "40"},
        consolidate_after=random.choice(("10s", "30s", "60s")),
        policy=policies.choice(POLICIES),
    )
    if not random.chance(0.3):
        return general, dedicated
    preferred = manifests.node_pool(
        "preferred",
        requirements=(cores("8"), _on_demand()),
        limits={"nodes": str(random.between(1, 3))},
        weight=10,
        consolidate_after="60s",
        policy=policies.choice(POLICIES),
        limit_mode=policies.choice(("Hard", "Soft")),
    )
    return general, dedicated, preferred


def _server_pool(random: SimRandom) -> Json:
    """A pool of growth.dev beside the others, which its pods select by name."""
    spec: Json = {
        "serverTypes": [
            {"name": "C-2x-amd64-linux", "max": random.between(10, 20)},
            {"name": "c-4x-amd64-linux", "min": random.between(0, 2), "max": random.between(8, 20)},
            {"name": "c-8x-amd64-linux", "max": random.between(1, 6), "priority": random.choice((0, 0, 1))},
        ],
        "scaleDownAfter": random.choice(("20s", "60s", "3m")),
    }
    if random.chance(0.5):
        spec["limits"] = {"nodes": random.between(12, 30)}
    if random.stream("optimise").chance(0.6):
        spec["optimise"] = "Continuous"
    return {"apiVersion": "growth.dev/v1alpha1", "kind": "NodePool", "metadata": {"name": SERVERS}, "spec": spec}


def _on_servers(random: SimRandom, busy: float) -> list[Workload]:
    """A burst that the pool can hold, and pods that come and go."""
    selector = {"nodeSelector": {names.POOL_LABEL: SERVERS}}
    burst = Burst(
        name="served",
        pods=random.between(8, 20),
        at=_after(random.uniform(0.05, 0.4) * busy),
        lasts=_after(random.uniform(0.2, 0.35) * busy),
        pod=PodShape(cpu=random.choice(("500m", "900m")), memory="512Mi", spec=selector),
    )
    # Spot machines are not replaced by spot machines.
    firm = {"nodeSelector": {names.POOL_LABEL: SERVERS, names.CAPACITY_TYPE_LABEL: "on-demand"}}
    waves = Waves(
        name="serving",
        low=random.between(0, 2),
        high=random.between(4, 10),
        period=_after(random.uniform(0.3, 0.6) * busy),
        steps=random.between(1, 3),
        pod=PodShape(cpu="700m", memory="256Mi", spec=firm),
    )
    return [burst, waves]


# Machines of two to eight cores, and of one make or another, in all the words that there are for it.
_SIZES: Final[tuple[tuple[Json, ...], ...]] = (
    (cores("2", "4"),),
    (cores("4"),),
    (cores("2", "4", "8"),),
    (asks(names.KWOK_INSTANCE_CPU_LABEL, "Gt", "1"), asks(names.KWOK_INSTANCE_CPU_LABEL, "Lt", "9")),
    (cores("2", "4"), {**asks(names.KWOK_INSTANCE_FAMILY_LABEL, "Exists"), "minValues": 2}),
)
_MAKES: Final[tuple[tuple[Json, ...], ...]] = (
    (asks(names.ARCH_LABEL, "In", "amd64"),),
    (asks(names.ARCH_LABEL, "In", "arm64"),),
    (asks(names.ARCH_LABEL, "In", "amd64", "arm64"),),
    (asks(names.ARCH_LABEL, "NotIn", "amd64"), asks("example.com/gpu", "DoesNotExist")),
)


def _policies() -> tuple[Json, ...]:
    return (
        manifests.storage_class(),
        manifests.priority_class(IMPORTANT, 1000),
        manifests.priority_class(PATIENT, -10, preemptionPolicy="Never"),
    )


def _agent() -> Json:
    """What every node runs besides."""
    shape = PodShape(cpu="50m", memory="64Mi", spec={"tolerations": [{"operator": "Exists"}]})
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "kube-system"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": manifests.pod_template("agent", shape),
        },
    }


def _extras(random: SimRandom) -> tuple[Json, ...]:
    """Budgets of the workloads, and now and then corrected prices."""
    found: list[Json] = [
        _budget("web", maxUnavailable="25%"),
        _budget("api", minAvailable=random.choice((1, "50%"))),
    ]
    if random.chance(0.25):
        found.append(
            {
                "apiVersion": "karpenter.sh/v1alpha1",
                "kind": "NodeOverlay",
                "metadata": {"name": "dearer"},
                "spec": {"requirements": [cores("2")], "priceAdjustment": random.choice(("+20%", "-10%"))},
            }
        )
    return tuple(found)


def _budget(app: str, **spec: Any) -> Json:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": manifests.NAMESPACE},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


_PROTECTIONS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"karpenter.sh/do-not-disrupt": "true"},
    {"karpenter.sh/do-not-disrupt": "2m"},
    {"karpenter.sh/do-not-disrupt": "soon"},
)


# -- workloads --------------------------------------------------------------------------------------------------------------


def _burst(random: SimRandom, busy: float) -> Burst:
    """On machines of its own, which are empty when it is over."""
    toleration = {"key": DEDICATED, "operator": "Equal", "value": "burst", "effect": "NoSchedule"}
    return Burst(
        name="burst",
        pods=random.between(80, 110),
        at=_after(random.uniform(0.05, 0.3) * busy),
        lasts=_after(random.uniform(0.2, 0.35) * busy),
        pod=PodShape(
            cpu=random.choice(("800m", "900m", "1100m")),
            memory=random.choice(("512Mi", "1Gi")),
            spec={"nodeSelector": {DEDICATED: "burst"}, "tolerations": [toleration]},
        ),
    )


def _waves(random: SimRandom, busy: float) -> tuple[Waves, ...]:
    web = Waves(
        name="web",
        low=random.between(4, 12),
        high=random.between(40, 70),
        period=_after(random.uniform(0.3, 0.6) * busy),
        steps=random.between(2, 5),
        pod=PodShape(
            cpu=random.choice(("250m", "400m", "600m")),
            memory=random.choice(("256Mi", "512Mi")),
            spec={
                "topologySpreadConstraints": [_spread("web", names.ZONE_LABEL, random.choice(("DoNotSchedule", "Any")))]
            },
        ),
    )
    cache = Waves(
        name="cache",
        low=2,
        high=random.between(5, 9),
        period=_after(random.uniform(0.4, 0.8) * busy),
        steps=2,
        pod=PodShape(cpu="300m", memory="1Gi", spec={"affinity": _apart("cache")}),
    )
    return web, cache


def _rollout(random: SimRandom, busy: float) -> Rollout:
    options: tuple[Json, ...] = (
        {},
        {"priorityClassName": IMPORTANT},
        {"affinity": _near("web")},
        {"initContainers": [_container("prepare", "100m"), {**_container("proxy", "50m"), "restartPolicy": "Always"}]},
        {"topologySpreadConstraints": [_spread("api", names.HOSTNAME_LABEL, "Any")]},
    )
    return Rollout(
        name="api",
        replicas=random.between(10, 20),
        every=_after(random.uniform(0.3, 0.5) * busy),
        pod=PodShape(cpu=random.choice(("200m", "500m")), memory="256Mi", spec=random.choice(options)),
    )


def _stateful(random: SimRandom, busy: float) -> Rollout:
    """Pods with volumes, which are tied to the zones where they were made."""
    return Rollout(
        name="store",
        replicas=random.between(2, 5),
        every=_after(random.uniform(0.4, 0.7) * busy),
        pod=PodShape(cpu="500m", memory="1Gi", volume="10Gi"),
    )


def _batch(random: SimRandom, busy: float) -> Batch:
    pods = random.between(20, 50)
    return Batch(
        name="batch",
        pods=pods,
        parallelism=random.choice((0, pods // 2)),
        runs=_after(random.uniform(0.03, 0.1) * busy),
        at=_after(random.uniform(0.1, 0.5) * busy),
        pod=PodShape(cpu="500m", memory="512Mi", spec={"priorityClassName": PATIENT}),
    )


def _cron(random: SimRandom, busy: float) -> Cron:
    return Cron(
        name="report",
        pods=random.between(1, 5),
        every=_after(random.uniform(0.1, 0.3) * busy),
        runs=_after(random.uniform(20.0, 90.0)),
        at="20s",
        pod=PodShape(cpu="1", memory="512Mi", annotations=random.choice(_PROTECTIONS)),
    )


# -- words ------------------------------------------------------------------------------------------------------------------


def _after(seconds: float) -> str:
    return f"{max(1, round(seconds))}s"


def _on_demand() -> Json:
    return asks(names.CAPACITY_TYPE_LABEL, "In", "on-demand")


def _container(name: str, cpu: str) -> Json:
    return {"name": name, "image": "simulated", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}


def _spread(app: str, key: str, unsatisfiable: str) -> Json:
    return {
        "maxSkew": 1 if key == names.ZONE_LABEL else 2,
        "topologyKey": key,
        "whenUnsatisfiable": unsatisfiable if unsatisfiable == "DoNotSchedule" else "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": app}},
    }


def _apart(app: str) -> Json:
    """No two on one node."""
    term = {"topologyKey": names.HOSTNAME_LABEL, "labelSelector": {"matchLabels": {"app": app}}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def _near(app: str) -> Json:
    """Rather in a zone with those."""
    term = {"topologyKey": names.ZONE_LABEL, "labelSelector": {"matchLabels": {"app": app}}}
    preferred = [{"weight": 50, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
