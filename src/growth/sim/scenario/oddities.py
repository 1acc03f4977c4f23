"""What else a cluster may have in it: kept room, pools that cannot be served, claims made by hand, people who change things.

Nothing here is needed by a workload, and nothing takes away what one needs for longer than a moment.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from growth.api import names
from growth.api.kinds import Json
from growth.sim.ports import SimRandom
from growth.sim.scenario import manifests
from growth.sim.scenario.manifests import asks, cores
from growth.sim.scenario.model import Event, PodShape

# Machines of these pools are for nobody: no pod tolerates this.
NOBODY: Final[Json] = {"key": "example.com/nobody", "value": "true", "effect": "NoSchedule"}


def objects(random: SimRandom) -> tuple[Json, ...]:
    """Each of these now and then."""
    found: list[Json] = []
    if random.chance(0.5):
        found += random.choice(_BUFFERS)(random)
    if random.chance(0.3):
        found.append(random.choice(bad_pools()))
    if random.chance(0.2):
        found.append(other_providers_pool())
    if random.chance(0.2):
        found.append(growth_pool())
    if random.chance(0.3):
        found.append(claim("by-hand"))
    if random.chance(0.3):
        found += [pod("alone"), pod("gated", schedulingGates=[{"name": "example.com/not-yet"}])]
    found += _static(random.stream("static"))
    return tuple(found)


def events(random: SimRandom, busy: float) -> tuple[Event, ...]:
    """What people do meanwhile, and undo."""
    found: list[Event] = []

    def during(seconds: float, there: Json, back: Json) -> None:
        at = random.uniform(0.1, 0.7) * busy
        what: Literal["", "status"] = "status" if "status" in there else ""
        found.append(Event(at=f"{at:.0f}s", do="patch", object=there, subresource=what))
        ends = min(at + seconds, busy - 1.0)
        found.append(Event(at=f"{ends:.0f}s", do="patch", object=back, subresource=what))

    if random.chance(0.3):
        ready = random.choice(("False", "Unknown"))
        during(random.uniform(30.0, 120.0), node_class_says(ready), node_class_says("True"))
    if random.chance(0.3):
        pool = random.choice(("general", "dedicated"))
        during(random.uniform(20.0, 200.0), paused(pool, "true"), paused(pool, "false"))
    if random.chance(0.3):
        low = str(random.between(1, 8))
        during(
            random.uniform(60.0, 300.0),
            spec_of("dedicated", limits={"nodes": low}),
            spec_of("dedicated", limits={"nodes": "40"}),
        )
    return tuple(found)


def resized(random: SimRandom, busy: float, pools: Sequence[Json]) -> tuple[Event, ...]:
    """What people ask of the static pools among these: more, fewer, another template."""
    found: list[Event] = []
    for pool in pools:
        if pool["kind"] != "NodePool" or pool["spec"].get("replicas") is None:
            continue
        name, at = pool["metadata"]["name"], 0.05 * busy
        for number in range(random.between(1, 3)):
            at += random.uniform(0.1, 0.25) * busy
            drift: Json = {"template": {"metadata": {"labels": {"example.com/round": str(number)}}}}
            size: Json = {"replicas": random.between(0, 4)}
            spec = random.choice((size, drift))
            found.append(Event(at=f"{at:.0f}s", do="patch", object=spec_of(name, **spec)))
    return tuple(found)


# -- pools of a fixed size -------------------------------------------------------------------------------------------------


def static_pool(replicas: int, *, limit: int | None = None, mode: str = "Hard", name: str = "static") -> Json:
    """Machines for nobody, so many of them."""
    pool = manifests.node_pool(
        name,
        requirements=(cores("2", "4"),),
        taints=(NOBODY,),
        limits=None if limit is None else {"nodes": str(limit)},
        limit_mode=mode,
    )
    pool["spec"]["replicas"] = replicas
    return pool


def _static(random: SimRandom) -> list[Json]:
    if not random.chance(0.5):
        return []
    replicas = random.between(1, 3)
    limit = random.choice((None, replicas, replicas + 1))
    return [static_pool(replicas, limit=limit, mode=random.choice(("Hard", "Soft")))]


def spec_of(pool: str, **spec: Any) -> Json:
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": pool}, "spec": spec}


# -- kept room --------------------------------------------------------------------------------------------------------------


def buffer(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "CapacityBuffer",
        "metadata": {"name": name, "namespace": manifests.NAMESPACE},
        "spec": spec,
    }


def pod_template(name: str, *, cpu: str = "500m") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": name, "namespace": manifests.NAMESPACE},
        "template": manifests.pod_template(name, PodShape(cpu=cpu)),
    }


WEB: Final[Json] = {"apiGroup": "apps", "kind": "Deployment", "name": "web"}


def _share_of_web(random: SimRandom) -> list[Json]:
    return [buffer("spare", scalableRef=WEB, percentage=random.between(10, 30))]


def _some_pods(random: SimRandom) -> list[Json]:
    spec = {"podTemplateRef": {"name": "spare"}, "replicas": random.between(1, 4)}
    return [pod_template("spare"), buffer("spare", **spec)]


def _as_limits_allow(random: SimRandom) -> list[Json]:
    return [buffer("spare", scalableRef=WEB, limits={"cpu": str(random.between(1, 3))})]


def _of_nothing(random: SimRandom) -> list[Json]:
    """Of a workload that there is not."""
    return [buffer("spare", scalableRef={**WEB, "name": "nothing"}, replicas=random.between(1, 4))]


_BUFFERS: Final = (_share_of_web, _some_pods, _as_limits_allow, _of_nothing)


# -- pools that are served by nobody, or badly ------------------------------------------------------------------------------


def bad_pools() -> tuple[Json, ...]:
    """Each is accepted by the API server and wrong all the same; all are for nobody."""
    never = (cores("2"), cores("4"))
    too_many = (cores("2", "4"), {**cores("2", "4", "8"), "minValues": 3})
    none_such = asks(names.INSTANCE_TYPE_LABEL, "In", "none-such")
    missing = manifests.node_pool("bad-class", taints=(NOBODY,))
    missing["spec"]["template"]["spec"]["nodeClassRef"] = {**manifests.NODE_CLASS, "name": "missing"}
    return (
        manifests.node_pool("bad-sizes", requirements=never, taints=(NOBODY,)),
        manifests.node_pool("bad-minimum", requirements=too_many, taints=(NOBODY,)),
        manifests.node_pool("bad-taints", taints=(NOBODY, NOBODY)),
        manifests.node_pool("bad-types", requirements=(none_such,), taints=(NOBODY,)),
        missing,
    )


def other_providers_pool() -> Json:
    """Somebody else serves it, and we never touch it."""
    pool = manifests.node_pool("others", taints=(NOBODY,))
    pool["spec"]["template"]["spec"]["nodeClassRef"] = {
        "group": names.GROWTH,
        "kind": "HetznerNodeClass",
        "name": "default",
    }
    return pool


def growth_pool(name: str = "plain") -> Json:
    """For pods that select it, and none does."""
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"serverTypes": [{"name": "c-4x-amd64-linux", "max": 3}, {"name": "none-such", "max": 1}]},
    }


# -- by hand ----------------------------------------------------------------------------------------------------------------


def claim(name: str, **spec: Any) -> Json:
    """A NodeClaim that no pool owns: its machine is bought, and nobody takes it away but who made the claim."""
    linux = asks(names.OS_LABEL, "In", "linux")
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name},
        "spec": {
            "nodeClassRef": manifests.NODE_CLASS,
            "requirements": [linux, cores("2")],
            "taints": [NOBODY],
            "expireAfter": "Never",
            **spec,
        },
    }


def pod(name: str, **spec: Any) -> Json:
    """One that nobody makes again when it is gone."""
    template = manifests.pod_template(name, PodShape(cpu="100m", memory="64Mi"))
    metadata: Json = {"name": name, "namespace": manifests.NAMESPACE, **template["metadata"]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template["spec"], **spec}}


def node_class_says(ready: str) -> Json:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "default"},
        "status": {"conditions": [condition("Ready", ready)]},
    }


def condition(kind: str, status: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": "ByHand",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }


def paused(pool: str, word: str) -> Json:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool, "annotations": {names.PAUSED_ANNOTATION: word}},
    }
