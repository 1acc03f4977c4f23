"""The form of a scenario. Times are durations such as 90s or 10m, counted from the start; sizes are quantities.

hours: 1
objects: [manifests]            # created before the autoscaler starts; without a NodePool there is one for everything
workloads:
- {kind: waves, name: web, low: 5, high: 60, period: 20m, pod: {cpu: 500m, memory: 1Gi}}
- {kind: burst, name: sale, pods: 80, at: 10m, lasts: 8m}
- {kind: cron, name: report, every: 5m, pods: 4, runs: 90s}
- {kind: rollout, name: api, replicas: 20, every: 12m}
- {kind: batch, name: train, at: 2m, pods: 40, parallelism: 10, runs: 3m}
- {kind: trace, file: pods.csv, from: 3551h, lasts: 24h}
faults: {crash: 0.01}
events: [{at: 5m, do: patch, object: {…}}]
settings: {packer: cost}        # as of `growth run`, by their names
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from growth.api.kinds import Json


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields that nobody knows are refused: a misspelt one would silently change what is simulated."""


class PodShape(_Part, frozen=True):
    """The pods of a workload: one container with these requests; `spec` is laid over the pod's spec, field by field."""

    cpu: str = "500m"
    memory: str = "512Mi"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    volume: str = ""
    """Where set, each pod has a claim of this size of its own, of the class `simulated`."""
    spec: dict[str, Any] = {}


class Waves(_Part, frozen=True, tag="waves", tag_field="kind"):
    """A Deployment that swells from `low` to `high` and back within each `period`, in `steps` each way."""

    name: str
    high: int
    low: int = 0
    period: str = "20m"
    steps: int = 4
    at: str = "0s"
    pod: PodShape = PodShape()


class Burst(_Part, frozen=True, tag="burst", tag_field="kind"):
    """A Deployment of `pods` from `at` on for `lasts`; then none."""

    name: str
    pods: int
    at: str = "1m"
    lasts: str = "10m"
    pod: PodShape = PodShape()


class Cron(_Part, frozen=True, tag="cron", tag_field="kind"):
    """A Job of `pods` at once, every so often; each pod runs for `runs`."""

    name: str
    pods: int = 1
    every: str = "5m"
    runs: str = "60s"
    at: str = "0s"
    pod: PodShape = PodShape()


class Rollout(_Part, frozen=True, tag="rollout", tag_field="kind"):
    """A Deployment whose template changes every so often: all its pods are replaced."""

    name: str
    replicas: int
    every: str = "10m"
    at: str = "0s"
    pod: PodShape = PodShape()


class Batch(_Part, frozen=True, tag="batch", tag_field="kind"):
    """One Job: `pods` have to succeed, `parallelism` at a time (0: all at once)."""

    name: str
    pods: int
    parallelism: int = 0
    runs: str = "2m"
    at: str = "0s"
    pod: PodShape = PodShape()


class Recorded(_Part, frozen=True, tag="trace", tag_field="kind"):
    """Pods as a trace file recorded them, from `since` for `lasts`, with those that live at its start.

    `limit` 0 takes all of them.
    """

    file: str
    since: str = msgspec.field(default="0s", name="from")
    lasts: str = "24h"
    limit: int = 0
    name: str = "trace"


Workload = Waves | Burst | Cron | Rollout | Batch | Recorded


class Event(_Part, frozen=True):
    """Something done at a time: to an object by its manifest, or to the autoscaler (`crash`: all its replicas)."""

    at: str
    do: Literal["create", "patch", "delete", "crash"]
    object: dict[str, Any] = {}
    subresource: Literal["", "status"] = ""
    """Of a patch: the status is written apart."""


class Scenario(_Part, frozen=True):
    """Everything that is simulated. `growth.sim.scenario.files` has looked whether all of it can be understood."""

    hours: float = 1.0
    objects: tuple[Json, ...] = ()
    workloads: tuple[Workload, ...] = ()
    faults: dict[str, float] = {}
    events: tuple[Event, ...] = ()
    settings: dict[str, str | int | float | bool] = {}

    def flags(self) -> dict[str, str | bool | None]:
        """The settings as texts, as flags of `growth run` give them; the cloud is the simulated one."""
        words = {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.settings.items()
        }
        return {"provider": "kwok", **words}


# At the end the world is left in peace and judged: so long, or this share of a short run.
QUIET_SECONDS: Final = 1500.0
QUIET_SHARE: Final = 5 / 12


def busy_seconds(hours: float) -> float:
    """The time during which things change and go wrong; in the rest nothing does."""
    return hours * 3600.0 - min(QUIET_SECONDS, hours * 3600.0 * QUIET_SHARE)


def lasting(hours: float) -> float:
    """So many hours with as much peace after them as everything needs to come right, however short they are."""
    return max(hours, (busy_seconds(hours) + QUIET_SECONDS) / 3600.0)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One run: a scenario and everything that decides how it goes. Equal orders give equal traces."""

    seed: int
    scenario: Scenario
    hours: float
    faults: str = "none"
    """none, some, all, or name=rate,…: what `growth.sim.company` makes of it."""
    sabotage: str = ""
    crash_after: int = 0
    """The autoscaler crashes right after its n-th write; 0 for never."""
    replicas: int = 2
    quiet_seconds: float = 0.0
    """Peace at the end; 0: as much as is usual for so many hours."""

    @property
    def busy_seconds(self) -> float:
        return self.hours * 3600.0 - self.quiet_seconds if self.quiet_seconds else busy_seconds(self.hours)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A promise that was broken: which, in which run, when (virtual seconds), and what had happened."""

    seed: int
    invariant: str
    at: float
    story: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one run. `cost` is in billionths of `currency`."""

    seed: int
    crash_after: int
    steps: int
    writes: int
    """Of the autoscaler, without renewals of its Lease."""
    hours: float
    peak_machines: int
    peak_pods: int
    scale_ups: int
    scale_downs: int
    pending_seconds: float
    evictions: int
    cost: int
    currency: str
    digest: str
    """Of everything that happened, functions' names included."""
    effects: str
    """Of what was done to the outside (`growth.sim.effects`)."""
    faults: Mapping[str, int]
    violations: tuple[Violation, ...]
    core_seconds: float = 0.0
    """What the run cost the machine: the one thing here that another run of the order has not the same of."""
