"""What Hetzner flags as available, to be watched. It is advice and gates nothing: types flagged unavailable have been sold,
and the reverse; only an order tells.
"""

from typing import Final

from growth.providers.hetzner.provider import HetznerProvider
from growth.telemetry.metrics import Declaration, Gauge, Metrics

FLAGGED: Final = Gauge(
    "growth_cloud_type_flagged_available",
    "Whether the cloud flags the type as available there: 1 or 0. It is advice; plans do not ask it.",
    labels=("provider", "instance_type", "zone"),
)
METRICS: Final[tuple[Declaration, ...]] = (FLAGGED,)


def declare(metrics: Metrics, provider: HetznerProvider) -> None:
    """Shows the flags as the account last told them; nothing before, nor of a place of which it says nothing."""
    metrics.read(
        FLAGGED,
        lambda: [
            (
                {"provider": provider.name, "instance_type": kind.name, "zone": place.name},
                float(place.available),
            )
            for kind in provider.told_types
            for place in kind.locations or ()
            if place.available is not None
        ],
    )
