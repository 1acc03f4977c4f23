"""`growth top`: a cluster on one screen, read-only."""

import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from growth.cli.cluster import Cluster, connected
from growth.cli.errors import RunFailed
from growth.cli.output import print_json

if TYPE_CHECKING:
    from growth.kube.api import Api
    from growth.top.following import Choose, Following
    from growth.top.model import Screen
    from growth.top.thinking import Thoughts

AS_KUBECTL: Final = Cluster()
CALL_SECONDS: Final = 60.0


def top(
    *,
    provider: Annotated[
        Literal["kwok", "hetzner", "linode"] | None,
        Parameter(help="The cloud whose prices are used. Without it: the one that the pools and machines mean."),
    ] = None,
    once: Annotated[
        bool, Parameter(negative=(), help="Print how things stand, and end. So too where there is no terminal.")
    ] = False,
    output: Annotated[
        Literal["table", "json"], Parameter(name=["--output", "-o"], help="The format, with --once.")
    ] = "table",
    cluster: Cluster = AS_KUBECTL,
) -> None:
    """Watch a cluster: nodes, what they cost, why they are kept, why pods wait.

    It works on any cluster that can be read, with or without Growth in it, and changes nothing. Reasons are planned afresh
    from what is there, now and then. Keys: s sorts, r reverses, / filters, tab goes to the next list, enter opens a row,
    q quits.
    """
    import asyncio

    if once or output == "json" or not sys.stdout.isatty():
        asyncio.run(_once(cluster, provider, output))
    else:
        asyncio.run(_watch(cluster, provider))


async def _watch(cluster: Cluster, provider: str | None) -> None:
    from growth.api.nodes import NODE
    from growth.kube import access
    from growth.ports import SystemClock, SystemRandom
    from growth.top.elsewhere import Elsewhere
    from growth.top.following import Following
    from growth.top.view import Top

    clock, compute = SystemClock(), Elsewhere()
    async with connected(cluster, deadline_seconds=CALL_SECONDS) as api:
        await api.list(NODE, limit=1)  # a cluster that refuses us is told of in a line, not on a screen
        way = access.find(kubeconfig=cluster.kubeconfig, context=cluster.context)
        following = Following(api, clock=clock, random=SystemRandom(), choose=choosing(provider))
        app = Top(following, clock=clock, compute=compute, title=way.server)
        try:
            await app.run_async()
        finally:
            await compute.close()
    if app.failure is not None:
        raise app.failure


async def _once(cluster: Cluster, provider: str | None, output: str) -> None:
    from growth.ports import SystemClock, SystemRandom
    from growth.top.following import Following

    async with connected(cluster, deadline_seconds=CALL_SECONDS) as api:
        following = Following(api, clock=SystemClock(), random=SystemRandom(), choose=choosing(provider))
        screen, thoughts = await _seen(api, following)
    if output == "json":
        from growth.top.telling import as_json

        print_json(as_json(screen, thoughts))
    else:
        from growth.top.telling import as_text

        print(as_text(screen, thoughts))


async def _seen(api: "Api", following: "Following") -> "tuple[Screen, Thoughts]":
    """One look at the cluster, thought about."""
    import asyncio
    import contextlib

    from growth.api.nodes import NODE
    from growth.top.model import Rows
    from growth.top.thinking import think

    await api.list(NODE, limit=1)
    task = asyncio.ensure_future(following.run())
    try:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await following.wait_synced()
        except TimeoutError:
            missing = "; ".join(following.problems())
            raise RunFailed(f"not all could be read: {missing}; `growth rbac --read-only` prints the rights") from None
        return Rows().screen(following.see()), think(following.matter())
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def choosing(provider: str | None) -> "Choose":
    """How the prices of a live cluster are found."""
    from growth.api import names
    from growth.api.instance_types import Catalogue
    from growth.cli.catalogue import cloud_seen
    from growth.cluster.state import State
    from growth.providers.catalogues import builtin

    def choose(state: State) -> Catalogue:
        pools, growth_pools = tuple(state.pools.store), tuple(state.growth_pools.store)
        seen = [node.metadata.labels.get(names.INSTANCE_TYPE_LABEL, "") for node in state.nodes.store]
        seen += [each.name for pool in growth_pools for each in pool.spec.server_types]
        return builtin(provider or cloud_seen(pools, growth_pools, seen), dedicated=True)

    return choose
