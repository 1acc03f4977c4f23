"""A running API server, as tests talk to it: with kubectl, as a person would, and through `HttpApi`."""

import asyncio
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from growth.api.kinds import Json
from growth.kube import access
from growth.kube.http import HttpApi
from growth.ports import SystemClock
from tools.controlplane.plane import Plane

T = TypeVar("T")
# Long enough for a loaded machine; nobody waits so long unless something is broken.
PATIENCE_SECONDS: Final = 180.0
KUBECTL: Final = pathlib.Path(sys.executable).with_name("kubectl")


def kubectl_for(plane: Plane, *, user: str = "admin") -> list[str]:
    """The beginning of a command line. kubectl keeps what it discovered by address; ports are used again, so each server
    gets a cache of its own.
    """
    return [str(KUBECTL), f"--kubeconfig={plane.kubeconfig_of(user)}", f"--cache-dir={plane.folder / 'kubectl'}"]


class Server:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints; a refusal fails the test with kubectl's own words."""
        done = self._kubectl(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def items(self, kind: str, *flags: str) -> list[Json]:
        """The objects of a kind, as kubectl lists them."""
        found: list[Json] = json.loads(self.kubectl("get", kind, "-o", "json", *flags))["items"]
        return found

    def kubectl_until(self, *arguments: str) -> str:
        """The same for what a server needs a moment to publish: a new kind in its discovery and its OpenAPI documents."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (done := self._kubectl(*arguments)).returncode:
            assert time.monotonic() < deadline, done.stderr
            time.sleep(0.1)
        return done.stdout

    def install(self, definitions: Sequence[Json]) -> None:
        """Applies definitions as a person would, and waits until their kinds are there for everybody: a kind is served,
        and found by kubectl, some time after its definition is called established.
        """
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": definitions}))
        self.kubectl("wait", "--for=condition=Established", f"--timeout={PATIENCE_SECONDS:.0f}s", "crd", "--all")
        self.kubectl_until("get", ",".join(each["metadata"]["name"] for each in definitions), "-A")

    def until_allowed(self, user: str, *action: str) -> None:
        """Waits until the server has read the roles that were just applied, so that the user may do this."""
        self.kubectl_until("auth", "can-i", *action, f"--as={user}", "--all-namespaces")

    def _kubectl(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [*kubectl_for(self._plane), *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)

    def run(self, talk: Callable[[HttpApi], Awaitable[T]]) -> T:
        """Runs a conversation to its end."""

        async def connected() -> T:
            found = access.find(kubeconfig=str(self._plane.kubeconfig))
            async with HttpApi.connect(found, clock=SystemClock(), user_agent="growth/tests", qps=1000) as api:
                return await talk(api)

        return asyncio.run(connected())
