"""A `Compute` in another process: what takes seconds of a processor must not hold up a screen, not even as a thread would.

The process is started at the first use, works at low priority and ends with ours. Functions and values go there and back
as pickles, so they must be such as can be pickled; what a function raises is raised here.
"""

import asyncio
import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import BinaryIO, Final, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LENGTH: Final = struct.Struct(">Q")
NICE: Final = 5


class Elsewhere:
    """One function at a time; callers take turns."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        async with self._turn:
            process = self._process = self._process or await _started()
            assert process.stdin is not None
            assert process.stdout is not None
            body = pickle.dumps((function, args, kwargs), protocol=5)
            process.stdin.write(LENGTH.pack(len(body)))
            process.stdin.write(body)
            await process.stdin.drain()
            (length,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
            fine, result = pickle.loads(await process.stdout.readexactly(length))  # noqa: S301  our own process wrote it
        if not fine:
            raise result
        found: R = result
        return found

    async def close(self) -> None:
        """Ends the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            process.kill()
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


async def _started() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "growth.top.elsewhere",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )


def serve(given: BinaryIO, answers: BinaryIO) -> None:
    """Calls what it is given, one after the other, until there is nothing more to read."""
    while header := given.read(LENGTH.size):
        (length,) = LENGTH.unpack(header)
        function, args, kwargs = pickle.loads(given.read(length))  # noqa: S301  whoever started us wrote it
        try:
            body = pickle.dumps((True, function(*args, **kwargs)), protocol=5)
        except Exception as error:  # noqa: BLE001  whatever it is, the caller is told
            body = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")), protocol=5)
        answers.write(LENGTH.pack(len(body)))
        answers.write(body)
        answers.flush()


if __name__ == "__main__":
    os.nice(NICE)
    serve(sys.stdin.buffer, sys.stdout.buffer)
