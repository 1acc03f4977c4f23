"""Keeps what the cloud sells, its prices and its stock, in the shared state.

A read that fails changes nothing: yesterday's catalogue is better than none, and the cloud refuses what it has not got.
What it refused is left out for `refused_ttl`, whatever it says of it meanwhile.
"""

import asyncio
import contextlib
import dataclasses
from typing import Any, Final

from growth.api.clouds import CloudError
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.controllers.environment import Environment
from growth.kube.backoff import Backoff, BackoffSettings
from growth.kube.errors import ConfigError, GateClosed
from growth.kube.store import Change, Changed
from growth.providers.choice import choices
from growth.providers.shortages import Shortages
from growth.telemetry.logs import about, logger
from growth.telemetry.metrics import Declaration, Gauge
from growth.units import UnitError

_log = logger("catalogue")

RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=60.0, jitter=0.2)

AGE: Final = Gauge("growth_catalogue_age_seconds", "Seconds since the cloud last told what it sells.")
REFUSED: Final = Gauge("growth_offerings_refused", "Offerings that the cloud refused lately: plans leave them out.")
METRICS: Final[tuple[Declaration, ...]] = (AGE, REFUSED)


class CatalogueReader:
    """`run` reads every `catalogue_period`, and when a node class changes, which says what its machines are and own.

    `refused` is news of the stock from those who buy.
    """

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._wake = asyncio.Event()
        self._read_at: float | None = None
        self._told: Catalogue | None = None
        self._shortages = Shortages(env.clock, seconds=env.settings.refused_ttl)
        self._backoff = Backoff(env.random, RETRY)
        for informer in env.state.node_classes.values():
            informer.subscribe(self._on_class)
        env.metrics.read(AGE, self._age)
        env.metrics.read(REFUSED, lambda: [({}, float(len(self._shortages)))])

    def _on_class(self, news: Change[Any]) -> None:
        if not isinstance(news, Changed) or news.old.metadata.generation != news.new.metadata.generation:
            self._wake.set()

    def refused(self, claim: NodeClaim) -> bool:
        """The cloud has nothing of what the claim allows: no plan asks for it for a while, from this moment on.

        Nothing was asked for but what the claim's class allows: elsewhere machines may be had. False where the claim
        allows nothing that we know to be sold: then the next plan may make an equal claim.
        """
        known = self._told or self._env.state.catalogue
        if known is None:
            return False
        self._told = known
        with contextlib.suppress(UnitError):
            of_class = known.of_classes.get(claim.spec.node_class_ref.name, known.types)
            found = choices(claim, dataclasses.replace(known, types=of_class))
            if found:
                self._shortages.add(each.key for each in found)
                self._show()
                self._wake.set()
                return True
        return False

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
        try:
            self._told = await self._env.provider.catalogue()
        except (GateClosed, ConfigError):
            raise
        except CloudError as error:
            pause = self._backoff.next()
            known = self._env.state.catalogue is not None
            _log.warning("cannot read what the cloud sells", error=str(error), again=pause, known=known)
        except Exception:  # noqa: BLE001 - an odd class or price must not end everything else
            pause = self._backoff.next()
            _log.exception("a bug in us: what the cloud sells was not read, will try again", again=pause)
        else:
            self._backoff.reset()
            self._read_at = self._env.clock.monotonic()
            pause = self._env.settings.catalogue_period
        self._show()
        lapse = self._shortages.seconds_left()
        return pause if lapse is None else min(pause, lapse)

    def _show(self) -> None:
        """What is sold and not short, into the state."""
        state = self._env.state
        if self._told is None:
            return
        catalogue = self._shortages.laid_over(self._told)
        if catalogue != state.catalogue:
            _log.debug("catalogue changed", types=len(catalogue.types), offerings=_for_sale(catalogue))
            state.catalogue = catalogue

    def _age(self) -> list[tuple[dict[str, str], float]]:
        return [] if self._read_at is None else [({}, self._env.clock.monotonic() - self._read_at)]


def _for_sale(catalogue: Catalogue) -> int:
    return sum(offering.available for kind in catalogue.types for offering in kind.offerings)
