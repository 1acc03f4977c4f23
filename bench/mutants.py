"""Generic mutation testing: small slips in the product, drawn by a seed, and which of them the tests notice.

Mutants are drawn from all places of the controllers, the decisions about disruption and the providers of Linode and Hetzner where
one change makes a plausible slip (`bench.mutation.sites`). All tests without a real control plane run once to record which
of them reach which mutant; then each mutant is tried by those that reach it, up to a budget of processor seconds, until one
fails. A mutant that no test reaches, or that all let pass, has survived: it is printed with its file, line and diff.

`--state FILE` keeps what is known, line by line; the same command goes on where it was ended. A state belongs to one commit
and one drawing. Nothing is timed but the tests, by their own processor time.
"""

import argparse
import hashlib
import json
import pathlib
import random
import subprocess
import sys
from typing import Any, Final

from bench.mutation.sites import Site, change, sites
from bench.mutation.trials import entries_of

ROOT: Final = pathlib.Path(__file__).parents[1]
VERDICTS: Final = ("killed", "timed_out", "survived", "not_covered", "trial_failed")
PACKAGES: Final = ("controllers", "planning/disruption", "providers/linode", "providers/hetzner")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=400, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which drawing")
    parser.add_argument("--jobs", type=int, default=2, help="processes side by side")
    parser.add_argument("--budget", type=float, default=300.0, help="processor seconds of tests for one mutant")
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), help="folders or modules of src/growth")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="the tests that may notice")
    parser.add_argument("--state", type=pathlib.Path, help="where to keep what is known")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    chosen = drawn(options.packages, options.count, options.seed)
    head = {
        "commit": _commit(),
        "seed": options.seed,
        "mutants": len(chosen),
        "tests": options.tests,
        "sites": [[site.path, site.line, site.node, site.change] for site in chosen],
    }
    state = options.state or pathlib.Path.cwd() / f".mutants-{_digest(head)}.jsonl"
    _begin(state, head)
    arguments = ["--jobs", str(options.jobs), "--budget", str(options.budget), str(state), *options.tests]
    ended = subprocess.run([sys.executable, "-m", "bench.mutation.trials", *arguments], cwd=ROOT, check=False)
    entries = entries_of(state)
    verdicts = {entry["mutant"]: entry for entry in entries if "mutant" in entry}
    if ended.returncode or len(verdicts) < len(chosen):
        sys.exit(f"bench: the trials ended early (exit {ended.returncode}); the same command goes on from {state}")
    counts = dict.fromkeys(VERDICTS, 0)
    survivors = []
    for number, entry in sorted(verdicts.items()):
        counts[entry["verdict"]] += 1
        if entry["verdict"] not in {"killed", "timed_out"}:
            survivors.append(_survivor(chosen[number], entry))
    noticed = counts["killed"] + counts["timed_out"]
    return {**counts, "share_noticed": noticed / len(chosen), "state": str(state), "survivors": survivors}


def drawn(packages: list[str], count: int, seed: int) -> list[Site]:
    """So many of all sites of these packages, in the order of the text."""
    every: list[Site] = []
    for package in packages:
        folder = ROOT / "src/growth" / package
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            every += sites(path, str(path.relative_to(ROOT)))
    return sorted(random.Random(seed).sample(every, min(count, len(every))))


def _begin(state: pathlib.Path, head: dict[str, Any]) -> None:
    """A new state, or one of the same drawing."""
    if not state.exists():
        state.write_text(json.dumps(head) + "\n")
        return
    with state.open() as lines:
        known = json.loads(lines.readline())
    for name, value in head.items():
        if known.get(name) != value:
            sys.exit(f"bench: {state} is of another {name}; choose another file or remove it")


def _commit() -> str:
    """HEAD, and a digest of what is not committed."""
    head, changed = (
        subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout
        for words in (["rev-parse", "HEAD"], ["diff", "HEAD"])
    )
    return head.decode().strip() + (f"+{hashlib.sha256(changed).hexdigest()[:8]}" if changed else "")


def _digest(head: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(head).encode()).hexdigest()[:12]


def _survivor(site: Site, entry: dict[str, Any]) -> dict[str, Any]:
    """`reached by` counts all tests that reach it, `run` those that the budget let run."""
    old, new = change((ROOT / site.path).read_text(encoding="utf-8"), site)
    return {
        "place": f"{site.path}:{site.line}",
        "verdict": entry["verdict"],
        "reached_by": entry["reached_by"],
        "run": entry["run"],
        "line": old,
        "mutant": new,
    }
