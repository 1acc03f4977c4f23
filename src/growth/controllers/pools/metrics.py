"""What pools may have, what they have, and what that costs: gauges read at the scrape."""

from collections.abc import Iterator, Mapping
from typing import Final

from growth.api.karpenter import NodePool
from growth.cluster.pricing import PriceList
from growth.controllers.environment import Environment
from growth.controllers.gauges.nodes import word
from growth.controllers.ownership import serves
from growth.telemetry.metrics import Declaration, Gauge
from growth.units import QuantityError
from growth.units.resources import CPU, amount_of

LIMIT: Final = Gauge(
    "karpenter_nodepools_limit", "What all nodes of the pool may have in sum.", labels=("resource_type", "nodepool")
)
USAGE: Final = Gauge(
    "karpenter_nodepools_usage", "What the pool's nodes have in sum.", labels=("resource_type", "nodepool")
)
COST: Final = Gauge(
    "karpenter_nodepools_cost_total",
    "What the pool's machines cost an hour, as far as their prices are known.",
    labels=("nodepool",),
)
UNPRICED: Final = Gauge(
    "growth_nodepools_unpriced_nodes", "Machines of the pool whose price nobody knows.", labels=("nodepool",)
)
METRICS: Final[tuple[Declaration, ...]] = (LIMIT, USAGE, COST, UNPRICED)

_NANO: Final = 1e-9
# So many machines are looked at in one step of a scrape.
CLAIMS_A_STEP: Final = 200
Series = Iterator[tuple[Mapping[str, str], float]]


def read_gauges(env: Environment) -> None:
    """Lets the gauges read the shared state at every scrape."""

    def pools() -> Iterator[NodePool]:
        return (
            pool
            for pool in tuple(env.state.pools.store)
            if serves(env.provider, pool.spec.template.spec.node_class_ref)
        )

    def quantities(of: str) -> Series:
        for pool in pools():
            held = pool.spec.limits if of == "limit" else pool.status.resources
            for name, quantity in held.items():
                try:
                    amount = amount_of(name, quantity)
                except QuantityError:
                    continue
                yield {"resource_type": word(name), "nodepool": pool.metadata.name}, base_units(name, amount)

    # By pool: what its machines cost in billionths, and of how many nobody knows it.
    told: dict[str, tuple[int, int]] = {}

    def count() -> Iterator[None]:
        found: dict[str, tuple[int, int]] = {}
        for pool in pools():
            cost = unknown = 0
            for number, price in enumerate(_prices(env, pool), start=1):
                cost, unknown = (cost, unknown + 1) if price is None else (cost + price, unknown)
                if not number % CLAIMS_A_STEP:
                    yield
            found[pool.metadata.name] = (cost, unknown)
        told.clear()
        told.update(found)

    def costs() -> Series:
        for name, (cost, _) in tuple(told.items()):
            yield {"nodepool": name}, cost * _NANO

    def unpriced() -> Series:
        for name, (_, unknown) in tuple(told.items()):
            yield {"nodepool": name}, float(unknown)

    env.metrics.prepare(count)
    env.metrics.read(LIMIT, lambda: quantities("limit"))
    env.metrics.read(USAGE, lambda: quantities("usage"))
    env.metrics.read(COST, costs)
    env.metrics.read(UNPRICED, unpriced)


def base_units(name: str, amount: int) -> float:
    """Cores, bytes, pieces."""
    return amount / 1000 if name == CPU else float(amount)


def _prices(env: Environment, pool: NodePool) -> Iterator[int | None]:
    prices = PriceList(env.state.catalogue)
    for claim in env.state.claims.store.find("pool", pool.metadata.name):
        if claim.status.provider_id:
            yield prices.of(claim)
