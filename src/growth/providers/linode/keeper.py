"""Keeps what stands beside purchases: the status of LinodeNodeClasses, the class' tags on machines, capacity nobody claims.

Tags of a class are changed on machines in place: those that were applied last and are no longer named go, new ones come.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from growth.api.clouds import CloudError
from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass
from growth.kube.api import Api
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.ports import Clock, Random
from growth.providers.http import CallError
from growth.providers.keeping import ClassKeeper
from growth.providers.linode import tags, wire
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.holdings import Holdings
from growth.providers.linode.provider import LinodeProvider
from growth.telemetry.logs import logger

_log = logger("nodeclass")

# Tags that the leader before us wrote may still be on their way.
START_SECONDS: Final = 5.0
# How often capacity that nobody claims is looked for.
COLLECT_SECONDS: Final = 30.0
APPLIED_ANNOTATION: Final = "growth.dev/applied-tags"


class Keeper(ClassKeeper[LinodeNodeClass]):
    chore = "unclaimed capacity"

    def __init__(self, api: Api, cloud: LinodeApi, provider: LinodeProvider, *, clock: Clock, random: Random) -> None:
        super().__init__(api, LINODE_NODE_CLASS, provider.readiness, clock=clock, random=random)
        self._cloud = cloud
        self._provider = provider
        self._clock = clock

    async def run(self) -> None:
        await asyncio.sleep(START_SECONDS)
        await super().run()

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(COLLECT_SECONDS)
            try:
                await self._provider.collect()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CallError, CloudError) as error:
                _log.warning("will try again", about=self.chore, error=str(error), again=COLLECT_SECONDS)
            except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                _log.exception("a bug in us; it waits", about=self.chore, again=COLLECT_SECONDS)

    def _number_of(self, provider_id: str) -> int | None:
        return tags.number_of(provider_id)

    def _hash_of(self, node_class: LinodeNodeClass) -> str:
        return self._provider.hash_of(node_class)

    async def _made_by(self, number: int, *, within: float) -> str:
        listed = await (await self._provider.parts()).held.machines.since(self._clock.monotonic() - within)
        return next((tags.value(each.tags, tags.CLASS_HASH) for each in listed if each.id == number), "")

    async def _is_ready(self, node_class: LinodeNodeClass) -> None:
        await self._retag(node_class)

    # Tags in place.

    async def _retag(self, node_class: LinodeNodeClass) -> None:
        wanted = list(node_class.spec.tags)
        applied = _applied(node_class)
        if wanted == applied:
            return
        held = (await self._provider.parts()).held
        for instance in await held.machines.since(self._clock.monotonic()):
            if tags.has(instance.tags, tags.NODE_CLASS, node_class.metadata.name) and not instance.deleting:
                await self._retag_one(held, instance, wanted=wanted, applied=applied)
        text = msgspec.json.encode(wanted).decode()
        patch = {"metadata": {"annotations": {APPLIED_ANNOTATION: text}}}
        await self._api.patch(LINODE_NODE_CLASS, node_class.metadata.name, patch)

    async def _retag_one(
        self, held: Holdings, listed: wire.Instance, *, wanted: Sequence[str], applied: Sequence[str]
    ) -> None:
        """Under the key's lock: a purchase writes tags too."""
        key = tags.key_of_tags(listed.tags, listed.type)
        if key is None:
            return
        async with held.locks.held(key):
            fresh = await held.instance(listed.id)
            if fresh is None or fresh.deleting or not tags.values(fresh.tags, tags.CLAIM):
                return
            gone = set(applied) - set(wanted)
            kept = [each for each in fresh.tags if each not in gone or tags.is_ours(each)]
            result = list(dict.fromkeys([*kept, *(each for each in wanted if not tags.is_ours(each))]))
            if result != list(fresh.tags):
                await self._cloud.retag(fresh.id, result)


def _applied(node_class: LinodeNodeClass) -> list[str]:
    try:
        return msgspec.json.decode(node_class.metadata.annotations.get(APPLIED_ANNOTATION, "[]"), type=list[str])
    except msgspec.DecodeError:
        return []
