"""NodeOverlays' status: whether each is laid over what the cloud sells, or why it is not.

The laying itself is planning's (`planning.overlays`), anew for every plan. Here the same function is asked when an
overlay, a pool or the catalogue has changed, and its answer written down.
"""

import asyncio
import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Final

from growth.api import names
from growth.api.conditions import FALSE, TRUE, set_ready
from growth.api.edits import set_condition
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.overlays import NODE_OVERLAY, NodeOverlay
from growth.cluster.assemble import Picture, composed
from growth.controllers.environment import Environment
from growth.kube.backoff import Backoff, BackoffSettings
from growth.kube.changes import change
from growth.kube.errors import ConfigError, Conflict, GateClosed, KubeError, NotFound
from growth.kube.store import Change, Changed
from growth.planning.overlays import OverlayProblem, overlaid
from growth.telemetry.logs import logger

_log = logger("overlays")

# Several changes at once are one look.
SETTLE_SECONDS: Final = 1.0
# Prices change without anything in the cluster changing.
AGAIN_SECONDS: Final = 300.0

# After a look that failed, or a status that could not be written.
RETRY: Final = BackoffSettings(base_seconds=1.0, cap_seconds=AGAIN_SECONDS, jitter=0.2)

_CONDITIONS: Final = (names.VALIDATION_SUCCEEDED,)


class Overlays:
    """`run` until cancelled. Writes nothing in observe mode."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._wake = asyncio.Event()
        env.state.overlays.subscribe(self._on_overlay)
        env.state.pools.subscribe(self._on_pool)

    def _on_overlay(self, news: Change[NodeOverlay]) -> None:
        if not (isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation):
            self._wake.set()

    def _on_pool(self, news: Change[NodePool]) -> None:
        if not (isinstance(news, Changed) and news.old.metadata.generation == news.new.metadata.generation):
            self._wake.set()

    async def run(self) -> None:
        await self._env.state.wait_synced()
        backoff = Backoff(self._env.random, RETRY)
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(SETTLE_SECONDS)
            done = False
            try:
                done = await self._look()
            except (GateClosed, ConfigError):
                raise
            except Exception:  # noqa: BLE001 - an odd overlay must not end everything else
                _log.exception("a bug in us: overlays could not be judged, will try again")
            if done:
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next())
                self._wake.set()

    async def _look(self) -> bool:
        """Writes down what is not written yet; whether all of it could be."""
        state = self._env.state
        if self._env.settings.observe or not len(state.overlays.store):
            return True
        if state.catalogue is None or not state.synced:
            return False
        picture = dataclasses.replace(state.picture(self._env.clock.now()), pending=())
        problems = await self._env.compute.run(_problems, picture)
        done = True
        for overlay in picture.overlays:
            try:
                await self._tell(overlay, problems.get(overlay.metadata.name))
            except (GateClosed, ConfigError):
                raise
            except NotFound:
                continue
            except KubeError as error:
                _log.warning("an overlay's status was not written", NodeOverlay=overlay.metadata.name, error=str(error))
                done = False
        return done

    async def _tell(self, overlay: NodeOverlay, problem: OverlayProblem | None) -> None:
        now = self._env.clock.now()
        meta = overlay.metadata
        if _says(overlay, problem):
            return

        def edit(draft: Json) -> None:
            if draft["metadata"]["uid"] != meta.uid or draft["metadata"].get("generation") != meta.generation:
                raise Conflict(f"NodeOverlay {meta.name} has changed meanwhile")
            set_condition(
                draft,
                names.VALIDATION_SUCCEEDED,
                status=FALSE if problem else TRUE,
                reason=problem.reason if problem else "",
                message=problem.message if problem else "",
                now=now,
            )
            set_ready(draft, _CONDITIONS, now=now)

        await change(self._env.api, NODE_OVERLAY, meta.name, edit, subresource="status")


def _problems(picture: Picture) -> Mapping[str, OverlayProblem]:
    _, problems = overlaid(composed(picture).snapshot, picture.overlays)
    return {each.overlay: each for each in problems}


def _says(overlay: NodeOverlay, problem: OverlayProblem | None) -> bool:
    """Whether the overlay's status says so already: then nothing is written."""
    told = {each.type: each for each in overlay.status.conditions}
    valid, ready = told.get(names.VALIDATION_SUCCEEDED), told.get(names.READY)
    if valid is None or ready is None or valid.observed_generation != overlay.metadata.generation:
        return False
    if problem is None:
        return valid.status == TRUE and ready.status == TRUE
    return valid.status == FALSE and (valid.reason, valid.message) == (problem.reason, problem.message)
