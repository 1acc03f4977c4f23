"""Until when a machine is paid for. Clouds bill every quantum of time that has begun: ending a machine within one saves
nothing, so one that nobody needs may as well stay until shortly before its end. Pure.
"""

import datetime as dt
from collections.abc import Mapping
from typing import Final

from growth.api.instance_types import InstanceType
from growth.api.karpenter import NodeClaim
from growth.cluster.pricing import offering_of, type_of

# A machine takes a while to be drained and to go; what is not gone in time costs another quantum.
LEAD: Final = dt.timedelta(minutes=3)


def paid_until(claim: NodeClaim, types: Mapping[str, InstanceType], at: dt.datetime) -> dt.datetime | None:
    """The end of the quantum that `at` falls into; None where nobody knows, or time is paid as it passes.

    Counted from the claim's creation, which is a little before the purchase. `types` are by name, as `type_of` takes them.
    """
    bought = claim.metadata.creation_timestamp
    kind = type_of(claim.metadata.labels, types)
    offering = offering_of(claim.metadata.labels, kind)
    if bought is None or offering is None or offering.billing is None or at < bought:
        return None
    quantum = dt.timedelta(seconds=offering.billing.quantum_seconds)
    return bought + quantum * ((at - bought) // quantum + 1)


def too_early(end: dt.datetime | None, at: dt.datetime) -> bool:
    """Whether a machine that is paid for until `end` would be ended at `at` for nothing."""
    return end is not None and at < end - LEAD
