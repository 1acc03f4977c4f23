"""Keeps what stands beside purchases: conditions of LinodeNodeClasses, the class' tags on machines, capacity nobody claims.

A class is judged when it changes and every few minutes. While the account cannot be asked, what was said before stands.
Tags of a class are changed on machines in place: those that were applied last and are no longer named go, new ones come.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from growth.api.clouds import CloudError
from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass
from growth.kube.api import Api
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.ports import Clock
from growth.providers.http import CallError
from growth.providers.linode import tags, wire
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.holdings import Holdings
from growth.providers.linode.provider import LinodeProvider
from growth.providers.readiness import JUDGED_SECONDS, UNREADY_SECONDS
from growth.telemetry.logs import about, logger

_log = logger("nodeclass")

# How often classes are looked at: whether one changed, or is due.
LOOK_SECONDS: Final = 5.0
# How often capacity that nobody claims is looked for.
COLLECT_SECONDS: Final = 30.0
APPLIED_ANNOTATION: Final = "growth.dev/applied-tags"


class Keeper:
    """`run` works until cancelled. One at a time is meant to; two do no harm."""

    def __init__(self, api: Api, cloud: LinodeApi, provider: LinodeProvider, *, clock: Clock) -> None:
        self._api = api
        self._cloud = cloud
        self._provider = provider
        self._clock = clock
        # By name: the generation that was judged, and when to judge again.
        self._judged: dict[str, tuple[int, float]] = {}

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.look, LOOK_SECONDS), name="node classes")
            group.create_task(self._repeat(self._collect, COLLECT_SECONDS), name="unclaimed capacity")

    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await work()
            except (GateClosed, ConfigError):
                raise
            except (KubeError, CallError, CloudError) as error:
                _log.warning("will try again", error=str(error), again=seconds)
            except Exception:  # noqa: BLE001 - whatever it is, everything else must go on
                _log.exception("a bug in us; it waits", again=seconds)

    async def _collect(self) -> None:
        await self._provider.collect()

    # Whether machines can be made.

    async def look(self) -> None:
        """Once: every class that changed or is due is judged, and its tags are brought to its machines."""
        now = self._clock.monotonic()
        for each in await self._provider.readiness.classes():
            name, generation = each.metadata.name, each.metadata.generation
            known = self._judged.get(name)
            if each.metadata.deletion_timestamp is not None or (known and known[0] == generation and now < known[1]):
                continue
            with about(reconciler="nodeclass", key=name):
                try:
                    ready = await self._provider.readiness.judge(each)
                    if ready:
                        await self._retag(each)
                except (Conflict, NotFound):
                    continue
            again = JUDGED_SECONDS if ready else UNREADY_SECONDS
            self._judged[name] = (generation, self._clock.monotonic() + again)

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
