"""Plays the scene's waves to the cluster, as a user would. A Deployment that somebody else has scaled is theirs from then on."""

import asyncio
from collections.abc import Callable

from growth.api.kinds import Json
from growth.api.workloads import DEPLOYMENT
from growth.demo import scene
from growth.kube.api import Api
from growth.kube.errors import NotFound


class Playing:
    """`run` plays day after day until cancelled. `tell` hears of each wave."""

    def __init__(self, api: Api, *, seed: int, tell: Callable[[str], None]) -> None:
        self._api = api
        self._seed = seed
        self._tell = tell
        self._sizes: dict[str, int] = {app.name: 0 for app in scene.APPS if app.name != scene.YOURS}

    async def run(self) -> None:
        number = 0
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            for wave in scene.day(self._seed, number):
                await asyncio.sleep(max(0.0, begun + wave.at - loop.time()))
                await self._play(wave)
            await asyncio.sleep(max(0.0, begun + scene.DAY_SECONDS - loop.time()))
            number += 1

    async def _play(self, wave: scene.Wave) -> None:
        told = []
        for name, replicas in wave.replicas.items():
            before = self._sizes.get(name)
            if before is None or before == replicas:
                continue
            if await self._scaled(name, before, replicas):
                told.append(f"{name} {before} → {replicas}")
        if told:
            self._tell(f"{wave.title}: {', '.join(told)}")

    async def _scaled(self, name: str, before: int, replicas: int) -> bool:
        """Whether it was ours to scale."""
        try:
            found = await self._api.get(DEPLOYMENT, name, namespace=scene.NAMESPACE)
            ours = found.spec.replicas == before
            if ours:
                patch: Json = {"spec": {"replicas": replicas}}
                await self._api.patch(DEPLOYMENT, name, patch, namespace=scene.NAMESPACE)
        except NotFound:
            ours = False
        if ours:
            self._sizes[name] = replicas
        else:
            del self._sizes[name]
            self._tell(f"{name} is yours now: no wave touches it any more")
        return ours
