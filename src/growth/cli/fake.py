"""`growth fake`: a cloud's REST API on this machine, for trying a provider without an account."""

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from growth.cli.errors import RunFailed, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from growth.sim.clouds.api import FakeApi

PORTS: Final = 65535


def fake(
    cloud: Annotated[Literal["hetzner", "linode"], Parameter(help="Which cloud: hetzner or linode.")],
    /,
    *,
    port: Annotated[int, Parameter(help="The port on 127.0.0.1; 0 takes any free one.")] = 0,
    stock: Annotated[
        str,
        Parameter(
            help="TYPE@LOCATION=N,… machines that can be bought there, * for all; what is not named has no limit.",
            show_default=False,
        ),
    ] = "",
    faults: Annotated[
        str, Parameter(help="NAME=RATE,… of what goes wrong (docs/providers.md).", show_default=False)
    ] = "",
    tier: Annotated[
        Literal["standard", "enterprise"] | None,
        Parameter(help="Of linode: the tier of the LKE cluster. [standard]", show_default=False),
    ] = None,
) -> None:
    """Serve a cloud's REST API on this machine, with machines that exist in memory only.

    Any token is accepted, nothing costs anything, and all is forgotten when it ends. It answers as the vendor's API does,
    errors, limits and delays included. Linode's has one LKE cluster, which is called growth.
    """
    import asyncio

    if not 0 <= port <= PORTS:
        raise UsageError(f"--port {port}: a port is a number from 0 to {PORTS}")
    if tier is not None and cloud != "linode":
        raise UsageError(f"--tier {tier}: only linode has tiers")
    served = _linode(stock, faults, tier or "standard") if cloud == "linode" else _hetzner(stock, faults)
    try:
        asyncio.run(_serve(served, port=port))
    except OSError as error:
        raise RunFailed(f"port {port} cannot be used: {error.strerror}") from error


@dataclasses.dataclass(frozen=True, slots=True)
class _Served:
    """A fake of any vendor: what it is called, how to run against it, and how it is served on a port."""

    called: str
    run: str
    fake: "FakeApi"
    serving: "Callable[[int], AbstractAsyncContextManager[str]]"


def _hetzner(stock: str, faults: str) -> _Served:
    from growth.ports import SystemClock, SystemRandom
    from growth.sim.clouds.hetzner import FakeSettings, HetznerFake, parse_faults, parse_stock
    from growth.sim.clouds.hetzner.serving import serving

    with _given("--stock", stock):
        settings = FakeSettings(stock=parse_stock(stock))
        made = HetznerFake(clock=SystemClock(), random=SystemRandom(), settings=settings)
    with _given("--faults", faults):
        made.faults = parse_faults(faults)
    return _Served("Hetzner's API", "growth run --provider hetzner", made, lambda port: serving(made, port=port))


def _linode(stock: str, faults: str, tier: str) -> _Served:
    from growth.ports import SystemClock, SystemRandom
    from growth.sim.clouds.linode import FakeSettings, LinodeFake, parse_faults, parse_stock
    from growth.sim.clouds.linode.serving import serving

    with _given("--stock", stock):
        settings = FakeSettings(stock=parse_stock(stock), tier=tier)
        made = LinodeFake(clock=SystemClock(), random=SystemRandom(), settings=settings)
    with _given("--faults", faults):
        made.faults = parse_faults(faults)
    run = f"growth run --provider linode --linode-cluster {made.cluster.label}"
    return _Served("Linode's API", run, made, lambda port: serving(made, port=port))


@contextlib.contextmanager
def _given(option: str, text: str) -> "Iterator[None]":
    """Around what reads the option: what is wrong with it is told by its name."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}") from error


async def _serve(cloud: _Served, *, port: int) -> None:
    import asyncio
    import signal

    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with cloud.serving(port) as url:
        print(f"{cloud.called}, a fake of it, is at {url}; Ctrl-C ends it.", flush=True)
        print(f"{cloud.run} --api-endpoint {url}", flush=True)
        await told.wait()
    ledger = cloud.fake.ledger
    print(f"Bought {len(ledger.purchases)} machines, {len(ledger.standing)} of them still there.", flush=True)
