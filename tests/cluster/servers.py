"""A running API server, as tests talk to it: with kubectl, as a person would, and through `HttpApi`."""

import asyncio
import pathlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from growth.kube import access
from growth.kube.http import HttpApi
from growth.ports import SystemClock
from tools.controlplane.plane import Plane

T = TypeVar("T")
# Long enough for a loaded machine; nobody waits so long unless something is broken.
PATIENCE_SECONDS: Final = 30.0
KUBECTL: Final = pathlib.Path(sys.executable).with_name("kubectl")


class Server:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; a refusal fails the test with kubectl's own words."""
        done = self._kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def kubectl_until(self, *arguments: str) -> str:
        """The same for what a server needs a moment to publish: a new kind in its discovery and its OpenAPI documents."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (done := self._kubectl(*arguments)).returncode:
            assert time.monotonic() < deadline, done.stderr
        return done.stdout

    def _kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        # kubectl keeps what it discovered by address; ports are used again, so each server gets a cache of its own.
        options = [f"--kubeconfig={self._plane.kubeconfig}", f"--cache-dir={self._plane.folder / 'kubectl'}"]
        command = [str(KUBECTL), *options, *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def run(self, talk: Callable[[HttpApi], Awaitable[T]]) -> T:
        """Runs a conversation to its end."""

        async def connected() -> T:
            found = access.find(kubeconfig=str(self._plane.kubeconfig))
            async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/tests", qps=1000) as api:
                return await talk(api)

        return asyncio.run(connected())
