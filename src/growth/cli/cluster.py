"""Which cluster a command talks to, and the way there."""

import contextlib
import dataclasses
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from growth import __version__

if TYPE_CHECKING:
    from growth.kube.api import Api


@Parameter(name="*", show_default=False, group=Group("Cluster", sort_key=2))
@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """The options that every command with a cluster takes; empty means: as kubectl would choose."""

    kubeconfig: Annotated[
        str, Parameter(help="The kubeconfig file. Without it: KUBECONFIG, ~/.kube/config, or the pod's own cluster.")
    ] = ""
    context: Annotated[str, Parameter(help="The context in the kubeconfig. Without it: the current one.")] = ""

    @property
    def chosen(self) -> bool:
        """Whether the person named a cluster."""
        return bool(self.kubeconfig or self.context)


@contextlib.asynccontextmanager
async def connected(cluster: Cluster, *, deadline_seconds: float) -> AsyncIterator["Api"]:
    """Access to the cluster. `ConfigError` where there is none or its credentials cannot be used; nothing is sent yet."""
    from growth.kube import access
    from growth.kube.http import HttpApi
    from growth.ports import SystemClock

    way = access.find(kubeconfig=cluster.kubeconfig, context=cluster.context)
    agent = f"growth/{__version__}"
    async with HttpApi.connect(way, clock=SystemClock(), user_agent=agent, deadline_seconds=deadline_seconds) as api:
        yield api
