"""Machines that nobody claims, many at once: none of them goes until somebody confirms exactly that list.

It is the rule of all sweeps: what takes many is more likely a mistake than a leak. The list stands in a ConfigMap of its own,
as the sweep for machines whose claim is gone takes away what stands in its, and is confirmed by the same annotation.
"""

import hashlib
from collections.abc import Collection
from typing import Final

from growth.api import names
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.kube.api import Api
from growth.kube.errors import AlreadyExists, Conflict, NotFound
from growth.providers.linode import tags
from growth.telemetry.logs import logger

_log = logger("linode")

# So many may always go; and so large a part of what the cluster has.
FEW: Final = 3
SHARE: Final = 0.2
NAME: Final = names.LKE_COLLECTION_CONFIG_MAP


class Many:
    """One per process. Raises `KubeError`. `held` is how many machines wait for a confirmation."""

    def __init__(self, api: Api, *, namespace: str, few: int = FEW, share: float = SHARE) -> None:
        self._api = api
        self._namespace = namespace
        self._few = few
        self._share = share
        self._told = ""
        # Whether a list may stand there; nobody knows what the process before left.
        self._stands = True
        self.held = 0

    async def may_go(self, machines: Collection[int], *, known: int) -> bool:
        """Whether all of them may, of so many that the cluster has. A confirmation is used up before anything is removed."""
        if len(machines) <= max(self._few, self._share * known):
            await self._nothing()
            return True
        lines = "\n".join(sorted(tags.provider_id(each) for each in machines))
        hash_ = hashlib.sha256(lines.encode()).hexdigest()[:16]
        if await self._is_confirmed(hash_):
            _log.info("collection confirmed", list=hash_, machines=len(machines))
            self.held = 0
            return True
        why = (
            f"{len(machines)} of {known} machines that nobody claims would be removed, more than {self._few} and more than"
            f" {self._share:.0%}"
        )
        await self._hold({"hash": hash_, "why": why, "machines": lines})
        self.held = len(machines)
        return False

    async def _is_confirmed(self, hash_: str) -> bool:
        held = await self._get()
        if held is None or held.metadata.annotations.get(names.CONFIRM_COLLECTION_ANNOTATION) != hash_:
            return False
        used = {
            "metadata": {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: None}},
            "data": {"hash": None, "released": hash_},
        }
        return await self._patch(held, used)

    async def _hold(self, data: dict[str, str]) -> None:
        """Writes the list down unless it stands there, and tells it once."""
        held = await self._get()
        self._stands = True
        if held is None:
            try:
                await self._api.create(
                    CONFIG_MAP, {"metadata": {"name": NAME}, "data": data}, namespace=self._namespace
                )
            except AlreadyExists:
                return
        elif held.data.get("hash") != data["hash"] and not await self._patch(held, {"data": data}):
            return
        if self._told != data["hash"]:
            self._told = data["hash"]
            _log.warning(
                "nothing that nobody claims is collected until somebody confirms it",
                why=data["why"],
                ConfigMap=NAME,
                annotation=f"{names.CONFIRM_COLLECTION_ANNOTATION}={data['hash']}",
            )

    async def _nothing(self) -> None:
        """There is nothing to hold back any more: a list that stands there would mislead."""
        self.held, self._told = 0, ""
        held = await self._get() if self._stands else None
        if held is not None:
            try:
                await self._api.delete(
                    CONFIG_MAP,
                    NAME,
                    namespace=self._namespace,
                    uid=held.metadata.uid,
                    revision=held.metadata.resource_version,
                )
            except (Conflict, NotFound):
                return
        self._stands = False

    async def _get(self) -> ConfigMap | None:
        try:
            return await self._api.get(CONFIG_MAP, NAME, namespace=self._namespace)
        except NotFound:
            return None

    async def _patch(self, held: ConfigMap, change: dict[str, object]) -> bool:
        """False where somebody else was at it: the next pass looks again."""
        try:
            await self._api.patch(
                CONFIG_MAP,
                NAME,
                change,
                namespace=self._namespace,
                revision=held.metadata.resource_version,
                uid=held.metadata.uid,
            )
        except (Conflict, NotFound):
            return False
        return True
