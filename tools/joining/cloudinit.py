"""cloud-init's schema of cloud-config, out of Debian's own package, fetched once into the cache (`tools.gobuild`)."""

import functools
import json
import pathlib
import shutil
import tempfile
from typing import Any, Final

import jsonschema

from tools import debian
from tools.gobuild import cache

PACKAGE: Final = "cloud-init"
SCHEMA: Final = "usr/lib/python3/dist-packages/cloudinit/config/schemas/schema-cloud-config-v1.json"


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
        shutil.move(debian.extracted(PACKAGE, folder) / SCHEMA, target)
    return target
