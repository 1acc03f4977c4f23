"""A witness beside a real API server: it watches what the ledger counts and tells it in the order of the revisions.

Each kind has a watch of its own, and watches do not wait for each other; so changes are kept until everybody had time to
tell theirs, and sorted by revision, which the server counts over all kinds together.
"""

import contextlib
import dataclasses
import heapq
import http.client
import itertools
import json
import ssl
import threading
import time
import urllib.request
from typing import Final

from growth.api.kinds import Json
from growth.sim.ledger import FOLLOWED, NO_CAPS, Caps, Ledger
from tools.controlplane.plane import Plane

# How long a slow watch may lag behind the others: on a busy machine a thread may not have had its turn for so long.
LAG_SECONDS: Final = 2.5
WATCH_SECONDS: Final = 300

Which = tuple[str, str, str]


@dataclasses.dataclass(order=True, slots=True)
class _Told:
    revision: int
    number: int
    at: float = dataclasses.field(compare=False)
    which: Which = dataclasses.field(compare=False)
    change: str = dataclasses.field(compare=False)
    body: Json = dataclasses.field(compare=False)


class Witness:
    """Watches from its making on; `stop` ends it. The kinds must be installed already."""

    def __init__(self, plane: Plane, *, caps: Caps = NO_CAPS, late_writes: bool = False) -> None:
        self.ledger = Ledger(caps=caps, late_writes=late_writes)
        self.failure: str = ""
        self._url = plane.url
        self._token = plane.token
        self._context = ssl.create_default_context(cafile=str(plane.ca))
        self._lock = threading.Lock()
        self._told: list[_Told] = []
        self._numbers = itertools.count()
        self._stopped = threading.Event()
        for which in FOLLOWED:
            # Begun in order: what is there now is listed here, and only what follows is watched.
            revision = self._list(which)
            threading.Thread(target=self._follow, args=(which, revision), daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def look(self) -> Ledger:
        """The ledger with everything that was told and can no longer be overtaken."""
        if self.failure:
            raise AssertionError(self.failure)
        until = time.monotonic() - LAG_SECONDS
        with self._lock:
            while self._told and self._told[0].at <= until:
                told = heapq.heappop(self._told)
                self.ledger.see(told.which, told.change, told.body)
        return self.ledger

    def _tell(self, which: Which, change: str, body: Json) -> None:
        revision = int(body["metadata"]["resourceVersion"])
        told = _Told(revision, next(self._numbers), time.monotonic(), which, change, body)
        with self._lock:
            heapq.heappush(self._told, told)

    def _list(self, which: Which) -> str:
        with self._open(path_of(which), seconds=30) as answer:
            found = json.load(answer)
        for body in found["items"]:
            self._tell(which, "ADDED", body)
        return str(found["metadata"]["resourceVersion"])

    def _follow(self, which: Which, revision: str) -> None:
        try:
            while not self._stopped.is_set():
                revision = self._watch(which, revision)
        except Exception as error:  # noqa: BLE001 - a witness that saw only half must not keep silent
            if not self._stopped.is_set():
                self.failure = f"the witness lost its watch of {which[2]}: {error!r}"

    def _watch(self, which: Which, revision: str) -> str:
        """Until the server ends it; the last revision seen."""
        path = f"{path_of(which)}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}&resourceVersion={revision}"
        with self._open(path, seconds=WATCH_SECONDS + 60) as answer:
            for line in answer:
                told = json.loads(line)
                if told["type"] == "ERROR":
                    raise RuntimeError(str(told["object"]))
                revision = told["object"]["metadata"]["resourceVersion"]
                if told["type"] != "BOOKMARK":
                    self._tell(which, told["type"], told["object"])
        return revision

    def _open(self, path: str, *, seconds: float) -> contextlib.AbstractContextManager[http.client.HTTPResponse]:
        request = urllib.request.Request(f"{self._url}{path}", headers={"Authorization": f"Bearer {self._token}"})
        opened: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=seconds, context=self._context)
        return contextlib.closing(opened)


def path_of(which: Which) -> str:
    group, version, plural = which
    return f"/apis/{group}/{version}/{plural}" if group else f"/api/{version}/{plural}"
