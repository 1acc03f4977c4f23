"""Packages of Debian, fetched without being installed: nobody need be root."""

import pathlib
import re
import subprocess
import tempfile
from collections.abc import Sequence

from tools.gobuild import cache


class FetchError(Exception):
    """The package cannot be had here; the message says what was tried."""


def unpacked(package: str, *, beside: Sequence[str] = ()) -> pathlib.Path:
    """The folder in the cache with what `extracted` gives, fetching it where it is missing."""
    target = cache() / "debian" / package
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        made = extracted(package, pathlib.Path(scratch), beside=beside)
        try:
            made.rename(target)
        except OSError:
            if not target.exists():  # else somebody was quicker
                raise
    return target


def extracted(package: str, folder: pathlib.Path, *, beside: Sequence[str] = ()) -> pathlib.Path:
    """The package's files in a folder below this one, and those of what it depends on whose name begins as one in `beside`."""
    _download(package, folder)
    (archive,) = folder.glob("*.deb")
    for other in _needed(_run("dpkg-deb", "-f", str(archive), "Depends", folder=folder), beside):
        _download(other, folder)
    for each in folder.glob("*.deb"):
        _run("dpkg-deb", "-x", str(each), str(folder / "out"), folder=folder)
    return folder / "out"


def _needed(depends: str, beside: Sequence[str]) -> list[str]:
    """Of alternatives the first: the one that Debian itself takes."""
    found = [re.split(r"[ (|]", each.strip(), maxsplit=1)[0] for each in depends.split(",")]
    return [each for each in found if each.startswith(tuple(beside))]


def _download(package: str, folder: pathlib.Path) -> None:
    try:
        _run("apt-get", "download", package, folder=folder)
    except FetchError:
        _run("apt-get", "update", folder=folder)  # the lists of a new machine may be empty
        _run("apt-get", "download", package, folder=folder)


def _run(*command: str, folder: pathlib.Path) -> str:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise FetchError(f"{command[0]} is not on PATH: packages of Debian are fetched with it") from None
    if done.returncode:
        raise FetchError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
