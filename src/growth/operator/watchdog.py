"""Says when what we know of the cluster cannot be relied on, and which kind it is that lags behind.

Nothing is restarted: informers heal by themselves, and a server that is away comes back no sooner for it. But a cache
that stays behind stops purchases and scale-down, and whoever is on call must not have to guess why.
"""

import asyncio
from typing import Final

from growth.cluster.state import State
from growth.ports import Clock
from growth.telemetry.logs import logger
from growth.telemetry.metrics import Declaration, Gauge, Metrics

_log = logger("watchdog")

LOOK_SECONDS: Final = 10.0
# Reported once when it has lasted so long, and again every so often while it lasts.
PATIENCE_SECONDS: Final = 60.0
REPEAT_SECONDS: Final = 300.0

SYNCED: Final = Gauge(
    "karpenter_cluster_state_synced", "1 while everything known of the cluster is up to date, else 0."
)
UNSYNCED_SECONDS: Final = Gauge(
    "karpenter_cluster_state_unsynced_time_seconds", "How long it has not been; 0 while it is."
)
NODE_COUNT: Final = Gauge("karpenter_cluster_state_node_count", "Nodes that are known.")
METRICS: Final[tuple[Declaration, ...]] = (SYNCED, UNSYNCED_SECONDS, NODE_COUNT)


class Watchdog:
    def __init__(self, state: State, *, clock: Clock, metrics: Metrics) -> None:
        self._state = state
        self._clock = clock
        self._told: dict[str, float] = {}
        metrics.read(SYNCED, lambda: [({}, float(state.synced))])
        metrics.read(UNSYNCED_SECONDS, lambda: [({}, self._longest())])
        metrics.read(NODE_COUNT, lambda: [({}, float(len(state.nodes.store)))])

    def problems(self) -> tuple[str, ...]:
        """One line for each kind that cannot be relied on."""
        now = self._clock.monotonic()
        return tuple(
            f"{each.kind}: {each.why} for {now - each.since:.0f} s, {each.failures} failures"
            f"{': ' + each.error if each.error else ''}"
            for each in self._state.unsynced()
        )

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            now = self._clock.monotonic()
            behind = {each.kind: each for each in self._state.unsynced()}
            for kind in [kind for kind in self._told if kind not in behind]:
                del self._told[kind]
                _log.info("synced again", kind=kind)
            for kind, each in behind.items():
                lasts = now - each.since
                if lasts >= PATIENCE_SECONDS and now - self._told.get(kind, -REPEAT_SECONDS) >= REPEAT_SECONDS:
                    self._told[kind] = now
                    _log.warning("not synced", kind=kind, why=str(each.why), seconds=round(lasts), error=each.error)

    def _longest(self) -> float:
        now = self._clock.monotonic()
        return max((now - each.since for each in self._state.unsynced()), default=0.0)
