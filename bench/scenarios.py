"""Random scenarios that Karpenter and Growth can both read: raw Kubernetes objects, every rule of placement among them.

`scenario(seed)` gives the same objects for the same seed on any machine. A scenario draws the rules that occur in it at
all first (`RULES`), so that some scenarios are plain and some have many rules that meet; values are few, so that they do
meet. Pods come in kinds: pods of one kind differ in nothing but their names (`kind-3-07` is of `kind-3`).
"""

import dataclasses
import random
from collections.abc import Iterator, Sequence
from typing import Any, Final

from growth.api import names
from growth.api.kinds import Json

ZONES: Final = ("test-zone-a", "test-zone-b", "test-zone-c")
APPS: Final = ("web", "db", "cache")
SPACES: Final = ("default", "shop", "jobs")
TIERS: Final = {"default": {}, "shop": {"tier": "front"}, "jobs": {"tier": "back"}}
TEAM: Final = "example.com/team"
TEAMS: Final = ("red", "blue")
LEVEL: Final = "example.com/level"  # a number, set by pools
FAMILY: Final = names.KWOK_INSTANCE_FAMILY_LABEL
CPU: Final = names.KWOK_INSTANCE_CPU_LABEL
GPU: Final = "example.com/gpu"
DRIVER: Final = "csi.example.com"
IGNORED: Final = "IgnoredDuringExecution"
REQUIRED: Final = f"requiredDuringScheduling{IGNORED}"
PREFERRED: Final = f"preferredDuringScheduling{IGNORED}"

# What a scenario may have, with how likely it has it.
RULES: Final = {
    "requirements": 0.6,
    "selectors": 0.5,
    "node affinity": 0.45,
    "taints": 0.4,
    "spread": 0.35,
    "affinity": 0.3,
    "anti-affinity": 0.3,
    "preferences": 0.25,
    "minValues": 0.25,
    "limits": 0.25,
    "nodes": 0.4,
    "daemons": 0.3,
    "ports": 0.15,
    "volumes": 0.15,
    "gpus": 0.2,
    "priority": 0.15,
}


@dataclasses.dataclass(frozen=True)
class Scenario:
    """What one seed gives. `rules` are those that may occur in it."""

    seed: int
    objects: tuple[Json, ...]
    rules: frozenset[str]

    @property
    def pending(self) -> list[Json]:
        """The pods that want a place."""
        return [each for each in self.objects if each["kind"] == "Pod" and "nodeName" not in each["spec"]]


def kind_of(key: str) -> str:
    """The kind of a pod, by `namespace/name`."""
    return key.partition("/")[2].rpartition("-")[0]


def scenario(seed: int, *, pods: int = 0) -> Scenario:
    """The scenario of the seed, with so many pending pods (0: the seed decides)."""
    return _Maker(seed).make(pods)


def instance_types() -> list[Json]:
    """What is sold: three families from 1 to 16 cpus, two architectures, three zones, not everything everywhere."""
    drawn = random.Random("instance types")
    found = []
    for cpu in (1, 2, 4, 8, 16):
        for family, gib in (("c", 2), ("m", 4), ("r", 8)):
            for arch in ("amd64", "arm64"):
                if arch == "arm64" and family == "r":
                    continue
                gpu = {"example.com/gpu": str(cpu // 4)} if family == "r" and cpu >= 4 else {}
                price = 0.04 * cpu + 0.005 * cpu * gib + (0.3 if gpu else 0.0) - (0.003 if arch == "arm64" else 0.0)
                zones = ZONES if family == "m" else drawn.sample(ZONES, drawn.choice((2, 3)))
                found.append(
                    {
                        "name": f"{family}-{cpu}x-{arch}-linux",
                        "architecture": arch,
                        "operatingSystems": ["linux"],
                        "resources": {
                            "cpu": str(cpu),
                            "memory": f"{cpu * gib}Gi",
                            "ephemeral-storage": "20Gi",
                            "pods": str(8 * cpu),
                            **gpu,
                        },
                        "offerings": [
                            {
                                "Price": round(price * share + 0.001 * ZONES.index(zone), 4),
                                "Available": drawn.random() < 0.92,
                                "Requirements": [
                                    {"key": names.CAPACITY_TYPE_LABEL, "operator": "In", "values": [terms]},
                                    {"key": names.ZONE_LABEL, "operator": "In", "values": [zone]},
                                ],
                            }
                            for zone in sorted(zones)
                            for terms, share in ((names.ON_DEMAND, 1.0), (names.SPOT, 0.4))
                        ],
                    }
                )
    return found


class _Maker:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.seed = seed
        self.rules = frozenset(name for name, likely in RULES.items() if self.chance(likely))
        self.extra: list[Json] = []

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def has(self, rule: str, probability: float) -> bool:
        return rule in self.rules and self.chance(probability)

    def some(self, values: Sequence[str]) -> list[str]:
        return sorted(self.random.sample(values, self.random.randint(1, len(values))))

    def make(self, pods: int) -> Scenario:
        objects: list[Json] = [_object("Namespace", name, labels=labels) for name, labels in TIERS.items()]
        objects += [self.pool(number) for number in range(self.random.choice((1, 1, 2, 2, 3)))]
        kinds = [self.pod(number) for number in range(self.random.randint(3, 8))]
        if "daemons" in self.rules:
            objects += [self.daemon_set(number) for number in range(self.random.choice((1, 1, 2)))]
        if "nodes" in self.rules:
            objects += self.nodes(kinds)
        for number in range(pods or self.random.randint(20, 40)):
            objects.append(_named(self.random.choice(kinds), number))
        return Scenario(self.seed, (*objects, *self.extra), self.rules)

    # -- pools ------------------------------------------------------------------------------------------------------

    def pool(self, number: int) -> Json:
        spec: Json = {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
            "requirements": list(self.requirements()),
        }
        taints = [
            {"key": "dedicated", "value": "batch", "effect": "NoSchedule"},
            {"key": "gpu", "effect": "NoExecute"},
            {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"},
        ]
        if chosen := [taint for taint in taints if self.has("taints", 0.25)]:
            spec["taints"] = chosen
        if self.has("taints", 0.3):
            spec["startupTaints"] = [{"key": "starting", "effect": "NoSchedule"}]
        template: Json = {"spec": spec}
        if self.has("selectors", 0.5):
            template["metadata"] = {"labels": {TEAM: self.random.choice(TEAMS)}}
        pool = _object("NodePool", f"pool-{number}", api="karpenter.sh/v1", spec={"template": template})
        if self.chance(0.5):
            pool["spec"]["weight"] = self.random.choice((1, 10, 10, 50))
        limits = {}
        if self.has("limits", 0.5):
            limits["cpu"] = str(self.random.choice((4, 12, 30)))
        if self.has("limits", 0.25):
            limits["memory"] = f"{self.random.choice((10, 40, 100))}Gi"
        if self.has("limits", 0.3):
            limits["nodes"] = str(self.random.randint(1, 5))
        if limits:
            pool["spec"]["limits"] = limits
        return pool

    def requirements(self) -> Iterator[Json]:
        if self.has("requirements", 0.5):
            yield self.expression(names.ZONE_LABEL, ZONES, ("In", "In", "NotIn", "Exists"))
        if self.has("requirements", 0.5):
            yield self.expression(names.CAPACITY_TYPE_LABEL, (names.ON_DEMAND, names.SPOT), ("In",))
        if self.has("requirements", 0.5):
            yield self.expression(names.ARCH_LABEL, ("amd64", "arm64"), ("In", "NotIn"))
        if self.has("requirements", 0.4):
            yield self.expression(CPU, ("2", "4", "8"), ("Gt", "Lt", "Gte", "Lte", "In", "NotIn"))
        if self.has("requirements", 0.3):
            yield self.expression(LEVEL, ("1", "2", "5"), ("In", "In", "NotIn", "Exists", "DoesNotExist", "Gte", "Lt"))
        if self.has("minValues", 0.6):
            yield {"key": FAMILY, "operator": "Exists", "minValues": self.random.choice((1, 2, 3))}
        elif self.has("requirements", 0.2):
            yield self.expression(FAMILY, ("c", "m", "r"), ("In", "NotIn", "DoesNotExist", "Exists"))
        if self.has("minValues", 0.4):
            yield {
                "key": names.INSTANCE_TYPE_LABEL,
                "operator": "Exists",
                "minValues": self.random.choice((1, 3, 6)),
            }

    def expression(self, key: str, values: Sequence[str], operators: Sequence[str]) -> Json:
        operator = self.random.choice(operators)
        if operator in {"Exists", "DoesNotExist"}:
            return {"key": key, "operator": operator}
        if operator in {"Gt", "Gte"}:
            return {"key": key, "operator": operator, "values": [self.random.choice(("1", "2", "3"))]}
        if operator in {"Lt", "Lte"}:
            return {"key": key, "operator": operator, "values": [self.random.choice(("4", "8", "9"))]}
        if operator == "NotIn":
            return {"key": key, "operator": operator, "values": [self.random.choice(values)]}
        return {"key": key, "operator": operator, "values": self.some(values)}

    # -- what is there ------------------------------------------------------------------------------------------------

    def nodes(self, kinds: Sequence[Json]) -> list[Json]:
        found = []
        bound = 0
        for number in range(self.random.randint(1, 4)):
            name = f"node-{number}"
            labels = {
                names.HOSTNAME_LABEL: name,
                names.ZONE_LABEL: self.random.choice(ZONES),
                names.ARCH_LABEL: "amd64",
                names.OS_LABEL: "linux",
                names.CAPACITY_TYPE_LABEL: self.random.choice((names.ON_DEMAND, names.SPOT)),
                FAMILY: "m",
                CPU: "4",
            }
            if self.has("selectors", 0.4):
                labels[TEAM] = self.random.choice(TEAMS)
            room = {"cpu": "3900m", "memory": "15Gi", "ephemeral-storage": "20Gi", "pods": "20"}
            taints = [{"key": "dedicated", "value": "batch", "effect": "NoSchedule"}] if self.has("taints", 0.2) else []
            node = _object("Node", name, labels=labels, spec={"taints": taints} if taints else {})
            node["status"] = {
                "capacity": room,
                "allocatable": room,
                "conditions": [{"type": "Ready", "status": "True"}],
            }
            found.append(node)
            for _ in range(self.random.randint(0, 3)):
                kind = self.random.choice(kinds)
                bound += 1
                there = _named(kind, bound, prefix="bound")
                requests = there["spec"]["containers"][0]["resources"]["requests"]
                there["spec"]["nodeName"] = name
                there["spec"].pop("volumes", None)
                requests.pop(GPU, None)
                requests["cpu"] = "250m"
                found.append(there)
        return found

    def daemon_set(self, number: int) -> Json:
        spec: Json = {"containers": [_container("agent", "100m", "64Mi")]}
        if self.has("ports", 0.4):
            spec["containers"][0]["ports"] = [{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]
        if self.has("taints", 0.5):
            spec["tolerations"] = [{"operator": "Exists"}]
        if self.chance(0.3):
            spec["nodeSelector"] = {names.ARCH_LABEL: "amd64"}
        labels = {"agent": str(number)}
        return _object(
            "DaemonSet",
            f"agent-{number}",
            api="apps/v1",
            space="default",
            spec={
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        )

    # -- pods -----------------------------------------------------------------------------------------------------------

    def pod(self, number: int) -> Json:
        labels = {"app": self.random.choice(APPS)}
        if self.chance(0.2):
            labels["version"] = self.random.choice(("1", "2"))
        space = self.random.choice(SPACES)
        cpu = self.random.choice(("50m", "250m", "250m", "500m", "1", "1900m", "3"))
        memory = self.random.choice(("64Mi", "256Mi", "256Mi", "1Gi", "3Gi"))
        main = _container("main", cpu, memory)
        if self.has("gpus", 0.3):
            main["resources"]["requests"][GPU] = "1"
            main["resources"]["limits"] = {GPU: "1"}
        if self.has("ports", 0.4):
            port = {"containerPort": 80, "hostPort": self.random.choice((8080, 9100)), "protocol": "TCP"}
            if self.chance(0.3):
                port["hostIP"] = self.random.choice(("127.0.0.1", "10.0.0.1"))
            main["ports"] = [port]
        spec: Json = {"containers": [main]}
        if self.chance(0.1):
            spec["initContainers"] = [_container("init", self.random.choice(("100m", "2")), "64Mi")]
            if self.chance(0.5):
                spec["initContainers"][0]["restartPolicy"] = "Always"
        if selector := self.selector():
            spec["nodeSelector"] = selector
        if affinity := self.affinity(labels):
            spec["affinity"] = affinity
        if tolerations := list(self.tolerations()):
            spec["tolerations"] = tolerations
        if self.has("spread", 0.5):
            spec["topologySpreadConstraints"] = [self.spread(labels) for _ in range(self.random.choice((1, 1, 1, 2)))]
        if self.has("priority", 0.5):
            spec["priority"] = self.random.choice((-5, 100))
        if self.has("volumes", 0.5):
            spec["volumes"] = [self.volume(space, number)]
        return {**_object("Pod", f"kind-{number}", labels=labels, space=space), "spec": spec}

    def selector(self) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.has("selectors", 0.2):
            found[names.ZONE_LABEL] = self.random.choice(ZONES)
        if self.has("selectors", 0.2):
            found[names.ARCH_LABEL] = self.random.choice(("amd64", "amd64", "arm64"))
        if self.has("selectors", 0.15):
            found[TEAM] = self.random.choice(TEAMS)
        if self.has("selectors", 0.1):
            found[names.NODE_POOL_LABEL] = "pool-0"
        return found

    def affinity(self, labels: dict[str, str]) -> Json:
        found: Json = {}
        on: Json = {}
        if self.has("node affinity", 0.5):
            on[REQUIRED] = {"nodeSelectorTerms": [self.term() for _ in range(self.random.choice((1, 1, 2, 3)))]}
        if self.has("preferences", 0.4):
            on[PREFERRED] = [
                {"weight": self.random.randint(1, 100), "preference": self.term()}
                for _ in range(self.random.choice((1, 1, 2)))
            ]
        if on:
            found["nodeAffinity"] = on
        for rule, field in (("affinity", "podAffinity"), ("anti-affinity", "podAntiAffinity")):
            terms: Json = {}
            if self.has(rule, 0.4):
                terms[REQUIRED] = [self.pod_term(labels) for _ in range(self.random.choice((1, 1, 1, 2)))]
            if self.has("preferences", 0.2):
                terms[PREFERRED] = [
                    {"weight": self.random.randint(1, 100), "podAffinityTerm": self.pod_term(labels)}
                    for _ in range(self.random.choice((1, 1, 2)))
                ]
            if terms:
                found[field] = terms
        return found

    def term(self) -> Json:
        return {"matchExpressions": [self.node_expression() for _ in range(self.random.choice((1, 1, 2)))]}

    def node_expression(self) -> Json:
        every = ("In", "NotIn", "Exists", "DoesNotExist")
        key, values, operators = self.random.choice(
            (
                (names.ZONE_LABEL, ZONES, ("In", "NotIn", "Exists")),
                (names.CAPACITY_TYPE_LABEL, (names.SPOT, names.ON_DEMAND), ("In", "NotIn")),
                (CPU, ("2", "4", "8"), ("In", "NotIn", "Gt", "Lt", "Exists")),
                (FAMILY, ("c", "m", "r"), every),
                (TEAM, TEAMS, every),
                (LEVEL, ("1", "2", "5"), (*every, "Gt", "Lt")),
                ("example.com/absent", ("x",), every),
            )
        )
        return self.expression(key, values, operators)

    def pod_term(self, labels: dict[str, str]) -> Json:
        keys = (names.ZONE_LABEL, names.HOSTNAME_LABEL, names.HOSTNAME_LABEL, names.CAPACITY_TYPE_LABEL)
        term: Json = {"topologyKey": self.random.choice(keys), "labelSelector": self.about(labels)}
        if self.chance(0.15):
            term["namespaces"] = self.some(SPACES)
        if self.chance(0.15):
            term["namespaceSelector"] = self.random.choice(({}, {"matchLabels": {"tier": "front"}}))
        return term

    def about(self, labels: dict[str, str]) -> Json:
        draw = self.random.random()
        if draw < 0.6:
            return {"matchLabels": {"app": labels["app"]}}
        if draw < 0.8:
            return {"matchLabels": {"app": self.random.choice(APPS)}}
        operator = self.random.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        if operator in {"In", "NotIn"}:
            return {"matchExpressions": [{"key": "app", "operator": operator, "values": self.some(APPS)}]}
        return {"matchExpressions": [{"key": "version", "operator": operator}]}

    def spread(self, labels: dict[str, str]) -> Json:
        firm = self.chance(0.75)
        rule: Json = {
            "maxSkew": self.random.choice((1, 1, 2, 3)),
            "topologyKey": self.random.choice((names.ZONE_LABEL, names.HOSTNAME_LABEL, names.CAPACITY_TYPE_LABEL)),
            "whenUnsatisfiable": "DoNotSchedule" if firm else "ScheduleAnyway",
            "labelSelector": self.about(labels),
        }
        if firm and self.chance(0.15):
            rule["minDomains"] = self.random.choice((2, 3, 5))
        if self.chance(0.15):
            rule["matchLabelKeys"] = ["version"]
        if self.chance(0.2):
            rule["nodeAffinityPolicy"] = self.random.choice(("Honor", "Ignore"))
        if self.chance(0.2):
            rule["nodeTaintsPolicy"] = self.random.choice(("Honor", "Ignore"))
        return rule

    def tolerations(self) -> Iterator[Json]:
        if self.has("taints", 0.4):
            yield {"key": "dedicated", "operator": "Equal", "value": self.random.choice(("batch", "batch", "web"))}
        if self.has("taints", 0.3):
            yield {"key": "gpu", "operator": "Exists", "effect": "NoExecute"}
        if self.has("taints", 0.2):
            yield {"key": "spot", "operator": "Exists"}

    def volume(self, space: str, number: int) -> Json:
        """One claim that all pods of the kind share: bound to a volume in one zone, or yet to be made in some."""
        name = f"data-{number}"
        if not any(each["kind"] == "StorageClass" for each in self.extra):
            for title, allowed in (("fast", ZONES), ("zonal", ZONES[:2])):
                made = _object("StorageClass", title, api="storage.k8s.io/v1")
                made |= {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer"}
                if title == "zonal":
                    wanted = {"key": names.ZONE_LABEL, "values": list(allowed)}
                    made["allowedTopologies"] = [{"matchLabelExpressions": [wanted]}]
                self.extra.append(made)
        claim: Json = {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": self.random.choice(("fast", "zonal")),
            "resources": {"requests": {"storage": "1Gi"}},
        }
        bound = self.chance(0.6)
        if bound:
            claim["volumeName"] = f"pv-{number}"
            chosen = [{"key": names.ZONE_LABEL, "operator": "In", "values": [self.random.choice(ZONES)]}]
            spec: dict[str, Any] = {
                "csi": {"driver": DRIVER, "volumeHandle": f"handle-{number}"},
                "accessModes": ["ReadWriteMany"],
                "capacity": {"storage": "1Gi"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": chosen}]}},
            }
            self.extra.append(_object("PersistentVolume", f"pv-{number}", spec=spec))
        made = _object("PersistentVolumeClaim", name, space=space, spec=claim)
        made["status"] = {"phase": "Bound" if bound else "Pending"}
        if bound:
            made["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        self.extra.append(made)
        return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def _container(name: str, cpu: str, memory: str) -> Json:
    return {"name": name, "image": name, "resources": {"requests": {"cpu": cpu, "memory": memory}}}


def _object(
    kind: str,
    name: str,
    *,
    api: str = "v1",
    space: str = "",
    labels: dict[str, str] | None = None,
    spec: Json | None = None,
) -> Json:
    metadata: Json = {"name": name}
    if space:
        metadata["namespace"] = space
    if labels:
        metadata["labels"] = dict(labels)
    found: Json = {"apiVersion": api, "kind": kind, "metadata": metadata}
    return found if spec is None else {**found, "spec": spec}


def _named(kind: Json, number: int, *, prefix: str = "") -> Json:
    """A pod of the kind, under a name of its own.

    Karpenter settles equal sizes by UID, Growth by namespace and name; here they are one, so that both queue alike.
    """
    name = f"{prefix or kind['metadata']['name']}-{number:02}"
    uid = f"{kind['metadata']['namespace']}/{name}"
    spec = {**kind["spec"], "containers": [_own(each) for each in kind["spec"]["containers"]]}
    return {**kind, "metadata": {**kind["metadata"], "name": name, "uid": uid}, "spec": spec}


def _own(container: Json) -> Json:
    resources = container["resources"]
    return {**container, "resources": {**resources, "requests": dict(resources["requests"])}}
