"""A running API server, as tests talk to it: with kubectl, as a person would, and through `HttpApi`."""

import asyncio
import pathlib
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from growth.kube import access
from growth.kube.http import HttpApi
from growth.ports import SystemClock
from tools.controlplane.plane import Plane

T = TypeVar("T")
KUBECTL: Final = pathlib.Path(sys.executable).with_name("kubectl")


class Server:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; a refusal fails the test with kubectl's own words."""
        command = [str(KUBECTL), f"--kubeconfig={self._plane.kubeconfig}", *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def run(self, talk: Callable[[HttpApi], Awaitable[T]]) -> T:
        """Runs a conversation to its end."""

        async def connected() -> T:
            found = access.find(kubeconfig=str(self._plane.kubeconfig))
            async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/tests", qps=1000) as api:
                return await talk(api)

        return asyncio.run(connected())
