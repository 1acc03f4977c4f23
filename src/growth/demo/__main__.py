"""The demo's cluster as a process of its own, for the live view: it lives until its standard input is closed.

Its one argument is an `Order` as JSON. Each line that it prints is JSON too: first `ready`, then what happens.
"""

import asyncio
import datetime as dt
import os
import pathlib
import signal
import sys
from typing import TextIO

import msgspec

from growth.demo.pace import PacedClock, PacedLoop
from growth.demo.process import running
from growth.demo.sellers import Provider
from growth.operator import logs
from growth.ports import SystemClock


class Order(msgspec.Struct, frozen=True):
    """`log` is a file for the autoscaler's own lines."""

    seed: int
    speed: float
    provider: Provider
    start: dt.datetime
    kubeconfig: str
    log: str


class Said(msgspec.Struct, frozen=True):
    """A line of the demo. `ready`: the cluster can be used."""

    text: str
    ready: bool = False


def say(said: Said) -> None:
    print(msgspec.json.encode(said).decode(), flush=True)  # noqa: T201  it is how the two processes talk


async def main(order: Order, log: TextIO) -> None:
    clock = PacedClock(SystemClock(), speed=order.speed, start=order.start)
    logs.configure(clock=clock, stream=log)
    async with running(
        clock=clock,
        seed=order.seed,
        speed=order.speed,
        provider=order.provider,
        kubeconfig=pathlib.Path(order.kubeconfig),
        write=lambda line: say(Said(line)),
    ):
        say(Said("", ready=True))
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal sends it to both; the view decides
    given = msgspec.json.decode(sys.argv[1], type=Order)
    try:
        with (
            pathlib.Path(given.log).open("w", encoding="utf-8") as told,
            asyncio.Runner(loop_factory=lambda: PacedLoop(given.speed)) as runner,
        ):
            runner.run(main(given, told))
    except BrokenPipeError:
        pass  # nobody listens any more
    # A plan that is still being made in a thread is nobody's any more: Python would wait for it.
    sys.stdout.flush()
    os._exit(0)
