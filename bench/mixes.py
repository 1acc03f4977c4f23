"""Workloads for benchmarks: lists of raw pods, and the pool that they are planned into. Equal arguments, equal objects.

*generic*, *diverse* and *preferences* have the distributions of Karpenter's own scheduling benchmark. *web* and *trace*
are nearer to what clusters run: a few sizes and many replicas, and the requests of a public trace.
"""

import csv
import itertools
import math
import random
import uuid
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

from bench.catalogues import CAPACITY_TYPE, ZONE, data_file
from growth.api.kinds import Json

SEED: Final = 42
HOSTNAME: Final = "kubernetes.io/hostname"

# What Karpenter's benchmark draws from, each value equally likely.
CPU_MILLI: Final = (100, 250, 500, 1000, 1500)
MEMORY_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
LETTERS: Final = "abcdefg"

WEB_CPU_MILLI: Final = (50, 100, 200, 250, 500, 1000)
WEB_MEMORY_MIB: Final = (128, 256, 512, 1024, 2048)
WEB_SIZES: Final = tuple(itertools.product(WEB_CPU_MILLI, WEB_MEMORY_MIB))

TRACE_ROWS: Final = 1000


def node_pool(
    name: str = "default",
    *,
    capacity_types: Sequence[str] = ("on-demand",),
    requirements: Sequence[Json] = (),
    limits: Mapping[str, str] | None = None,
    weight: int | None = None,
) -> Json:
    """A `karpenter.sh/v1` NodePool for amd64 and linux; on-demand unless said otherwise."""
    spec: Json = {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    _is_in("kubernetes.io/arch", "amd64"),
                    _is_in("kubernetes.io/os", "linux"),
                    _is_in(CAPACITY_TYPE, *capacity_types),
                    *requirements,
                ],
            }
        }
    }
    if limits is not None:
        spec["limits"] = dict(limits)
    if weight is not None:
        spec["weight"] = weight
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name}, "spec": spec}


def generic(count: int) -> list[Json]:
    """Pods without constraints, of 30 sizes and 7 labels."""
    return _Maker("generic").generic(count)


def diverse(count: int) -> list[Json]:
    """Fifths: generic; zonal spread; hostname spread; zonal affinity to themselves; hostname anti-affinity to themselves.

    The spreads select a label of their own drawing, not the pod's. What five does not divide is generic.
    """
    make = _Maker("diverse")
    fifth = count // 5
    pods = make.generic(fifth)
    pods += make.spread(fifth, ZONE)
    pods += make.spread(fifth, HOSTNAME)
    pods += make.zonal_affinity(fifth)
    pods += make.hostname_anti_affinity(fifth)
    return pods + make.generic(count - len(pods))


def preferences(count: int = 4000) -> list[Json]:
    """Identical pods that prefer one zone, another zone than their equals (mostly impossible), and another node."""
    make = _Maker("preference")
    cpu, memory = make.size()
    return [make.pod(cpu, memory, {"app": "nginx"}, affinity=_preferred_apart("nginx")) for _ in range(count)]


def varied_preferences(count: int = 4000) -> list[Json]:
    """The same preferences on pods of 30 sizes and 20 apps, each app apart from itself."""
    make = _Maker("preference")
    pods = []
    for _ in range(count):
        cpu, memory = make.random.choice(WEB_SIZES)
        app = f"app-{make.random.randrange(20)}"
        pods.append(make.pod(cpu, memory, {"app": app}, affinity=_preferred_apart(app)))
    return pods


def web(count: int) -> list[Json]:
    """30 Deployments, one for each size, cpu before memory, smallest first; replicas in proportion to 1/rank.

    Fractions go to the largest remainders, so that there are exactly `count` pods.
    """
    make = _Maker("web")
    pods = []
    for (cpu, memory), replicas in zip(WEB_SIZES, zipf(count, len(WEB_SIZES)), strict=True):
        app = f"web-{cpu}m-{memory}mi"
        pods += [make.pod(cpu, memory, {"app": app}, name=f"{app}-{i}") for i in range(replicas)]
    return pods


def trace(count: int = TRACE_ROWS) -> list[Json]:
    """The first pods without a GPU of the trace `openb_pods.csv` (columns cpu_milli, memory_mib, num_gpu) in the data folder.

    `DataMissingError` where the file is not there, `ValueError` where it holds fewer rows.
    """
    make = _Maker("trace")
    with data_file("openb_pods.csv").open(newline="") as file:
        rows = (row for row in csv.DictReader(file) if int(row["num_gpu"] or 0) == 0)
        pods = [
            make.pod(int(row["cpu_milli"]), int(row["memory_mib"]), {"app": "trace"}, name=row["name"])
            for row in itertools.islice(rows, count)
        ]
    if len(pods) < count:
        raise ValueError(f"openb_pods.csv has {len(pods)} rows with num_gpu 0; {count} are asked for")
    return pods


def zipf(total: int, ranks: int) -> list[int]:
    """`total` split over ranks in proportion to 1/rank, exactly; leftovers to the largest remainders, first rank first."""
    weights = [Fraction(1, rank) for rank in range(1, ranks + 1)]
    shares = [weight * total / sum(weights) for weight in weights]
    counts = [math.floor(share) for share in shares]
    by_remainder = sorted(range(ranks), key=lambda i: (counts[i] - shares[i], i))
    for i in by_remainder[: total - sum(counts)]:
        counts[i] += 1
    return counts


def raw_pod(
    name: str,
    *,
    uid: str,
    cpu_milli: int,
    memory_mib: int,
    labels: Mapping[str, str],
    namespace: str = "default",
    **spec: Any,
) -> Json:
    """A pod of one container; `spec` holds further fields of its spec."""
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{memory_mib}Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "labels": dict(labels)},
        "spec": {"containers": [{"name": "main", "image": "main", "resources": {"requests": requests}}], **spec},
    }


def spread(key: str, labels: Mapping[str, str]) -> Json:
    """A hard spread constraint with skew 1."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": dict(labels)},
    }


def anti_affinity(key: str, labels: Mapping[str, str]) -> Json:
    """An affinity that keeps pods with these labels out of one domain."""
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(key, labels)]}}


class _Maker:
    """Draws sizes, labels and UIDs from one seed. UIDs matter: Karpenter breaks ties of equal size by them."""

    def __init__(self, prefix: str) -> None:
        self.random = random.Random(SEED)
        self._prefix = prefix
        self._made = 0

    def pod(self, cpu: int, memory: int, labels: Mapping[str, str], *, name: str = "", **spec: Any) -> Json:
        self._made += 1
        return raw_pod(
            name or f"{self._prefix}-{self._made}",
            uid=str(uuid.UUID(int=self.random.getrandbits(128), version=4)),
            cpu_milli=cpu,
            memory_mib=memory,
            labels=labels,
            **spec,
        )

    def size(self) -> tuple[int, int]:
        return self.random.choice(CPU_MILLI), self.random.choice(MEMORY_MIB)

    def labels(self, key: str) -> dict[str, str]:
        return {key: self.random.choice(LETTERS)}

    def generic(self, count: int) -> list[Json]:
        return [self.pod(*self.size(), self.labels("my-label")) for _ in range(count)]

    def spread(self, count: int, key: str) -> list[Json]:
        pods = []
        for _ in range(count):
            constraint = spread(key, self.labels("my-label"))
            pods.append(self.pod(*self.size(), self.labels("my-label"), topologySpreadConstraints=[constraint]))
        return pods

    def zonal_affinity(self, count: int) -> list[Json]:
        pods = []
        for _ in range(count):
            labels = self.labels("my-affinity")
            required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term(ZONE, labels)]}
            pods.append(self.pod(*self.size(), labels, affinity={"podAffinity": required}))
        return pods

    def hostname_anti_affinity(self, count: int) -> list[Json]:
        labels = {"app": "nginx"}
        return [self.pod(*self.size(), labels, affinity=anti_affinity(HOSTNAME, labels)) for _ in range(count)]


def _preferred_apart(app: str) -> Json:
    labels = {"app": app}
    return {
        "nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "preference": {"matchExpressions": [_is_in(ZONE, "test-zone-1")]}}
            ]
        },
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 10, "podAffinityTerm": _term(ZONE, labels)},
                {"weight": 1, "podAffinityTerm": _term(HOSTNAME, labels)},
            ]
        },
    }


def _term(key: str, labels: Mapping[str, str]) -> Json:
    return {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}


def _is_in(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": list(values)}
