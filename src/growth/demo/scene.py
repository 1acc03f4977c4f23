"""What happens in the demo: two pools, a small shop with its day, and a deployment for whoever watches. Pure.

A day is short: the shop opens, has its rush hour, and empties. Numbers vary with the seed, from day to day.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.kinds import Json
from growth.demo.sellers import Seller
from growth.sim.ports import SimRandom

NAMESPACE: Final = "default"
KARPENTER_POOL: Final = "general"
GROWTH_POOL: Final = "batch"
# The one that no wave touches: for `kubectl scale`.
YOURS: Final = "yours"
DAY_SECONDS: Final = 90.0


def pools(seller: Seller) -> tuple[Json, ...]:
    """The node class, and the pools that buy with it."""
    return (
        seller.node_class,
        {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": KARPENTER_POOL},
            "spec": {
                "template": {
                    "spec": {
                        "nodeClassRef": seller.reference,
                        "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
                    }
                },
                "disruption": {
                    "consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "consolidateAfter": "5s",
                    "budgets": [{"nodes": "100%"}],
                },
                "limits": {"nodes": "20"},
            },
        },
        {
            "apiVersion": "growth.dev/v1alpha1",
            "kind": "NodePool",
            "metadata": {"name": GROWTH_POOL},
            "spec": {
                "nodeClassRef": seller.reference,
                "serverTypes": [{"name": name, "max": number} for name, number in seller.batch.items()],
                "scaleDownAfter": "8s",
                "template": {"taints": [{"key": GROWTH_POOL, "effect": "NoSchedule"}]},
            },
        },
    )


@dataclasses.dataclass(frozen=True, slots=True)
class App:
    """A Deployment: what one of its pods asks for, and the growth pool that it is for, if any."""

    name: str
    cpu: str
    memory: str
    pool: str = ""

    def manifest(self) -> Json:
        spec: Json = {
            "containers": [
                {
                    "name": "main",
                    "image": "example",
                    "resources": {"requests": {"cpu": self.cpu, "memory": self.memory}},
                }
            ],
            "terminationGracePeriodSeconds": 2,
        }
        if self.pool:
            spec["nodeSelector"] = {names.POOL_LABEL: self.pool}
            spec["tolerations"] = [{"key": self.pool, "operator": "Exists"}]
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": self.name},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": self.name}},
                "template": {"metadata": {"labels": {"app": self.name}}, "spec": spec},
            },
        }


APPS: Final = (
    App("web", "500m", "1Gi"),
    App("api", "1", "2Gi"),
    App("cart", "1", "2Gi"),
    App("report", "1500m", "2Gi", pool=GROWTH_POOL),
    App(YOURS, "1", "1Gi"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Wave:
    """At a time of the day, in seconds from its start, Deployments get these sizes."""

    at: float
    title: str
    replicas: Mapping[str, int]


def day(seed: int, number: int) -> tuple[Wave, ...]:
    """The waves of a day, in order; days are counted from 0."""
    random = SimRandom(seed, f"day {number}")
    return (
        Wave(
            0.0,
            "the shop opens",
            {"web": random.between(5, 7), "api": random.between(3, 4), "report": random.between(3, 4)},
        ),
        Wave(12.0, "rush hour", {"web": random.between(10, 12), "cart": random.between(8, 11)}),
        Wave(30.0, "the rush is over", {"web": 3, "api": 1, "cart": random.between(3, 4), "report": 0}),
        Wave(60.0, "the shop closes", {"web": 2, "cart": 1}),
    )
