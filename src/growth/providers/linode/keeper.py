"""Keeps what stands beside purchases: the status of LinodeNodeClasses, the class' tags on machines, capacity nobody claims.

Tags of a class are changed on machines in place: those that were applied and are no longer named go, new ones come. Machines are
compared whenever the class is judged: one whose purchase was under way when the class changed comes with the tags of before.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final

from growth.api.clouds import CloudError
from growth.api.kinds import Json
from growth.api.linodeclasses import LINODE_NODE_CLASS, LinodeNodeClass
from growth.kube.api import Api
from growth.kube.changes import change
from growth.kube.errors import ConfigError, GateClosed, KubeError
from growth.ports import Clock, Random
from growth.providers.http import BudgetSpent, CallError, Refused
from growth.providers.keeping import ClassKeeper
from growth.providers.linode import tags, wire
from growth.providers.linode.client import LinodeApi
from growth.providers.linode.failures import Meaning, meaning
from growth.providers.linode.holdings import Holdings, is_unsure
from growth.providers.linode.provider import LinodeProvider
from growth.telemetry.logs import logger

_log = logger("nodeclass")

# Tags that the leader before us wrote may still be on their way.
START_SECONDS: Final = 5.0
# How often capacity that nobody claims is looked for.
COLLECT_SECONDS: Final = 30.0
# A purchase that began with the class of before is over after so long: then its tags are forgotten.
LATE_SECONDS: Final = 600.0
# After so many machines whose tags cannot be written a round ends: the trouble is not theirs.
FAILURES: Final = 3
APPLIED: Final = "appliedTags"


class Keeper(ClassKeeper[LinodeNodeClass]):
    chore = "unclaimed capacity"

    def __init__(self, api: Api, cloud: LinodeApi, provider: LinodeProvider, *, clock: Clock, random: Random) -> None:
        super().__init__(api, LINODE_NODE_CLASS, provider.readiness, clock=clock, random=random)
        self._cloud = cloud
        self._provider = provider
        self._clock = clock
        # By class: the tags that it names, and since when (monotonic) it has been seen with them.
        self._wanted: dict[str, tuple[list[str], float]] = {}
        # Machines whose tags could not be written the last time: they are the last in turn.
        self._failing: set[int] = set()

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

    def _is_ours(self, provider_id: str) -> bool:
        return tags.number_of(provider_id) is not None

    def _hashes_of(self, node_class: LinodeNodeClass) -> Collection[str]:
        return self._provider.hashes_of(node_class)

    async def _made_by(self, provider_id: str, *, within: float) -> str:
        number = tags.number_of(provider_id)
        listed = await (await self._provider.parts()).held.machines.since(self._clock.monotonic() - within)
        return next((tags.value(each.tags, tags.CLASS_HASH) for each in listed if each.id == number), "")

    async def _is_ready(self, node_class: LinodeNodeClass) -> None:
        await self._retag(node_class)

    # Tags in place.

    async def _retag(self, node_class: LinodeNodeClass) -> None:
        name, wanted = node_class.metadata.name, list(node_class.spec.tags)
        if not wanted and not node_class.status.applied_tags:
            return
        now = self._clock.monotonic()
        known, since = self._wanted.get(name, ([], now))
        self._wanted[name] = (wanted, since if known == wanted else now)
        applied = await self._note(name, lambda before: list(dict.fromkeys([*before, *wanted])))
        held = (await self._provider.parts()).held
        changed = False
        failed: list[CallError] = []
        listed = await held.machines.since(self._clock.monotonic())
        for instance in sorted(listed, key=lambda each: each.id in self._failing):
            if tags.has(instance.tags, tags.NODE_CLASS, name) and not instance.deleting:
                try:
                    changed |= await self._retag_one(held, instance, wanted=wanted, applied=applied)
                    self._failing.discard(instance.id)
                except CallError as error:
                    failed.append(error)  # of one machine: the others get theirs
                    self._failing.add(instance.id)
                    if _is_of_all(error) or len(failed) == FAILURES:
                        break
        if failed:
            raise failed[-1]
        self._failing &= {each.id for each in listed}
        if not changed and now - self._wanted[name][1] >= LATE_SECONDS:
            await self._note(name, lambda _: wanted)

    async def _note(self, name: str, edit: Callable[[list[str]], list[str]]) -> list[str]:
        """What is written down before machines get it: what they may have of the class, whoever gave it to them. In the status,
        which nobody loses who replaces the class.
        """

        def note(draft: Json) -> None:
            status = draft.setdefault("status", {})
            status[APPLIED] = edit(list(status.get(APPLIED) or ()))

        noted = await change(self._api, LINODE_NODE_CLASS, name, note, subresource="status")
        return list(noted["status"][APPLIED])

    async def _retag_one(
        self, held: Holdings, listed: wire.Instance, *, wanted: Sequence[str], applied: Sequence[str]
    ) -> bool:
        """Whether something had to be written. Under the key's lock: a purchase writes tags too."""
        key = tags.key_of_tags(listed.tags, listed.type)
        if key is None or _laid(listed.tags, wanted=wanted, applied=applied) == list(listed.tags):
            return False
        async with held.locks.held(key):
            fresh = await held.instance(listed.id)
            if fresh is None or fresh.deleting or not tags.values(fresh.tags, tags.CLAIM):
                return False
            result = _laid(fresh.tags, wanted=wanted, applied=applied)
            if result == list(fresh.tags):
                return False
            try:
                await self._cloud.retag(fresh.id, result)
            except (CallError, asyncio.CancelledError) as error:
                if is_unsure(error):
                    held.remembered.doubted(fresh.id, tags.uid_of(fresh.tags))
                raise
            return True


def _is_of_all(error: CallError) -> bool:
    """Whether it would meet every machine."""
    return isinstance(error, BudgetSpent) or (isinstance(error, Refused) and meaning(error) is Meaning.FATAL)


def _laid(held: Sequence[str], *, wanted: Sequence[str], applied: Sequence[str]) -> list[str]:
    """A machine's tags with those of the class as it is. Ours, and those that people gave it, stay."""
    gone = set(applied) - set(wanted)
    kept = [each for each in held if each not in gone or tags.is_ours(each)]
    return list(dict.fromkeys([*kept, *(each for each in wanted if not tags.is_ours(each))]))
