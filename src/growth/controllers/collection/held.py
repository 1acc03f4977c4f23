"""The list that a sweep holds back, in the ConfigMap `growth-collection`, and its confirmation."""

from growth.api import names
from growth.api.core import CONFIG_MAP, ConfigMap
from growth.api.events import WARNING, regarding
from growth.controllers.environment import Environment
from growth.kube.errors import AlreadyExists, Conflict, NotFound
from growth.planning.collecting import Sweep
from growth.telemetry.logs import logger

_log = logger("collection")


class HeldBack:
    """Writes only when the list changes; tells each list once."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._told = ""

    async def confirmed(self, sweep: Sweep) -> bool:
        """Whether somebody has confirmed exactly this list. The confirmation is used up before anything is removed."""
        held = await self._get()
        if held is None:
            return False
        given = held.metadata.annotations.get(names.CONFIRM_COLLECTION_ANNOTATION, "")
        if given != sweep.hash:
            if given:
                _log.warning("the confirmation names another list", confirmed=given, list=sweep.hash)
            return False
        used = {
            "metadata": {"annotations": {names.CONFIRM_COLLECTION_ANNOTATION: None}},
            "data": {"hash": None, "released": sweep.hash},
        }
        try:
            await self._env.api.patch(
                CONFIG_MAP,
                names.COLLECTION_CONFIG_MAP,
                used,
                namespace=self._env.settings.namespace,
                revision=held.metadata.resource_version,
                uid=held.metadata.uid,
            )
        except (Conflict, NotFound):
            return False
        _log.info("collection confirmed", list=sweep.hash, machines=len(sweep.machines), claims=len(sweep.claims))
        return True

    async def hold(self, sweep: Sweep, why: str) -> None:
        """Writes the list down and tells people, unless it stands there already."""
        held = await self._get()
        data = {
            "hash": sweep.hash,
            "why": why,
            "machines": "\n".join(sweep.machines),
            "nodeclaims": "\n".join(sweep.claims),
        }
        if held is None or held.data.get("hash") != sweep.hash:
            held = await self._write(held, data)
        if held is None or self._told == sweep.hash:
            return
        self._told = sweep.hash
        message = (
            f"Nothing is collected: {why}. The list stands in ConfigMap {names.COLLECTION_CONFIG_MAP}; to have exactly"
            f" this list removed, annotate it with {names.CONFIRM_COLLECTION_ANNOTATION}={sweep.hash}"
        )
        self._env.events.event(regarding(CONFIG_MAP, held.metadata), names.COLLECTION_HELD, message, type=WARNING)
        _log.warning("collection held back", why=why, list=sweep.hash)

    async def nothing(self) -> None:
        """There is nothing to hold back any more: a list that stands there would mislead."""
        self._told = ""
        held = await self._get()
        if held is not None and (
            held.data.get("hash") or names.CONFIRM_COLLECTION_ANNOTATION in held.metadata.annotations
        ):
            try:
                await self._env.api.delete(
                    CONFIG_MAP,
                    names.COLLECTION_CONFIG_MAP,
                    namespace=self._env.settings.namespace,
                    uid=held.metadata.uid,
                    revision=held.metadata.resource_version,
                )
            except (Conflict, NotFound):
                return

    async def _get(self) -> ConfigMap | None:
        try:
            return await self._env.api.get(
                CONFIG_MAP, names.COLLECTION_CONFIG_MAP, namespace=self._env.settings.namespace
            )
        except NotFound:
            return None

    async def _write(self, held: ConfigMap | None, data: dict[str, str]) -> ConfigMap | None:
        api, namespace = self._env.api, self._env.settings.namespace
        try:
            if held is None:
                body = {"metadata": {"name": names.COLLECTION_CONFIG_MAP}, "data": data}
                return await api.create(CONFIG_MAP, body, namespace=namespace)
            return await api.patch(
                CONFIG_MAP,
                names.COLLECTION_CONFIG_MAP,
                {"data": data},
                namespace=namespace,
                revision=held.metadata.resource_version,
            )
        except (AlreadyExists, Conflict, NotFound):
            return None  # somebody else is at it: the next sweep looks again
