"""Watches the watches: names what the cache does not follow, in the log and as metrics, until it follows again.

Nothing is bought or disrupted meanwhile. Informers recover by themselves; a person needs to know only why they do not.
"""

import asyncio
from typing import Final

from growth.controllers.environment import Environment
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Declaration, Gauge

_log = logger("watchdog")

NODE_COUNT: Final = Gauge("karpenter_cluster_state_node_count", "Number of nodes in the cluster's state.")
SYNCED: Final = Gauge("karpenter_cluster_state_synced", "1 while the cluster's state follows the server, else 0.")
UNSYNCED_TIME: Final = Gauge(
    "karpenter_cluster_state_unsynced_time_seconds", "How long the cluster's state has not followed the server."
)
UNSYNCED_KINDS: Final = Gauge(
    "growth_state_unsynced_seconds", "How long each kind that is not followed has not been.", labels=("kind", "why")
)

METRICS: Final[tuple[Declaration, ...]] = (NODE_COUNT, SYNCED, UNSYNCED_TIME, UNSYNCED_KINDS)

LOOK_SECONDS: Final = 5.0
# Starting takes a moment; what is not there after this is worth a line.
PATIENCE_SECONDS: Final = 30.0
REPEAT_SECONDS: Final = 60.0


class Watchdog:
    """`run` until cancelled. Metrics are read when they are scraped, whether or not it runs."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._since: float | None = env.clock.monotonic()
        self._told: float | None = None
        state, metrics = env.state, env.metrics
        metrics.read(NODE_COUNT, lambda: [({}, float(len(state.nodes.store)))])
        metrics.read(SYNCED, lambda: [({}, float(state.synced))])
        metrics.read(UNSYNCED_TIME, lambda: [({}, self._unsynced_for())])
        metrics.read(UNSYNCED_KINDS, self._kinds)

    async def run(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_SECONDS)

    def look(self) -> None:
        """Says what is not followed when that lasts, and once when it is over."""
        now = self._env.clock.monotonic()
        unsynced = self._env.state.unsynced()
        if not unsynced:
            if self._told is not None and self._since is not None:
                _log.info("the cluster's state follows the server again", after=f"{now - self._since:.0f}s")
            self._since = self._told = None
            return
        if self._since is None:
            self._since = min(each.since for each in unsynced)
        late = now - self._since >= PATIENCE_SECONDS
        if late and (self._told is None or now - self._told >= REPEAT_SECONDS):
            self._told = now
            _log.warning(
                "the cluster's state does not follow the server: nothing is bought or disrupted",
                seconds=round(now - self._since),
                unsynced=[
                    f"{each.kind}: {each.why} for {now - each.since:.0f} s, {each.error or 'no answer yet'}"
                    for each in unsynced
                ],
            )

    def _unsynced_for(self) -> float:
        unsynced = self._env.state.unsynced()
        return self._env.clock.monotonic() - min(each.since for each in unsynced) if unsynced else 0.0

    def _kinds(self) -> list[tuple[dict[str, str], float]]:
        now = self._env.clock.monotonic()
        return [({"kind": each.kind, "why": each.why.value}, now - each.since) for each in self._env.state.unsynced()]
