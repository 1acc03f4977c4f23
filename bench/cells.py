"""The cells of `bench cost`: pods, pools, machines that are there already, and what can be bought."""

import dataclasses
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench import catalogues, mixes
from bench.catalogues import ZONE
from growth.api import names
from growth.api.kinds import Json
from growth.providers.catalogues import hetzner
from growth.units.resources import quantities

NANO: Final = 1_000_000_000
SMALL_FAMILIES: Final = "cmr"
GENERATIONS: Final = "56789"
DAEMON: Final = {"cpu": "200m", "memory": "300Mi"}
# A zone dearer than the one before it.
ZONE_FACTORS: Final = (1.0, 1.1, 1.25, 1.4)
EXISTING_NODES: Final = 200
EXISTING_TYPE: Final = "m5.xlarge"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Cell:
    """One row. `most` is how far above the configuration bound it may be: (nodes at once, one by one); None: no bound.

    `karpenter` False where it has no such pools.
    """

    name: str
    objects: tuple[Json, ...]
    types: tuple[Json, ...]
    most: tuple[float, float] | None = None
    karpenter: bool = True


def kwok() -> list[Json]:
    """(a) Karpenter's 144 KWOK types; the pool takes those for amd64 and linux."""
    return catalogues.kwok_types()


def aws_small() -> list[Json]:
    """(b) AWS's c, m and r families of the fifth generation and later, amd64."""
    return [each for each in aws() if each["name"][0] in SMALL_FAMILIES and each["name"][1] in GENERATIONS]


def aws() -> list[Json]:
    """(c) Everything that AWS sells for amd64."""
    return [each for each in catalogues.aws_types() if each["architecture"] == "amd64"]


def hetzner_types() -> list[Json]:
    """(d) Hetzner's amd64 types, in the format that both sides read."""
    return [
        {
            "name": kind.name,
            "architecture": "amd64",
            "operatingSystems": ["linux"],
            "resources": quantities(kind.capacity),
            "offerings": [
                {
                    "Price": offering.price / NANO,
                    "Available": True,
                    "Requirements": [
                        {"key": catalogues.CAPACITY_TYPE, "operator": "In", "values": [offering.capacity_type]},
                        {"key": ZONE, "operator": "In", "values": [offering.zone]},
                    ],
                }
                for offering in kind.offerings
                if offering.price is not None
            ],
        }
        for kind in hetzner.catalogue().types
        if kind.labels[names.ARCH_LABEL] == ("amd64",)
    ]


# Catalogue, and how far above the configuration bound a plan on it may be.
CATALOGUES: Final[dict[str, tuple[Callable[[], list[Json]], tuple[float, float]]]] = {
    "a kwok": (kwok, (1.06, 1.10)),
    "b aws c/m/r": (aws_small, (1.06, 1.10)),
    "c aws": (aws, (1.12, 1.16)),
    "d hetzner": (hetzner_types, (1.12, 1.16)),
}
MIXES: Final[dict[str, Callable[[int], list[Json]]]] = {
    "generic": mixes.generic,
    "web": mixes.web,
    "trace": mixes.trace,
}


def plain(pods: int) -> list[Cell]:
    """Three mixes on four catalogues, without and with a DaemonSet."""
    found = []
    for catalogue, (types, most) in CATALOGUES.items():
        sold = tuple(types())
        for mix, make in MIXES.items():
            made = make(pods)
            found += [
                Cell(
                    name=f"{mix}{' + daemon' if daemon else ''} · {catalogue}",
                    objects=(mixes.node_pool(), *([daemon_set()] if daemon else ()), *made),
                    types=sold,
                    most=most,
                )
                for daemon in (False, True)
            ]
    return found


def constrained(pods: int) -> list[Cell]:
    """Cells with rules: never above first fit or Karpenter."""
    sold = tuple(aws_small())
    web = mixes.web(pods)
    diverse = mixes.diverse(pods)
    fifth = pods // 5
    spot = mixes.node_pool(capacity_types=("spot", "on-demand"))
    flexible = {"key": names.INSTANCE_TYPE_LABEL, "operator": "Exists", "minValues": 10}
    heavy = mixes.node_pool("preferred", weight=50, limits={"cpu": "64"})
    return [
        Cell(
            name="diverse without anti-affinity",
            objects=(mixes.node_pool(), *diverse[: 4 * fifth], *diverse[5 * fifth :]),
            types=sold,
        ),
        Cell(
            name="zonal spread, zones of different prices",
            objects=(mixes.node_pool(), *map(_spread_over_zones, web)),
            types=tuple(map(_dearer_by_zone, sold)),
        ),
        Cell(
            name=f"{EXISTING_NODES} half-full nodes",
            objects=(mixes.node_pool(), *half_full(EXISTING_NODES), *mixes.generic(pods)),
            types=sold,
        ),
        Cell(name="two weights", objects=(heavy, mixes.node_pool(), *web), types=sold),
        Cell(name="spot and on-demand", objects=(spot, *web), types=sold),
        Cell(name="minValues 10", objects=(mixes.node_pool(requirements=[flexible]), *web), types=sold),
        Cell(
            name="growth pool with max",
            objects=(growth_pool(), *web),
            types=tuple(hetzner_types()),
            karpenter=False,
        ),
    ]


def daemon_set() -> Json:
    labels = {"agent": "all"}
    container = {"name": "agent", "image": "agent", "resources": {"requests": DAEMON}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def growth_pool() -> Json:
    """The default growth pool: of every type that Hetzner sells for amd64, at most so many."""
    most = {"cx23": 6, "cx33": 6, "cx43": 5, "cx53": 4}
    return {
        "apiVersion": "growth.dev/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "default"},
        "spec": {
            "serverTypes": [{"name": kind["name"], "max": most.get(kind["name"], 20)} for kind in hetzner_types()]
        },
    }


def half_full(number: int) -> list[Json]:
    """Nodes of one type with pods on them that ask for half of each, and their claims."""
    drawn = random.Random(mixes.SEED)
    found: list[Json] = []
    kind = next(each for each in aws_small() if each["name"] == EXISTING_TYPE)
    zones = sorted({_zone(offering) for offering in kind["offerings"]})
    for at in range(number):
        name = f"node-{at:03}"
        found += _node(name, kind, zones[at % len(zones)])
        for part in range(2):
            found.append(
                mixes.raw_pod(
                    f"{name}-{part}",
                    uid=f"{name}-{part}",
                    cpu_milli=950,
                    memory_mib=drawn.choice((3000, 4000, 5000)),
                    labels={"app": "old"},
                    nodeName=name,
                )
            )
    return found


def _node(name: str, kind: Json, zone: str) -> list[Json]:
    cores, memory = int(kind["resources"]["cpu"]), kind["resources"]["memory"]
    labels = {
        "karpenter.sh/nodepool": "default",
        catalogues.CAPACITY_TYPE: "on-demand",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": kind["name"],
        ZONE: zone,
    }
    mebibytes = int(memory.removesuffix("Gi")) * 1024
    allocatable = {**kind["resources"], "cpu": f"{cores * 1000 - 100}m", "memory": f"{mebibytes - 10}Mi"}
    marks = {mixes.HOSTNAME: name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"}
    status: dict[str, Any] = {"capacity": kind["resources"], "allocatable": allocatable}
    ready = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    conditions = [
        {"type": each, "status": "True", "reason": each, "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        for each in ("Launched", "Registered", "Initialized", "Ready")
    ]
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**labels, **marks}},
            "spec": {"providerID": f"kwok://{name}"},
            "status": {**status, "conditions": ready},
        },
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {"name": f"claim-{name}", "labels": labels},
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [kind["name"]]}
                ],
            },
            "status": {**status, "nodeName": name, "providerID": f"kwok://{name}", "conditions": conditions},
        },
    ]


def _spread_over_zones(pod: Json) -> Json:
    rule = mixes.spread(ZONE, pod["metadata"]["labels"])
    return {**pod, "spec": {**pod["spec"], "topologySpreadConstraints": [rule]}}


def _dearer_by_zone(kind: Json) -> Json:
    zones = sorted({_zone(offering) for offering in kind["offerings"]})
    factor = dict(zip(zones, ZONE_FACTORS, strict=False))
    offerings = [{**each, "Price": each["Price"] * factor[_zone(each)]} for each in kind["offerings"]]
    return {**kind, "offerings": offerings}


def _zone(offering: Json) -> str:
    (zone,) = (each["values"][0] for each in offering["Requirements"] if each["key"] == ZONE)
    return str(zone)


def requests(objects: Sequence[Json]) -> list[tuple[float, ...]]:
    """Thousandths of a core, MiB and 1 of each pending pod of one container."""
    found: list[tuple[float, ...]] = []
    for each in objects:
        if each["kind"] == "Pod" and "nodeName" not in each["spec"]:
            (container,) = each["spec"]["containers"]
            asked = container["resources"]["requests"]
            found.append((float(asked["cpu"].removesuffix("m")), float(asked["memory"].removesuffix("Mi")), 1.0))
    return found
