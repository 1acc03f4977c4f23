"""Machines that a vendor's API sold, written down where the world keeps its own.

The world's parts that bring machines up, and those who count them, read records of machines (`providers.kwok.records`).
A machine that a fake sells gets such a record in the very request that makes it a claim's, as the act of whoever asked,
and loses it when it is gone, or not the claim's any more; and whoever else takes a record away has taken the machine. Growth
never looks at these records: its provider knows what the API tells, and nothing else.
"""

import contextlib
import dataclasses
import datetime as dt
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from growth.api import names
from growth.api.core import CONFIG_MAP
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, NotFound
from growth.providers.kwok import records
from growth.providers.kwok.records import Record, State
from growth.sim.kernel import Kernel
from growth.sim.seams import Actor, Witness
from growth.units.resources import quantities

R = TypeVar("R")

USER: Final = "growth-kwok"
# Until it runs nobody knows when its kubelet registers.
LONG_AFTER: Final = dt.timedelta(days=3650)
# Of the memory that is advertised: what a kernel shows of it.
MEMORY_PERCENT: Final = 96


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a vendor's half stands: the world, and the cluster whose machines are recorded in it."""

    kernel: Kernel
    witness: Witness
    admin: Api
    cluster: str
    namespace: str
    boot: dt.timedelta
    """From when a machine runs until its kubelet registers."""


class Records:
    """Of one vendor's machines, by the numbers that the vendor gave them."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._kept: dict[int, tuple[str, str]] = {}  # the record's name, and the UID of the machine's claim

    def __contains__(self, number: int) -> bool:
        return number in self._kept

    def claims(self) -> Mapping[int, str]:
        """The UIDs of the claims whose machines these are, by the machines' numbers."""
        return {number: uid for number, (_, uid) in self._kept.items()}

    def add(self, number: int, record: Record, *, by: Actor) -> None:
        """Nothing where there is a record of that claim."""
        body = records.config_map(record, cluster=self._ground.cluster)
        with contextlib.suppress(AlreadyExists):
            at_once(self._api(by).create(CONFIG_MAP, body, namespace=self._ground.namespace))
            self._kept[number] = (body["metadata"]["name"], record.claim_uid)

    def change(self, number: int, data: Mapping[str, str], *, by: Actor) -> None:
        """Nothing where the machine has none."""
        if number in self._kept:
            name, _ = self._kept[number]
            with contextlib.suppress(NotFound):
                change = {"data": dict(data)}
                at_once(self._api(by).patch(CONFIG_MAP, name, change, namespace=self._ground.namespace))

    def remove(self, number: int, *, by: Actor) -> None:
        """Nothing where the machine has none."""
        name, _ = self._kept.pop(number, ("", ""))
        if name:
            with contextlib.suppress(NotFound):
                at_once(self._api(by).delete(CONFIG_MAP, name, namespace=self._ground.namespace))

    def taken(self, name: str) -> int | None:
        """Somebody took this record away: the number of its machine, which has none from now on; None for no machine's."""
        number = next((each for each, (record, _) in self._kept.items() if record == name), None)
        if number is not None:
            del self._kept[number]
        return number

    def _api(self, actor: Actor) -> Api:
        return self._ground.witness.api(actor, user=USER)


def record_of(
    *,
    claim: str,
    claim_uid: str,
    provider_id: str,
    type_: str,
    zone: str,
    arch: str,
    cpu: int,
    cpu_kept: int,
    memory: int,
    pod_percent: int,
    disk: int,
    pods: int,
    taints: Sequence[Json],
    registers_at: dt.datetime,
    labels: Mapping[str, str] | None = None,
) -> Record:
    """What the kubelet of a machine will say: less memory than is advertised, as real ones do.

    CPU is in thousandths of a core, memory and disk in bytes. A kubelet keeps `cpu_kept` from pods, and leaves them
    `pod_percent` of the memory. The zone is the region too; `labels` are the vendor's own.
    """
    size = {"cpu": cpu, "pods": pods, "ephemeral-storage": disk}
    return Record(
        claim=claim,
        claim_uid=claim_uid,
        provider_id=provider_id,
        instance_type=type_,
        zone=zone,
        capacity_type=names.ON_DEMAND,
        reservation="",
        state=State.PENDING,
        registers_at=registers_at,
        labels={
            names.ARCH_LABEL: arch,
            names.OS_LABEL: "linux",
            names.INSTANCE_TYPE_LABEL: type_,
            names.ZONE_LABEL: zone,
            names.REGION_LABEL: zone,
            **(labels or {}),
        },
        taints=tuple(taints),
        capacity=quantities({**size, "memory": memory * MEMORY_PERCENT // 100}),
        allocatable=quantities({**size, "cpu": cpu - cpu_kept, "memory": memory * pod_percent // 100}),
    )


def taints_of(claim: NodeClaim) -> list[Json]:
    """With which its machine's kubelet registers."""
    return [
        {"key": taint.key, "effect": taint.effect, **({"value": taint.value} if taint.value else {})}
        for taint in (*claim.spec.taints, *claim.spec.startup_taints)
    ]


def at_once(call: Coroutine[Any, Any, R]) -> R:
    """The result of a call that waits for nothing, as none of the server in process does."""
    try:
        call.send(None)
    except StopIteration as done:
        value: R = done.value
        return value
    raise AssertionError("a call of the server in process waited")
