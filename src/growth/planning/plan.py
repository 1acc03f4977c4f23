"""A plan: what to buy, for which pods, why, and what cannot be placed. Views of it are all that people see."""

import dataclasses
import enum
from collections.abc import Mapping

from growth.api.pools import PoolRef
from growth.planning.requirements import Requirements
from growth.units.resources import Amounts


class Filter(enum.StrEnum):
    """The rule that kept a pod out of a pool."""

    TAINTS = "taints"
    REQUIREMENTS = "requirements"
    RESOURCES = "resources"
    TOPOLOGY = "topology"
    VOLUMES = "volumes"
    PORTS = "ports"
    MIN_VALUES = "minValues"
    LIMITS = "limits"
    UNAVAILABLE = "unavailable"
    UNSUPPORTED = "unsupported"
    POOL = "pool"
    CAPS = "caps"
    IN_VAIN = "inVain"


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """Why a pool did not take a pod; `pool` None where the pod itself is the reason."""

    pool: PoolRef | None
    filter: Filter
    message: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlannedClaim:
    """One machine to buy. `price` and what stands beside it are of the offering that is expected: the cheapest.

    `instance_types` are what its claim lists, cheapest first, and `max_price` is what the claim may cost at most: so many
    offerings cost no more that `minValues` hold among them, unless they are relaxed. Below `lowest_max_price` they would not.
    `repriced`: overlays changed prices of some of the types, so that the cloud can be told no bound. `requirements` what the
    machine was narrowed to, and `labels` what it will carry. `requests` include the DaemonSets of the expected type, and
    `least_requests` of each resource the least that DaemonSets take of one of the types: all of them have room for so much.
    `next_best` is the cheapest offering of another type, with its price. `spare`: it is larger than its pods need, because
    kube-scheduler spreads pods where a plan packs them. `kept`: it is bought without any pod, because its pool keeps so many
    of its type.
    """

    pool: PoolRef
    instance_type: str
    zone: str
    capacity_type: str
    price: int
    max_price: int
    lowest_max_price: int
    instance_types: tuple[str, ...]
    requirements: Requirements
    labels: Mapping[str, str]
    requests: Amounts
    least_requests: Amounts
    pods: tuple[str, ...]
    next_best: tuple[str, int] | None
    repriced: bool = False
    min_values_relaxed: bool = False
    spare: bool = False
    kept: int = 0


@dataclasses.dataclass(frozen=True, slots=True)
class Filled:
    """An existing node and the pods that go there."""

    name: str
    pods: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Unplaced:
    """A pod that nothing can hold, and what each pool had against it, near-misses first."""

    pod: str
    reasons: tuple[Reason, ...]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The result of one pass. `order` is every placement as it was decided: (pod, node name or index of the claim).

    Money is in billionths of the currency an hour. `planned` is what the machines would cost if kube-scheduler packed as
    we do, `rehearsed` what they cost with those that its rehearsal adds (None where there was none). `objective` is
    `planned` and the cost of a node for each machine; no plan for these pods has an objective below `lower_bound` (None
    where that is not known), and `bound_ignores` are the rules that the bound leaves out. `flexibility` is how dear the
    types may be that a claim lists, in percent of its price, unless `minValues` needs dearer ones. `told`: kube-scheduler fills the
    machines so only if the pods of each claim are nominated for its machine.
    """

    revision: int
    currency: str
    packer: str
    claims: tuple[PlannedClaim, ...]
    filled: tuple[Filled, ...]
    unplaced: tuple[Unplaced, ...]
    order: tuple[tuple[str, str | int], ...]
    steps: int
    planned: int
    flexibility: int
    rehearsed: int | None = None
    objective: int | None = None
    lower_bound: int | None = None
    bound_ignores: tuple[str, ...] = ()
    told: bool = False

    @property
    def hourly(self) -> int:
        """What the planned machines cost an hour, in billionths of the currency."""
        return sum(claim.price for claim in self.claims)

    @property
    def max_hourly(self) -> int:
        """What they cost at most, whichever of their offerings are launched."""
        return sum(claim.max_price for claim in self.claims)
