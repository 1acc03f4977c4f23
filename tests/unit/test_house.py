"""The house: what the checkout promises about itself."""

import importlib
import pathlib
import tomllib

import growth

PACKAGES = (
    "cli",
    "demo",
    "top",
    "operator",
    "web",
    "controllers",
    "planning",
    "cluster",
    "providers",
    "kube",
    "api",
    "sim",
    "units",
    "telemetry",
)


def test_every_package_says_what_lives_there() -> None:
    """Each layer opens with a docstring that says what lives there and what it may import."""
    for name in PACKAGES:
        doc = importlib.import_module(f"growth.{name}").__doc__
        assert doc is not None
        assert "may import" in doc.lower(), name


def test_locks_name_no_address() -> None:
    """The locks hold names, versions and hashes, and no registry's address."""
    root = pathlib.Path(growth.__file__).parents[2]
    for lock in (root / "locks").glob("*.txt"):
        text = lock.read_text()
        assert "://" not in text, lock
        assert "--hash=sha256:" in text, lock


def test_the_version_is_said_once() -> None:
    """The package and the project's file name the same version."""
    root = pathlib.Path(growth.__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert growth.__version__ == project["version"]
