"""How many machines that nobody claims are held back, to be watched: people must confirm their end."""

from typing import Final

from growth.providers.linode.provider import LinodeProvider
from growth.telemetry.metrics import Declaration, Gauge, Metrics

HELD: Final = Gauge(
    "growth_lke_unclaimed_held",
    "Machines of LKE that nobody claims, too many to go at once, and that wait for people to confirm.",
)
METRICS: Final[tuple[Declaration, ...]] = (HELD,)


def declare(metrics: Metrics, provider: LinodeProvider) -> None:
    metrics.read(HELD, lambda: [({}, float(provider.held_back))])
