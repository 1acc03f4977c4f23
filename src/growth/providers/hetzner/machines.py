"""The machines of this cluster, listed once for everybody who asks at the same time: calls are counted by the account."""

import asyncio
from collections.abc import Mapping

from growth.ports import Clock
from growth.providers.hetzner import labels
from growth.providers.hetzner.client import HetznerApi
from growth.providers.hetzner.wire import Server


class Machines:
    """Only those with our cluster's label."""

    def __init__(self, cloud: HetznerApi, *, cluster: str, clock: Clock) -> None:
        self._cloud = cloud
        self._cluster = cluster
        self._clock = clock
        self._lock = asyncio.Lock()
        self._listed: Mapping[int, Server] = {}
        self._as_of: float | None = None

    async def all(self, *, within: float = 0.0) -> Mapping[int, Server]:
        """The whole list by number, begun at most `within` seconds before now. `CallError` rather than a part of it."""
        oldest = self._clock.monotonic() - within
        if self._as_of is not None and self._as_of >= oldest:
            return self._listed
        async with self._lock:
            if self._as_of is None or self._as_of < oldest:
                began = self._clock.monotonic()
                found = await self._cloud.servers(labels=labels.selector(self._cluster))
                # Whatever the selector found: what has not our label is not ours.
                self._listed = {server.id: server for server in found if self.is_ours(server)}
                self._as_of = began
            return self._listed

    def is_ours(self, server: Server) -> bool:
        return server.labels.get(labels.CLUSTER) == self._cluster
