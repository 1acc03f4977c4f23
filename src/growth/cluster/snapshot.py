"""The immutable view of the cluster that planning reads. Imports `growth.api` and `growth.units` only.

Everything here is a value: whoever makes a snapshot may keep changing its own state, and a plan made from the snapshot
stays a plan of that moment. Views hold what planning asks and nothing of how it came to be known.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

import msgspec

from growth.api.instance_types import InstanceType
from growth.api.karpenter import Requirement
from growth.api.placement import Taint
from growth.api.pods import Pod
from growth.api.pools import PoolRef
from growth.api.volumes import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from growth.cluster.shapes import PodShape
from growth.units.resources import Amounts

NODES: Final = "nodes"  # the pseudo-resource that counts machines


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BackedOff:
    """A sort of pods for which a pool's machines came in vain in so many rounds, and why. With `probe` one machine may be
    bought for pods that wait, with `rested` for pods that move too. `claim` is the last that came in vain.
    """

    rounds: int
    why: str
    probe: bool
    rested: bool = False
    claim: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoolView:
    """A pool of either API, with what it may still buy.

    `used` counts what exists, what is in flight and what is reserved, of every limited resource and of `nodes`.
    `type_max` and `priorities` are those of growth pools, by the type's name; a type missing there has no bound and
    priority 0. `problem` says why nothing can be bought here now (not ready, paused, …); empty when it can.
    `order` breaks ties of weight: greater first. `repriced` are the types whose prices here are not the cloud's own.
    `in_vain` are the sorts of pods, by digest, for which machines came in vain.
    """

    ref: PoolRef
    instance_types: tuple[InstanceType, ...]
    repriced: frozenset[str] = frozenset()
    weight: int = 0
    requirements: tuple[Requirement, ...] = ()
    labels: Mapping[str, str] = dataclasses.field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[Taint, ...] = ()
    limits: Amounts = dataclasses.field(default_factory=dict)
    used: Amounts = dataclasses.field(default_factory=dict)
    type_max: Mapping[str, int] = dataclasses.field(default_factory=dict)
    type_used: Mapping[str, int] = dataclasses.field(default_factory=dict)
    priorities: Mapping[str, int] = dataclasses.field(default_factory=dict)
    problem: str = ""
    in_vain: Mapping[str, BackedOff] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeView:
    """A machine that is there or on its way, as planning may fill it.

    `labels` and `taints` are those that count: of a node that is not initialised yet the startup and ephemeral taints
    are left out, and what the node does not say is the claim's. `requested` is the sum over its pods, `pods` their
    shapes with counts, `uncounted` those of them that hold what they hold, but no spread counts here: they are being
    deleted, or run on another node until it goes. `daemon_requested` is the part of `requested` that DaemonSet pods hold.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    allocatable: Amounts = dataclasses.field(default_factory=dict)
    requested: Amounts = dataclasses.field(default_factory=dict)
    daemon_requested: Amounts = dataclasses.field(default_factory=dict)
    pods: tuple[tuple[PodShape, int], ...] = ()
    uncounted: tuple[tuple[PodShape, int], ...] = ()
    volumes: Mapping[str, frozenset[str]] = dataclasses.field(default_factory=dict)  # CSI driver → attached volumes
    initialized: bool = True
    pool: PoolRef | None = None
    price: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class VolumesView:
    """What is known of volumes; claims are keyed by (namespace, name), the rest by name."""

    claims: Mapping[tuple[str, str], PersistentVolumeClaim] = dataclasses.field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume] = dataclasses.field(default_factory=dict)
    classes: Mapping[str, StorageClass] = dataclasses.field(default_factory=dict)
    csi_nodes: Mapping[str, CSINode] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The cluster at `revision`. `daemons` are sample pods, one a DaemonSet; `namespaces` hold the namespaces' labels."""

    currency: str
    pools: tuple[PoolView, ...] = ()
    nodes: tuple[NodeView, ...] = ()
    daemons: tuple[Pod, ...] = ()
    volumes: VolumesView = VolumesView()
    namespaces: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    revision: int = 0


class Demand(msgspec.Struct, frozen=True, gc=False):  # tens of thousands a pass: a struct is made five times quicker
    """A pod that wants a place now: without a scheduling gate. `key` is namespace/name."""

    key: str
    shape: PodShape
