"""What the tests of the server in process are made of: a settable clock, seeded randomness, small objects."""

import datetime as dt
import random
import uuid
from collections.abc import Sequence
from typing import Any, TypeVar

from growth.api.kinds import Json, Kind
from growth.kube.memory import MemoryServer

T = TypeVar("T")

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)


class FixedClock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> dt.datetime:
        return START + dt.timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def boot_time(self) -> float:
        return self.monotonic()


class SeededRandom:
    """The same names and uids in every run."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)

    def uniform(self, low: float, high: float) -> float:
        return self._random.uniform(low, high)

    def choice(self, options: Sequence[T]) -> T:
        return self._random.choice(options)

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))


def new_server(**options: Any) -> MemoryServer:
    return MemoryServer(FixedClock(), SeededRandom(), **options)


def kind(plural: str, *, group: str = "", version: str = "v1", name: str = "", namespaced: bool = True) -> Kind[Json]:
    return Kind(group, version, name or plural, plural, namespaced, dict)


PODS = kind("pods", name="Pod")
NODES = kind("nodes", name="Node", namespaced=False)
CONFIG_MAPS = kind("configmaps", name="ConfigMap")


def pod(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}
