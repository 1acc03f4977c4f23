"""cloud-init's schema of cloud-config, out of Debian's own package, fetched once into the cache (`tools.gobuild`)."""

import functools
import json
import pathlib
import shutil
import subprocess
import tempfile
from typing import Any, Final

import jsonschema

from tools.gobuild import cache

PACKAGE: Final = "cloud-init"
SCHEMA: Final = "usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json"


class FetchError(Exception):
    """The package cannot be had here; the message says what was tried."""


def complaints(document: Any) -> list[str]:
    """What cloud-init's schema says of a cloud-config, in its own words; empty for nothing."""
    return [f"{'.'.join(map(str, error.path))}: {error.message}" for error in _validator().iter_errors(document)]


@functools.cache
def _validator() -> Any:
    schema = json.loads(fetched().read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def fetched() -> pathlib.Path:
    """The schema's file, fetching the package where it is missing."""
    target = cache() / "cloudinit" / "schema-cloud-config-v1.json"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = pathlib.Path(scratch)
        _download(folder)
        (archive,) = folder.glob("*.deb")
        _run("dpkg-deb", "-x", str(archive), str(folder / "out"), folder=folder)
        shutil.move(folder / "out" / SCHEMA, target)
    return target


def _download(folder: pathlib.Path) -> None:
    try:
        _run("apt-get", "download", PACKAGE, folder=folder)
    except FetchError:
        _run("apt-get", "update", folder=folder)  # the lists of a new machine may be empty
        _run("apt-get", "download", PACKAGE, folder=folder)


def _run(*command: str, folder: pathlib.Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise FetchError(f"{command[0]} is not on PATH: cloud-init's schema comes from Debian's package") from None
    if done.returncode:
        raise FetchError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")
