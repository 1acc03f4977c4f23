"""`growth fake`: a cloud's REST API on this machine, for trying a provider without an account."""

from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from growth.cli.errors import RunFailed, UsageError

if TYPE_CHECKING:
    from growth.sim.clouds.hetzner import HetznerFake

PORTS: Final = 65535


def fake(
    cloud: Annotated[Literal["hetzner"], Parameter(help="Which cloud: hetzner.")],
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
) -> None:
    """Serve a cloud's REST API on this machine, with machines that exist in memory only.

    Any token is accepted, nothing costs anything, and all is forgotten when it ends. It answers as the vendor's API does,
    errors, limits and delays included.
    """
    import asyncio

    from growth.ports import SystemClock, SystemRandom
    from growth.sim.clouds.hetzner import FakeSettings, HetznerFake, parse_faults, parse_stock

    del cloud  # there is one so far
    if not 0 <= port <= PORTS:
        raise UsageError(f"--port {port}: a port is a number from 0 to {PORTS}")
    try:
        settings = FakeSettings(stock=parse_stock(stock))
        hetzner = HetznerFake(clock=SystemClock(), random=SystemRandom(), settings=settings)
    except ValueError as error:
        raise UsageError(f"--stock {stock}: {error}") from error
    try:
        hetzner.faults = parse_faults(faults)
    except ValueError as error:
        raise UsageError(f"--faults {faults}: {error}") from error
    try:
        asyncio.run(_serve(hetzner, port=port))
    except OSError as error:
        raise RunFailed(f"port {port} cannot be used: {error.strerror}") from error


async def _serve(cloud: "HetznerFake", *, port: int) -> None:
    import asyncio
    import signal

    from growth.sim.clouds.hetzner.serving import serving

    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with serving(cloud, port=port) as url:
        print(f"Hetzner's API, a fake of it, is at {url}; Ctrl-C ends it.", flush=True)
        print(f"growth run --provider hetzner --api-endpoint {url}", flush=True)
        await told.wait()
    bought = cloud.ledger.purchases
    print(f"Bought {len(bought)} machines, {len(cloud.ledger.standing)} of them still there.", flush=True)
