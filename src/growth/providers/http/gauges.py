"""What an account's calls are like, to be watched: others use them too, and without calls nothing is bought or given back."""

from typing import Final

from growth.providers.http.client import Client
from growth.telemetry.metrics import Declaration, Gauge, Metrics

REMAINING: Final = Gauge(
    "growth_cloud_calls_remaining", "Calls that the account has left, as the cloud last said.", labels=("provider",)
)
LIMIT: Final = Gauge(
    "growth_cloud_calls_limit",
    "Calls that the account has when none are used, as the cloud last said.",
    labels=("provider",),
)
WAITING: Final = Gauge(
    "growth_cloud_calls_waiting", "Calls that wait until the account has some left.", labels=("provider",)
)
METRICS: Final[tuple[Declaration, ...]] = (REMAINING, LIMIT, WAITING)


def declare(metrics: Metrics, client: Client, *, provider: str) -> None:
    """Shows what the client's budget says, at every scrape; nothing before the cloud has said anything."""

    def shown(value: float | None) -> list[tuple[dict[str, str], float]]:
        return [] if value is None else [({"provider": provider}, float(value))]

    metrics.read(REMAINING, lambda: shown(client.budget.statistics().remaining))
    metrics.read(LIMIT, lambda: shown(client.budget.statistics().limit))
    metrics.read(WAITING, lambda: shown(client.budget.statistics().waiting))
