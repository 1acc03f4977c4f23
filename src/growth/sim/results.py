"""Outcomes of runs in a file, a line each as it comes: a campaign that was stopped goes on where it stood.

The first line says which code was run and what with; both are compared before anything is added. A line is written at once
and whole; what a killed process left of one is cut off.
"""

import dataclasses
import hashlib
import os
import pathlib
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

import growth
from growth.sim.scenario.model import Outcome

Key = tuple[int, int]
"""A run of a campaign: the seed, and after how many writes the process ends."""

SOURCES: Final = ("*.py", "*.json", "*.yaml", "*.csv")


class ResultsError(ValueError):
    """The file cannot be used; the message says why, and what to do."""


class Code(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which code was run: a hash of its sources counts, the commit is for people and empty where there is none."""

    sources: str
    commit: str = ""

    def __str__(self) -> str:
        return f"{self.commit[:12] or 'no commit'}, sources {self.sources}"


class Header(msgspec.Struct, frozen=True):
    code: Code
    options: dict[str, str]


class Results:
    """One file of outcomes. `done` are those that were in it; `add` appends one."""

    def __init__(self, file: pathlib.Path, options: Mapping[str, str]) -> None:
        """ResultsError where the file is of other code or options, or none of ours; a file that is not there is made."""
        header = Header(running_code(), dict(options))
        self.header = header
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        with os.fdopen(os.dup(self._descriptor), "rb") as written:
            body = written.read()
        whole = body[: body.rfind(b"\n") + 1]
        if whole != body:
            os.ftruncate(self._descriptor, len(whole))
        if not whole:
            self.done: dict[Key, Outcome] = {}
            self._write(header)
            return
        before, self.done = _read(file, whole)
        if before.code.sources != header.code.sources:
            raise ResultsError(
                f"{file}: its runs are of other code ({before.code}; this is {header.code}): name another file"
            )
        for name in sorted({**before.options, **header.options}):
            was, now = before.options.get(name, ""), header.options.get(name, "")
            if was != now:
                raise ResultsError(f"{file}: its runs have {name} {was or 'unset'}, and not {now or 'unset'}")

    def add(self, outcome: Outcome) -> None:
        self.done[outcome.seed, outcome.crash_after] = outcome
        self._write(outcome)

    def close(self) -> None:
        os.close(self._descriptor)

    def _write(self, line: Header | Outcome) -> None:
        """One call of the system: whoever kills us kills us before or after it."""
        os.write(self._descriptor, msgspec.json.encode(line) + b"\n")


def _read(file: pathlib.Path, body: bytes) -> tuple[Header, dict[Key, Outcome]]:
    first, *lines = body.splitlines()
    try:
        outcomes = [msgspec.json.decode(line, type=Outcome) for line in lines]
        return msgspec.json.decode(first, type=Header), {(each.seed, each.crash_after): each for each in outcomes}
    except msgspec.MsgspecError as error:
        raise ResultsError(f"{file}: this is no file of results: {error}") from error


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """How the runs of two files differ. `changed` have another effect digest, `missing` are in one of the files alone."""

    before: Header
    after: Header
    equal: int
    changed: Sequence[tuple[Outcome, Outcome]]
    missing: Sequence[Key]
    seconds: tuple[float, float]
    """What the runs that are in both took, in core-seconds."""


def compared(before: pathlib.Path, after: pathlib.Path) -> Difference:
    """Which runs had other effects before than after. ResultsError where a file is none of ours."""
    (first, old), (second, new) = (_read(each, _whole(each)) for each in (before, after))
    if first.options != second.options:
        raise ResultsError(f"{before} and {after} are of other options: {first.options}, {second.options}")
    both = sorted(old.keys() & new.keys())
    changed = [(old[key], new[key]) for key in both if old[key].effects != new[key].effects]
    return Difference(
        before=first,
        after=second,
        equal=len(both) - len(changed),
        changed=changed,
        missing=sorted(old.keys() ^ new.keys()),
        seconds=(sum(old[key].core_seconds for key in both), sum(new[key].core_seconds for key in both)),
    )


def _whole(file: pathlib.Path) -> bytes:
    try:
        body = file.read_bytes()
    except OSError as error:
        raise ResultsError(f"{file}: cannot be read: {error.strerror or error}") from error
    whole = body[: body.rfind(b"\n") + 1]
    if not whole:
        raise ResultsError(f"{file}: this is no file of results: it is empty")
    return whole


def running_code() -> Code:
    """The code of this process, as its files are now."""
    folder = pathlib.Path(growth.__file__).parent
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(path for pattern in SOURCES for path in folder.rglob(pattern)):
        body = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(body)}\n".encode())
        digest.update(body)
    return Code(digest.hexdigest(), _commit(folder))


def _commit(folder: pathlib.Path) -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    command = [git, "-C", str(folder), "rev-parse", "HEAD"]
    found = subprocess.run(command, capture_output=True, check=False, text=True)  # noqa: S603 - git, and our own folder
    return found.stdout.strip() if not found.returncode else ""
