"""What a run amounts to: machines, pods, money, waiting. Kept from the server's history, step by step."""

import dataclasses
import math
from collections.abc import Mapping
from typing import Final

from growth.api.instance_types import Catalogue
from growth.api.kinds import Json
from growth.sim.seams import Step

MACHINE_LABEL: Final = "growth.dev/kwok-machine"
PODS: Final = ("", "pods")
CONFIG_MAPS: Final = ("", "configmaps")
HOUR: Final = 3600.0

# (type, zone, capacity type) → billionths of the currency per hour
Prices = Mapping[tuple[str, str, str], int]


def prices_of(catalogue: Catalogue) -> Prices:
    return {
        (kind.name, offering.zone, offering.capacity_type): offering.price
        for kind in catalogue.types
        for offering in kind.offerings
        if offering.price is not None
    }


def quanta_of(catalogue: Catalogue) -> Mapping[tuple[str, str, str], int]:
    """The seconds that are paid whole once they have begun, where a cloud bills so."""
    return {
        (kind.name, offering.zone, offering.capacity_type): offering.billing.quantum_seconds
        for kind in catalogue.types
        for offering in kind.offerings
        if offering.billing is not None
    }


def owed(hourly: int, seconds: float, quantum: int) -> float:
    """What a machine costs that has been there for so long: by the second, or (with a quantum) by each one begun."""
    if quantum:
        seconds = max(1, math.ceil(seconds / quantum)) * quantum
    return hourly * seconds / HOUR


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """`cost` is in billionths; a machine is paid from its creation to its end, as its cloud bills."""

    peak_machines: int
    peak_pods: int
    bought: int
    given_back: int
    pending_seconds: float
    evictions: int
    cost: int


class Tally:
    """A listener of `Witness`. Pods of DaemonSets, finished and deleted ones count neither as pods nor as waiting."""

    def __init__(self, prices: Prices, *, quanta: Mapping[tuple[str, str, str], int] | None = None) -> None:
        self._prices = prices
        self._quanta = quanta or {}
        # By name: hourly price, since when it has been paid, and in which steps.
        self._machines: dict[str, tuple[int, float, int]] = {}
        self._waiting: dict[tuple[str, str], float] = {}
        self._pods: dict[tuple[str, str], None] = {}
        self._peak_machines = 0
        self._peak_pods = 0
        self._bought = 0
        self._given_back = 0
        self._waited = 0.0
        self._evictions = 0
        self._paid = 0.0

    def __call__(self, step: Step) -> None:
        if step.which == PODS:
            self._pod(step)
        elif step.which == CONFIG_MAPS and MACHINE_LABEL in step.last["metadata"].get("labels", {}):
            self._machine(step)

    def totals(self, now: float) -> Totals:
        """As of a moment: what still runs or waits counts until then."""
        running = sum(owed(price, now - since, quantum) for price, since, quantum in self._machines.values())
        return Totals(
            peak_machines=self._peak_machines,
            peak_pods=self._peak_pods,
            bought=self._bought,
            given_back=self._given_back,
            pending_seconds=self._waited + sum(now - since for since in self._waiting.values()),
            evictions=self._evictions,
            cost=round(self._paid + running),
        )

    def _machine(self, step: Step) -> None:
        name = step.key[1]
        if step.new is None:
            price, since, quantum = self._machines.pop(name, (0, step.at, 0))
            self._paid += owed(price, step.at - since, quantum)
            self._given_back += 1
        elif step.old is None:
            data = step.new["data"]
            key = (data["instanceType"], data["zone"], data["capacityType"])
            self._machines[name] = (self._prices.get(key, 0), step.at, self._quanta.get(key, 0))
            self._bought += 1
            self._peak_machines = max(self._peak_machines, len(self._machines))

    def _pod(self, step: Step) -> None:
        if step.verb == "evict" and step.direct and _leaves(step):
            self._evictions += 1
        live = step.new is not None and _is_live(step.new)
        if not live:
            self._pods.pop(step.key, None)
        elif step.key not in self._pods and step.new is not None and not _is_daemon(step.new):
            self._pods[step.key] = None
            self._peak_pods = max(self._peak_pods, len(self._pods))
        waits = step.key in self._pods and step.new is not None and not step.new["spec"].get("nodeName")
        if waits:
            self._waiting.setdefault(step.key, step.at)
        else:
            self._waited += step.at - self._waiting.pop(step.key, step.at)


def _leaves(step: Step) -> bool:
    """Whether this very change is the pod's end: its deletion begins, or it is gone at once."""
    return not _ends(step.old or {}) and (step.new is None or _ends(step.new))


def _ends(pod: Json) -> bool:
    return bool(pod.get("metadata", {}).get("deletionTimestamp"))


def _is_live(pod: Json) -> bool:
    return not pod["metadata"].get("deletionTimestamp") and pod.get("status", {}).get("phase") not in {
        "Succeeded",
        "Failed",
    }


def _is_daemon(pod: Json) -> bool:
    return any(owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", ()))
