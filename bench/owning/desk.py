"""The administrator's desk: a few synchronous calls to an API server, sharing no code with what is measured."""

import contextlib
import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from growth.api.kinds import Json
from tools.controlplane.plane import Plane, token_of

T = TypeVar("T")

CORE: Final = "/api/v1"
APPS: Final = "/apis/apps/v1/namespaces/default/deployments"
PODS: Final = f"{CORE}/namespaces/default/pods"
NODES: Final = f"{CORE}/nodes"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLASSES: Final = "/apis/karpenter.kwok.sh/v1alpha1/kwoknodeclasses"
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMESPACES: Final = f"{CORE}/namespaces"

LOOK_SECONDS: Final = 0.25
CALL_SECONDS: Final = 60.0


class Late(Exception):
    """Something did not come true in time; the message says what, and how things stood."""


class Refused(Exception):
    """The server said no; `code` is HTTP's."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(f"{code}: {said[:2000]}")
        self.code = code


class Desk:
    def __init__(self, plane: Plane, *, user: str = "admin") -> None:
        self._url = plane.url
        self._token = token_of(user)
        self._context = ssl.create_default_context(cafile=str(plane.ca))

    def get(self, path: str) -> Json:
        return self._call("GET", path)

    def items(self, path: str) -> list[Json]:
        """Everything of a kind, in one answer. A kind that is not served has no objects."""
        try:
            found: list[Json] = self.get(path)["items"]
        except Refused as error:
            if error.code == 404:
                return []
            raise
        return found

    def create(self, path: str, body: Json) -> Json:
        return self._call("POST", path, body)

    def merge(self, path: str, patch: Json) -> Json:
        return self._call("PATCH", path, patch, kind="application/merge-patch+json")

    def delete(self, path: str, *, grace_seconds: int | None = None) -> None:
        """Gone already is gone."""
        body = {} if grace_seconds is None else {"gracePeriodSeconds": grace_seconds}
        with contextlib.suppress(KeyError):
            try:
                self._call("DELETE", path, {"propagationPolicy": "Background", **body})
            except Refused as error:
                if error.code != 404:
                    raise

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except Refused as error:
            if error.code == 404:
                return False
            raise
        return True

    def install(self, definitions: Iterable[Json]) -> None:
        """Creates CustomResourceDefinitions and waits until they are served."""
        wanted = [self.create(DEFINITIONS, body)["metadata"]["name"] for body in definitions]
        for name in wanted:
            self.until(lambda name=name: self._served(name), seconds=120.0, what=f"{name} is served")  # type: ignore[misc]

    def _served(self, name: str) -> bool:
        body = self.get(f"{DEFINITIONS}/{name}")
        established = any(
            one["type"] == "Established" and one["status"] == "True"
            for one in body.get("status", {}).get("conditions", [])
        )
        spec = body["spec"]
        version = next(one["name"] for one in spec["versions"] if one["served"])
        return established and self.exists(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}")

    def until(
        self,
        look: Callable[[], T],
        *,
        seconds: float,
        what: str,
        state: Callable[[], object] = lambda: "",
        every: float = LOOK_SECONDS,
    ) -> T:
        """Looks again and again until the answer is true, and returns it; `Late` after so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            found = look()
            if found:
                return found
            if time.monotonic() > deadline:
                raise Late(f"not within {seconds:.0f} s: {what}. {state()}".strip())
            time.sleep(every)

    def _call(self, method: str, path: str, body: Json | None = None, *, kind: str = "application/json") -> Json:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        deadline = time.monotonic() + CALL_SECONDS
        while True:
            request = urllib.request.Request(f"{self._url}{path}", data=data, method=method, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=CALL_SECONDS, context=self._context) as answer:
                    found: Json = json.load(answer)
                return found
            except urllib.error.HTTPError as error:
                # A kind that was just defined is served with this answer for a moment.
                if error.code != 429 or time.monotonic() > deadline:
                    raise Refused(error.code, f"{method} {path}: {error.read().decode(errors='replace')}") from error
            time.sleep(LOOK_SECONDS)
