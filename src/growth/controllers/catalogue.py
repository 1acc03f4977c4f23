"""Keeps what the cloud sells, its prices and its stock, in the shared state.

A read that fails changes nothing: yesterday's catalogue is better than none, and the cloud refuses what it has not got.
"""

import asyncio
import contextlib
from typing import Final

from growth.api.clouds import CloudError
from growth.api.instance_types import Catalogue
from growth.controllers.environment import Environment
from growth.kube.backoff import Backoff, BackoffSettings
from growth.telemetry.logs import about, logger
from growth.telemetry.metrics import Declaration, Gauge

_log = logger("catalogue")

RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=60.0, jitter=0.2)

AGE: Final = Gauge("growth_catalogue_age_seconds", "Seconds since the cloud last told what it sells.")
METRICS: Final[tuple[Declaration, ...]] = (AGE,)


class CatalogueReader:
    """`run` reads every `catalogue_period`; `refresh` asks for one more read soon, after news of the stock."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._wake = asyncio.Event()
        self._read_at: float | None = None
        self._backoff = Backoff(env.random, RETRY)
        env.metrics.read(AGE, self._age)

    def refresh(self) -> None:
        """Reads again as soon as possible; several calls before that are one."""
        self._wake.set()

    async def run(self) -> None:
        while True:
            self._wake.clear()
            with about(reconciler="catalogue"):
                pause = await self._read()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _read(self) -> float:
        """Reads once; how long to wait for the next time."""
        state = self._env.state
        try:
            catalogue = await self._env.provider.catalogue()
        except CloudError as error:
            pause = self._backoff.next()
            _log.warning(
                "cannot read what the cloud sells", error=str(error), again=pause, known=state.catalogue is not None
            )
            return pause
        self._backoff.reset()
        self._read_at = self._env.clock.monotonic()
        if catalogue != state.catalogue:
            _log.debug("catalogue changed", types=len(catalogue.types), offerings=_for_sale(catalogue))
            state.catalogue = catalogue
        return self._env.settings.catalogue_period

    def _age(self) -> list[tuple[dict[str, str], float]]:
        return [] if self._read_at is None else [({}, self._env.clock.monotonic() - self._read_at)]


def _for_sale(catalogue: Catalogue) -> int:
    return sum(offering.available for kind in catalogue.types for offering in kind.offerings)
