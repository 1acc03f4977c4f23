"""What Hetzner flags as available: told to whoever watches, and asked by nobody."""

import asyncio

from prometheus_client import CollectorRegistry

from growth.providers.hetzner import gauges
from growth.telemetry.metrics import Metrics
from tests.hetzner_provider import HetznerWorld, claim, in_hetzner


def test_flags_are_scraped_and_gate_nothing() -> None:
    """As the account last told them, nothing before; a type that is flagged unavailable is bought all the same."""

    async def body(world: HetznerWorld) -> None:
        registry = CollectorRegistry(auto_describe=False)
        gauges.declare(Metrics(registry), world.provider)

        def flagged(kind: str, zone: str) -> float | None:
            labels = {"provider": "hetzner", "instance_type": kind, "zone": zone}
            return registry.get_sample_value("growth_cloud_type_flagged_available", labels)

        assert flagged("cx33", "fsn1") is None
        await world.provider.catalogue()
        assert flagged("cx33", "fsn1") == 1
        world.fake.market.flag("cx33", "fsn1", available=False)
        await asyncio.sleep(301)
        bought = await world.provider.create(claim("one", "cx33", zones=("fsn1",)))
        assert (bought.instance_type, bought.zone) == ("cx33", "fsn1")
        assert (flagged("cx33", "fsn1"), flagged("cx33", "nbg1")) == (0, 1)

    in_hetzner(body)
