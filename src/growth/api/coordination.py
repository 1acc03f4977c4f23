"""Leases: who leads, and which kubelet is alive."""

import datetime as dt
from typing import Final

from growth.api.kinds import Kind
from growth.api.meta import ObjectMeta, Struct


class LeaseSpec(Struct, frozen=True):
    """Times have microseconds. An empty holder means that the lease was given back."""

    holder_identity: str = ""
    lease_duration_seconds: int = 0
    lease_transitions: int = 0
    acquire_time: dt.datetime | None = None
    renew_time: dt.datetime | None = None


class Lease(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: LeaseSpec = LeaseSpec()


LEASE: Final = Kind("coordination.k8s.io", "v1", "Lease", "leases", namespaced=True, type=Lease)
