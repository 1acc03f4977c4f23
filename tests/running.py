"""`growth run` as a process of its own against a real server, and what it says of itself."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any, Final

from tools.controlplane.plane import Plane

GROWTH: Final = pathlib.Path(sys.prefix) / "bin" / "growth"
# Long enough for a loaded machine; nobody waits so long unless something is broken.
PATIENCE_SECONDS: Final = 180.0


class Running:
    """One process. Its log is read from its file, so that nothing can block it."""

    def __init__(self, process: subprocess.Popen[bytes], log: pathlib.Path) -> None:
        self.process = process
        self._log = log

    def text(self) -> str:
        return self._log.read_text(errors="replace")

    def lines(self, event: str = "") -> list[dict[str, Any]]:
        """Its log so far, as far as it is JSON; with `event` only those lines."""
        whole, _, _ = self.text().rpartition("\n")  # the last line may still be written
        lines = [json.loads(line) for line in whole.split("\n") if line.startswith("{") and line.endswith("}")]
        return [line for line in lines if not event or line["event"] == event]

    def wait_for(self, event: str) -> dict[str, Any]:
        until(lambda: self.lines(event), what=f"the line {event!r}", of=self)
        return self.lines(event)[-1]

    def get(self, path: str) -> tuple[int, str]:
        """The answer of its own port."""
        port = self.wait_for("starting")["port"]
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Sends the signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_SECONDS)


def until(look: Callable[[], Any], *, what: str, of: Running | None = None, seconds: float = PATIENCE_SECONDS) -> Any:
    """What `look` returns as soon as it is true; the test fails when it never is."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert of is None or of.process.poll() is None, (
            f"ended with {of.process.returncode}, waiting for {what}: {of.text()}"
        )
        assert time.monotonic() < deadline, f"{what} did not come: {of.text()[-3000:] if of else ''}"
        time.sleep(0.05)


@contextlib.contextmanager
def growth_run(
    plane: Plane, *flags: str, kubeconfig: pathlib.Path | None = None, provider: str = "kwok", **environ: str
) -> Iterator[Running]:
    """Runs inside the block, as user growth and its cloud as growth-kwok unless told otherwise; killed at its end."""
    cloud = () if "--kwok-kubeconfig" in flags else ("--kwok-kubeconfig", str(plane.kubeconfig_of("growth-kwok")))
    own = kubeconfig or plane.kubeconfig_of("growth")
    with growth_alone(own, *cloud, *flags, provider=provider, **environ) as growth:
        yield growth


@contextlib.contextmanager
def growth_alone(kubeconfig: pathlib.Path, *flags: str, provider: str = "kwok", **environ: str) -> Iterator[Running]:
    """Runs inside the block with this access, whoever is there; killed at its end."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder, "log")
        command = [
            *(str(GROWTH), "run", "--provider", provider, "--listen", "127.0.0.1:0"),
            *("--kubeconfig", str(kubeconfig), *flags),
        ]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GROWTH_")}
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, env={**clean, **environ})
        try:
            yield Running(process, log)
        finally:
            process.kill()
            process.wait()
