"""`growth simulate`: whole clusters in virtual time, with faults, and a judgement of what the autoscaler made of them."""

import contextlib
import dataclasses
import hashlib
import pathlib
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

import msgspec
from cyclopts import Parameter

from growth.cli.errors import RunFailed, UsageError
from growth.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from growth.ports import Clock
    from growth.sim.campaign import Summary
    from growth.sim.results import Key, Results
    from growth.sim.scenario.model import Order, Outcome, Scenario

MOST_HOURS: Final = 8784.0
MOST_SEEDS: Final = 100_000
MOST_JOBS: Final = 256
# So many runs are spent on making a violation small; each is a whole one.
MOST_TRIES: Final = 24
# How often somebody who does not look at a terminal hears how far it has come.
QUIET_SECONDS: Final = 10.0
TERMINAL_SECONDS: Final = 0.2


def simulate(
    scenario: Annotated[
        str | None,
        Parameter(help="A scenario file (docs/simulate.md). Without it each seed makes a scenario of its own."),
    ] = None,
    /,
    *,
    seed: Annotated[int | None, Parameter(help="One run with this seed. [0]", show_default=False)] = None,
    seeds: Annotated[str | None, Parameter(help="A run for each seed from A to B, written A-B.")] = None,
    hours: Annotated[
        float | None, Parameter(help="Virtual hours of each run. [the scenario's, else 1]", show_default=False)
    ] = None,
    faults: Annotated[
        str, Parameter(help="What goes wrong: none, some, all, or NAME=RATE,… of single faults.")
    ] = "none",
    sabotage: Annotated[
        str | None, Parameter(help="Plant a bug of this name, to see that it is found.", show_default=False)
    ] = None,
    crash_everywhere: Annotated[
        bool,
        Parameter(
            negative=(), help="End the process after each of its writes in turn: as many runs as there are writes."
        ),
    ] = False,
    provider: Annotated[
        Literal["kwok", "hetzner", "linode", "linode-enterprise", "linode-instances"],
        Parameter(help="Whose machines: kwok, or another's by a fake of its API."),
    ] = "kwok",
    jobs: Annotated[int, Parameter(help="Processes at a time.")] = 1,
    resume: Annotated[
        str | None,
        Parameter(
            help="A file that has each outcome as soon as it is there: runs that are in it are not made again.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        tuple[str, str] | None,
        Parameter(help="Two such files: which runs did something else? Nothing is run.", show_default=False),
    ] = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="The format.")] = "table",
) -> None:
    """Run the autoscaler in a simulated cluster where things go wrong, and judge it.

    The real autoscaler runs in virtual time, with a simulated API server, scheduler, cloud and kubelets around it. Equal
    seeds repeat a run exactly. Exit code 1 says that a promise was broken; what happened and the command that repeats it
    are printed.
    """
    if compare is not None:
        _compare(*compare)
        return
    from growth.sim.scenario.generate import generate, small

    chosen = _seeds(seed, seeds)
    _check(hours, jobs)
    given = _read(scenario) if scenario is not None else None
    asked = _Asked(
        scenario,
        faults=faults,
        sabotage=sabotage or "",
        crash_everywhere=crash_everywhere,
        hours=hours,
        provider=provider,
    )
    orders = []
    for each in chosen:
        played = given or (small(each) if crash_everywhere else generate(each, hours=hours or 1.0))
        orders.append(asked.order(each, played))
    _check_company(orders[0])
    with _results(resume, asked, given) as results:
        if crash_everywhere:
            orders = _everywhere(orders, jobs, results)
        outcomes = _performed(orders, jobs, results)
    asked, outcomes = _shrunk(asked, orders, outcomes)
    from growth.sim.campaign import summed

    summary = summed(outcomes)
    extra: dict[str, object] = {}
    if crash_everywhere:
        extra["writePoints"] = sum(0 < outcome.crash_after <= outcome.writes for outcome in outcomes)
    if output == "json":
        print_json({**summary.as_json(), **extra})
    else:
        _print(summary, extra)
    _tell_speed(outcomes, summary)
    for each in summary.without_scaling if scenario is None else ():
        note(f"seed {each}: nothing was bought, or nothing given back")
    if summary.violations:
        sys.stdout.flush()
        _tell_replays(asked, outcomes)
        broken = sorted({each.invariant for each in summary.violations})
        raise RunFailed(f"{len(summary.violations)} violations: {', '.join(broken)}")


@dataclasses.dataclass(frozen=True, slots=True)
class _Asked:
    """What every run of this command has in common."""

    scenario: str | None
    faults: str
    sabotage: str
    crash_everywhere: bool
    hours: float | None
    provider: str = "kwok"
    smaller: tuple[int, str] | None = None
    """A seed, and the fewest faults that still break the promise that was broken there."""

    def order(self, seed: int, scenario: "Scenario") -> "Order":
        from growth.sim.scenario.model import QUIET_SECONDS, Order, lasting
        from growth.sim.scenario.vendors import told_for

        return Order(
            seed=seed,
            scenario=told_for(self.provider, scenario),
            hours=lasting(self.hours or scenario.hours),
            faults=self.faults,
            sabotage=self.sabotage,
            quiet_seconds=QUIET_SECONDS,
        )

    def options(self, scenario: "Scenario | None") -> dict[str, str]:
        """What decides about a run beside its seed and the code, for people to compare."""
        found = {
            "--faults": self.faults,
            "--sabotage": self.sabotage,
            "--crash-everywhere": str(self.crash_everywhere).lower(),
            "--hours": "" if self.hours is None else f"{self.hours:g}",
            "--provider": self.provider,
        }
        if scenario is not None:
            found["the scenario"] = hashlib.blake2b(msgspec.json.encode(scenario), digest_size=8).hexdigest()
        return found

    def replay(self, seed: int) -> str:
        """The command that repeats one run."""
        words = ["growth", "simulate"]
        if self.scenario is not None:
            words.append(self.scenario)
        words += ["--seed", str(seed)]
        if self.hours is not None:
            words += ["--hours", f"{self.hours:g}"]
        if self.faults != "none":
            words += ["--faults", self.faults]
        if self.sabotage:
            words += ["--sabotage", self.sabotage]
        if self.provider != "kwok":
            words += ["--provider", self.provider]
        if self.crash_everywhere:
            words.append("--crash-everywhere")
        return shlex.join(words)


# -- what was asked ---------------------------------------------------------------------------------------------------------


def _seeds(seed: int | None, seeds: str | None) -> Sequence[int]:
    if seed is not None and seeds is not None:
        raise UsageError("--seed gives one run and --seeds several: give one of them")
    if seeds is None:
        if seed is not None and seed < 0:
            raise UsageError(f"--seed {seed}: give a number of 0 or more")
        return (seed or 0,)
    match = re.fullmatch(r"([0-9]{1,12})-([0-9]{1,12})", seeds)
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"--seeds {seeds}: write the first and the last, such as 0-299")
    first, last = int(match[1]), int(match[2])
    if last - first >= MOST_SEEDS:
        raise UsageError(f"--seeds {seeds}: at most {MOST_SEEDS:,} at a time")
    return range(first, last + 1)


def _check(hours: float | None, jobs: int) -> None:
    if hours is not None and not 0.0 < hours <= MOST_HOURS:
        raise UsageError(f"--hours {hours:g}: give hours above 0, at most {MOST_HOURS:g}")
    if not 1 <= jobs <= MOST_JOBS:
        raise UsageError(f"--jobs {jobs}: give a number from 1 to {MOST_JOBS}")


def _read(file: str) -> "Scenario":
    from growth.cli.manifests.documents import yaml_documents
    from growth.sim.campaign import quiet
    from growth.sim.scenario.reading import ScenarioError, understood

    path = pathlib.Path(file)
    try:
        body = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from error
    documents = [each for each in yaml_documents(body, file) if each is not None]
    if len(documents) != 1:
        raise UsageError(f"{file}: a scenario is one document, and here are {len(documents)}")
    quiet()
    try:
        return understood(documents[0], folder=path.parent)
    except ScenarioError as error:
        raise UsageError(f"{file}: {error}") from error


def _check_company(order: "Order") -> None:
    """Names of faults and sabotages are known before the first run begins."""
    from growth.sim.company import company

    try:
        company(order)
    except ValueError as error:
        raise UsageError(str(error)) from error


# -- runs -------------------------------------------------------------------------------------------------------------------


def _everywhere(orders: Sequence["Order"], jobs: int, results: "Results | None") -> list["Order"]:
    """For each run one that is not disturbed, which says how many writes there are, and then one for each of them."""
    outcomes = _performed(orders, jobs, results)
    found: list[Order] = []
    for order, outcome in _paired(orders, outcomes):
        found += [dataclasses.replace(order, crash_after=n) for n in range(outcome.writes + 1)]
        note(f"seed {order.seed}: {outcome.writes} writes, and as many runs")
    return found


def _performed(orders: Sequence["Order"], jobs: int, results: "Results | None") -> list["Outcome"]:
    """The outcomes as they came, those that were there already first."""
    from growth.ports import SystemClock
    from growth.sim.campaign import perform

    done = {} if results is None else results.done
    outcomes = [done[key] for key in map(_key, orders) if key in done]
    left = [order for order in orders if _key(order) not in done]
    progress = _Progress(SystemClock(), left)
    if outcomes:
        note(f"{len(outcomes)} of {len(orders)} runs are there already")
    for outcome in perform(left, jobs=jobs, tell=progress.passed) if left else ():
        if results is not None:
            results.add(outcome)
        outcomes.append(outcome)
        progress.ended(outcome)
    progress.close()
    return outcomes


def _shrunk(asked: _Asked, orders: Sequence["Order"], outcomes: list["Outcome"]) -> tuple[_Asked, list["Outcome"]]:
    """The first run that broke a promise is made again with ever fewer faults, and its story is that of the smallest."""
    broken = min((each for each in outcomes if each.violations), key=lambda each: each.seed, default=None)
    if broken is None or asked.crash_everywhere:
        return asked, outcomes
    from growth.sim.runs import run
    from growth.sim.shrinking import shrunk

    (order,) = (each for each in orders if each.seed == broken.seed)
    note(f"seed {order.seed} broke a promise: looking for the faults that it takes")
    smaller, outcome = shrunk(order, broken.violations[0].invariant, run, runs=MOST_TRIES)
    if outcome is None:
        return asked, outcomes
    told = [dataclasses.replace(each, violations=outcome.violations) if each is broken else each for each in outcomes]
    return dataclasses.replace(asked, smaller=(order.seed, smaller.faults)), told


class _Progress:
    """How far it has come, on stderr: one line that is written over on a terminal, else one now and then."""

    def __init__(self, clock: "Clock", orders: Sequence["Order"]) -> None:
        self._clock = clock
        self._orders = orders
        self._terminal = sys.stderr.isatty()
        self._began = self._told = clock.monotonic()
        self._runs = 0
        self._violations = 0
        self._core_seconds = 0.0

    def passed(self, seconds: float) -> None:
        """So much virtual time of the run that goes on."""
        if len(self._orders) == 1 or self._terminal:
            order = self._orders[min(self._runs, len(self._orders) - 1)]
            self._tell(f"seed {order.seed}: {seconds / 3600.0:.1f} of {order.hours:g} virtual hours")

    def ended(self, outcome: "Outcome") -> None:
        self._runs += 1
        self._violations += len(outcome.violations)
        self._core_seconds += outcome.core_seconds
        if len(self._orders) > 1:
            each = self._core_seconds / self._runs
            self._tell(
                f"{self._runs} of {len(self._orders)} runs, {self._violations} violations, {each:.1f} core-seconds a run"
            )

    def close(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _tell(self, text: str) -> None:
        now = self._clock.monotonic()
        if now - self._told < (TERMINAL_SECONDS if self._terminal else QUIET_SECONDS):
            return
        self._told = now
        if self._terminal:
            print(f"\r\x1b[K{text}, {now - self._began:.0f} s", end="", file=sys.stderr, flush=True)
        else:
            note(f"{text}, {now - self._began:.0f} s")


def _key(order: "Order") -> "Key":
    return order.seed, order.crash_after


def _paired(orders: Sequence["Order"], outcomes: Sequence["Outcome"]) -> Iterator[tuple["Order", "Outcome"]]:
    by_order = {(outcome.seed, outcome.crash_after): outcome for outcome in outcomes}
    return ((order, by_order[_key(order)]) for order in orders)


# -- files of results -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _results(file: str | None, asked: _Asked, scenario: "Scenario | None") -> Iterator["Results | None"]:
    """The file that is to have the outcomes; None where none is to."""
    if file is None:
        yield None
        return
    from growth.sim.results import Results, ResultsError

    try:
        results = Results(pathlib.Path(file), asked.options(scenario))
    except ResultsError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from error
    note(f"{file}: runs of {results.header.code}")
    try:
        yield results
    finally:
        results.close()


def _compare(before: str, after: str) -> None:
    """Which runs of two files had other effects."""
    from growth.sim.results import ResultsError, compared

    try:
        found = compared(pathlib.Path(before), pathlib.Path(after))
    except ResultsError as error:
        raise UsageError(str(error)) from error
    note(f"{before}: {found.before.code}")
    note(f"{after}: {found.after.code}")
    for old, new in found.changed:
        run = f"seed {old.seed}" + (f", a crash after {old.crash_after} writes" if old.crash_after else "")
        print(f"{run}: effects {old.effects} before, {new.effects} after")
    if found.missing:
        print(f"{len(found.missing)} runs are in one of the files alone")
    print(f"{found.equal} runs have equal effects, {len(found.changed)} have others")
    number = found.equal + len(found.changed)
    if number:
        was, now = (seconds / number for seconds in found.seconds)
        print(f"core-seconds a run: {was:.2f} before, {now:.2f} after")
    if found.changed:
        raise RunFailed(f"{len(found.changed)} runs did something else")


# -- results ----------------------------------------------------------------------------------------------------------------


def _print(summary: "Summary", extra: dict[str, object]) -> None:
    rows: list[tuple[str, object]] = [
        ("seeds", summary.seeds),
        ("runs", summary.runs),
        ("virtual hours", f"{summary.hours:g}"),
        ("steps", f"{summary.steps:,}"),
        ("peak machines, median", f"{summary.peak_machines:g}"),
        ("peak pods, median", f"{summary.peak_pods:g}"),
        ("machines bought", summary.scale_ups),
        ("machines given back", summary.scale_downs),
        ("cost", str(summary.cost)),
        ("pod-seconds pending", f"{summary.pending_seconds:,.0f}"),
        ("evictions", summary.evictions),
        ("violations", len(summary.violations)),
        ("trace", summary.digest),
        ("effects", summary.effects),
    ]
    if "writePoints" in extra:
        rows.append(("write points visited", extra["writePoints"]))
    print_table(("what", "value"), rows)
    if summary.faults:
        print()
        print_table(("fault", "struck while it mattered"), summary.faults.items())
    for each in summary.violations:
        print(f"\nseed {each.seed}, {each.at:.2f} s: {each.invariant}")
        print("\n".join(f"  {line}" for line in each.story.splitlines()))


def _tell_speed(outcomes: Sequence["Outcome"], summary: "Summary") -> None:
    seconds = sum(outcome.core_seconds for outcome in outcomes)
    speed = summary.hours / max(seconds, 0.01)
    note(f"{summary.hours:g} virtual hours in {seconds:.1f} core-seconds: {speed:.2f} virtual hours per core-second")
    if len(outcomes) > 1:
        note(f"{seconds / len(outcomes):.2f} core-seconds a run")


def _tell_replays(asked: _Asked, outcomes: Sequence["Outcome"]) -> None:
    """The commands that repeat what was broken, and of the first the one with as few faults as still break it."""
    for seed in sorted({outcome.seed for outcome in outcomes if outcome.violations}):
        note(f"a promise was broken; repeat it with: {asked.replay(seed)}")
    if asked.smaller is not None:
        seed, faults = asked.smaller
        note(f"this is enough: {dataclasses.replace(asked, faults=faults).replay(seed)}")
