"""A cloud whose every call is timed and whose failures are counted, under Karpenter's names.

It also holds a provider to its contract: an exception that is none of `growth.api.clouds` is a bug in the provider. It is
logged, and whoever asked is told `CloudUnavailable`, because what the cloud holds is then unknown.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from growth.api.clouds import (
    CloudError,
    CloudMachine,
    CloudUnavailable,
    InsufficientCapacity,
    MachineNotFound,
    NodeClassNotReady,
    RepairPolicy,
)
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Kind
from growth.kube.errors import GateClosed
from growth.ports import Clock
from growth.providers.contract import CloudProvider
from growth.telemetry.logs import bound, logger
from growth.telemetry.metrics import Counter, Declaration, Histogram, Metrics

R = TypeVar("R")

_log = logger("cloudprovider")

DURATION: Final = Histogram(
    "karpenter_cloudprovider_duration_seconds",
    "How long calls of the cloud provider took.",
    labels=("controller", "method", "provider"),
)
ERRORS: Final = Counter(
    "karpenter_cloudprovider_errors_total",
    "Calls of the cloud provider that failed.",
    labels=("controller", "method", "provider", "error"),
)
METRICS: Final[tuple[Declaration, ...]] = (DURATION, ERRORS)

# Karpenter's words for the errors that it tells apart; others go by the names that they have here.
_WORDS: Final[dict[type[CloudError], str]] = {
    MachineNotFound: "NodeClaimNotFoundError",
    InsufficientCapacity: "InsufficientCapacityError",
    NodeClassNotReady: "NodeClassNotReadyError",
}


class Measured:
    """`CloudProvider` around another one. Wrapping twice would count twice."""

    def __init__(self, provider: CloudProvider, *, metrics: Metrics, clock: Clock) -> None:
        self._provider = provider
        self._metrics = metrics
        self._clock = clock

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def node_classes(self) -> Sequence[Kind[Any]]:
        return self._provider.node_classes

    @property
    def guards_nodes(self) -> bool:
        return self._provider.guards_nodes

    async def create(self, claim: NodeClaim) -> CloudMachine:
        return await self._measure("Create", lambda: self._provider.create(claim))

    async def delete(self, claim: NodeClaim) -> None:
        return await self._measure("Delete", lambda: self._provider.delete(claim))

    async def get(self, provider_id: str) -> CloudMachine:
        return await self._measure("Get", lambda: self._provider.get(provider_id))

    async def list(self) -> Sequence[CloudMachine]:
        return await self._measure("List", self._provider.list)

    async def catalogue(self) -> Catalogue:
        return await self._measure("GetInstanceTypes", self._provider.catalogue)

    async def is_drifted(self, claim: NodeClaim) -> str:
        return await self._measure("IsDrifted", lambda: self._provider.is_drifted(claim))

    def repair_policies(self) -> Sequence[RepairPolicy]:
        return self._provider.repair_policies()

    async def _measure(self, method: str, call: Callable[[], Awaitable[R]]) -> R:
        labels = {"controller": bound("reconciler"), "method": method, "provider": self._provider.name}
        began = self._clock.monotonic()
        try:
            return await call()
        except CloudError as error:
            self._count(labels, _WORDS.get(type(error), type(error).__name__))
            raise
        except GateClosed:
            raise
        except Exception as error:
            _log.exception("a bug in the provider", method=method, provider=self._provider.name)
            self._count(labels, type(error).__name__)
            message = f"provider {self._provider.name} failed in {method}: {type(error).__name__}"
            raise CloudUnavailable(message) from error
        finally:
            self._metrics.observe(DURATION, self._clock.monotonic() - began, **labels)

    def _count(self, labels: dict[str, str], error: str) -> None:
        self._metrics.add(ERRORS, 1, **labels, error=error)
