"""`growth demo`: a whole cluster with Growth in it, on a terminal or in lines."""

import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal, TextIO

from cyclopts import Parameter

from growth.cli.errors import RunFailed, UsageError

if TYPE_CHECKING:
    import pathlib

    from growth.demo.sellers import Provider

# Faster than this the machine, not the cluster, would set the pace.
FASTEST: Final = 50.0
SLOWEST: Final = 0.1


def demo(
    *,
    duration: Annotated[
        str | None, Parameter(help="How long, in the demo's time: 60s, 5m. Without it: until you end it.")
    ] = None,
    speed: Annotated[float, Parameter(help="How many times as fast as the clock on the wall.")] = 1.0,
    headless: Annotated[
        bool, Parameter(negative=(), help="Lines instead of a screen. So too where there is no terminal.")
    ] = False,
    seed: Annotated[int, Parameter(help="Another number makes other names and other sizes.")] = 1,
    provider: Annotated[
        Literal["kwok", "hetzner", "linode", "linode-enterprise"],
        Parameter(help="Who sells: KWOK, or a cloud's own provider at a fake of its API. linode: LKE, of both tiers."),
    ] = "kwok",
) -> None:
    """See Growth at work; needs no account and no cluster.

    A whole cluster in one process: pods come and go, the real autoscaler buys machines of Hetzner's types at Hetzner's
    prices, or of Linode's, and gives them back. None of it exists, nothing costs anything. The line KUBECONFIG=… is for kubectl in another
    terminal: scale the deployment `yours`. Keys: s sorts, / filters, enter opens, q quits.
    """
    import asyncio
    import pathlib
    import tempfile

    if not SLOWEST <= speed <= FASTEST:
        raise UsageError(f"--speed {speed:g}: give a number from {SLOWEST:g} to {FASTEST:g}")
    seconds = _seconds(duration)
    with tempfile.TemporaryDirectory(prefix="growth-demo-") as folder:
        home = pathlib.Path(folder)
        if headless or not (sys.stdout.isatty() and sys.stdin.isatty()):
            _told(home, speed=speed, seed=seed, provider=provider, seconds=seconds)
        else:
            asyncio.run(_shown(home, speed=speed, seed=seed, provider=provider, seconds=seconds))


def _seconds(text: str | None) -> float | None:
    from growth.units import Duration, UnitError

    if text is None:
        return None
    try:
        seconds = Duration.parse(text).seconds
    except UnitError as error:
        raise UsageError(f"--duration: {error}") from error
    if seconds <= 0:
        raise UsageError(f"--duration {text}: give a time such as 60s")
    return seconds


def _told(home: "pathlib.Path", *, speed: float, seed: int, provider: "Provider", seconds: float | None) -> None:
    """Everything in this process; what happens is printed."""
    import asyncio
    import math
    import signal

    from growth.demo.pace import PacedClock, PacedLoop
    from growth.demo.process import running
    from growth.demo.showing import invitation
    from growth.operator import logs
    from growth.ports import SystemClock

    kubeconfig = home / "kubeconfig"
    stopped: list[int] = []

    async def main(log: TextIO) -> None:
        clock = PacedClock(SystemClock(), speed=speed)
        logs.configure(clock=clock, stream=log)
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            stopped.append(number)
            task.cancel()

        # So that the folder goes with us; a shell that starts us in the background has SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        async with running(clock=clock, seed=seed, speed=speed, provider=provider, kubeconfig=kubeconfig, write=_write):
            _write(invitation(str(kubeconfig)))
            await asyncio.sleep(seconds if seconds is not None else math.inf)

    try:
        with (
            (home / "growth.log").open("w", encoding="utf-8") as told,
            asyncio.Runner(loop_factory=lambda: PacedLoop(speed)) as runner,
        ):
            runner.run(main(told))
    except* BrokenPipeError as gone:
        raise BrokenPipeError from gone
    except* asyncio.CancelledError:
        sys.exit(128 + stopped[0])


def _write(line: str) -> None:
    print(line, flush=True)


async def _shown(home: "pathlib.Path", *, speed: float, seed: int, provider: "Provider", seconds: float | None) -> None:
    from growth.cli.top import choosing
    from growth.demo.__main__ import Order
    from growth.demo.sellers import SELLERS
    from growth.demo.showing import Ended, show
    from growth.ports import SystemClock

    order = Order(
        seed=seed,
        speed=speed,
        provider=provider,
        start=SystemClock().now(),
        kubeconfig=str(home / "kubeconfig"),
        log=str(home / "growth.log"),
    )
    try:
        await show(
            order, choose=choosing(SELLERS[provider].cloud), seconds=None if seconds is None else seconds / speed
        )
    except Ended as error:
        raise RunFailed(str(error)) from error
