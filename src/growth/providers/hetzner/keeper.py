"""Keeps what stands beside purchases: the status of HetznerNodeClasses, and no empty placement groups."""

import asyncio
import contextlib
from collections.abc import Collection
from typing import Final

from growth.api.nodeclasses import HETZNER_NODE_CLASS, HetznerNodeClass
from growth.kube.api import Api
from growth.ports import Clock, Random
from growth.providers.hetzner import inventory, labels
from growth.providers.hetzner.classes import hashes_of
from growth.providers.hetzner.provider import HetznerProvider
from growth.providers.http import CallError
from growth.providers.keeping import ClassKeeper
from growth.telemetry.logs import logger

_log = logger("nodeclass")

# How often empty placement groups are looked for.
TIDY_SECONDS: Final = 900.0


class Keeper(ClassKeeper[HetznerNodeClass]):
    chore = "placement groups"

    def __init__(self, api: Api, provider: HetznerProvider, *, clock: Clock, random: Random) -> None:
        super().__init__(api, HETZNER_NODE_CLASS, provider.readiness, clock=clock, random=random)
        self._provider = provider

    def _is_ours(self, provider_id: str) -> bool:
        return labels.number_of(provider_id) is not None or inventory.number_of(provider_id) is not None

    def _hashes_of(self, node_class: HetznerNodeClass) -> Collection[str]:
        return hashes_of(node_class.spec)

    async def _made_by(self, provider_id: str, *, within: float) -> str:
        number = labels.number_of(provider_id)
        if number is None:
            return await self._provider.inventory.made_by(provider_id)
        server = (await self._provider.machines.all(within=within)).get(number)
        return server.labels.get(labels.CLASS_HASH, "") if server is not None else ""

    # Placement groups.

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(TIDY_SECONDS)
            # A class that is gone, or spreads no longer, leaves groups behind.
            spread = any(each.spec.placement_group == "Spread" for each in self._classes.store)
            if not spread and not self._provider.groups.are_there():
                continue
            with contextlib.suppress(CallError):
                removed = await self._provider.groups.tidy()
                if removed:
                    _log.info("removed empty placement groups", groups=removed)
