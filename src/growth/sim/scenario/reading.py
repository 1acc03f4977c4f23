"""From what a YAML reader gives to a scenario that can be run; every mistake is named by its field.

Nothing is left to be found half-way through a run: objects and the pods of workloads are laid before a server, durations
and sizes are read, traces are opened.
"""

import contextlib
import pathlib
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from growth.api.kinds import Json
from growth.kube.errors import AlreadyExists, KubeError
from growth.operator.settings import TABLE, SettingError, read
from growth.sim import kernel as sim
from growth.sim.chaos import rates
from growth.sim.kernel import Kernel
from growth.sim.scenario import manifests, trace
from growth.sim.scenario.model import Batch, Burst, Cron, Event, PodShape, Recorded, Rollout, Scenario, Waves, Workload
from growth.sim.world.world import World
from growth.units import Duration, Quantity, UnitError

# A year; longer is a slip of the finger.
MOST_HOURS: Final = 8784.0
MOST_PODS: Final = 100_000
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", re.ASCII)
_AT: Final = re.compile(r" - at `\$\.?(?P<field>.*)`$")
# What concerns the outside of a real process has no meaning here.
_FIXED: Final = frozenset({"provider", "namespace", "listen", "observe", "logLevel", "logFormat", "instanceTypes"})


class ScenarioError(ValueError):
    """What is wrong, and in which field."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field = field
        self.reason = reason


class _Taken(ScenarioError):
    """Its name is another's; an event may have deleted that one by then."""


def understood(raw: Any, *, folder: pathlib.Path) -> Scenario:
    """The scenario; trace files are looked for beside it, in `folder`. `ScenarioError` for what cannot be."""
    if not isinstance(raw, dict):
        raise ScenarioError("", "a scenario is a map with hours, objects, workloads, faults and events")
    try:
        scenario = msgspec.convert(raw, Scenario)
    except msgspec.ValidationError as error:
        text = str(error)
        match = _AT.search(text)
        reason = (text[: match.start()] if match else text).replace("`", "")
        raise ScenarioError(match["field"] if match else "", reason[:1].lower() + reason[1:]) from error
    if not 0.0 < scenario.hours <= MOST_HOURS:
        raise ScenarioError("hours", f"{scenario.hours:g} is not from 0 (not included) to {MOST_HOURS:g}")
    try:
        rates.checked(scenario.faults)
    except ValueError as error:
        raise ScenarioError("faults", str(error)) from error
    _check_settings(scenario)
    _check_workloads(scenario.workloads)
    _check_events(scenario)
    scenario = msgspec.structs.replace(
        scenario,
        workloads=tuple(_beside(work, f"workloads[{at}]", folder) for at, work in enumerate(scenario.workloads)),
    )
    scenario = msgspec.structs.replace(scenario, objects=(*scenario.objects, *_needed(scenario)))
    _lay_before_a_server(scenario)
    return scenario


def _needed(scenario: Scenario) -> Iterator[Json]:
    """What the scenario relies on and does not say itself."""
    if not any(body.get("kind") == "NodePool" for body in scenario.objects):
        yield manifests.node_pool("default")
    known = {
        (body.get("metadata") or {}).get("name") for body in scenario.objects if body.get("kind") == "StorageClass"
    }
    volumes = any(not isinstance(work, Recorded) and work.pod.volume for work in scenario.workloads)
    if volumes and manifests.STORAGE_CLASS not in known:
        yield manifests.storage_class()


def _check_settings(scenario: Scenario) -> None:
    for name in scenario.settings:
        if name not in TABLE or name in _FIXED:
            reason = "it is fixed in a simulation" if name in TABLE else "growth run has no setting of this name"
            raise ScenarioError(f"settings.{name}", reason)
    try:
        read(scenario.flags(), {})
    except SettingError as error:
        raise ScenarioError("settings", str(error)) from error


# -- workloads --------------------------------------------------------------------------------------------------------------


def _check_workloads(workloads: tuple[Workload, ...]) -> None:
    seen: set[str] = set()
    for at, work in enumerate(workloads):
        where = f"workloads[{at}]"
        if not _NAME.fullmatch(work.name):
            raise ScenarioError(
                f"{where}.name", f"{work.name!r}: write at most 40 lower-case letters, digits and -, such as web"
            )
        if work.name in seen:
            raise ScenarioError(f"{where}.name", f"there are two workloads {work.name!r}")
        seen.add(work.name)
        for field, text, least in _durations(work):
            _check_duration(f"{where}.{field}", text, least=least)
        for field, count, least_count in _counts(work):
            if not least_count <= count <= MOST_PODS:
                raise ScenarioError(f"{where}.{field}", f"{count} is not from {least_count} to {MOST_PODS}")
        if not isinstance(work, Recorded):
            _check_pod(f"{where}.pod", work.pod)
        if isinstance(work, Waves) and work.high < work.low:
            raise ScenarioError(f"{where}.high", f"{work.high} is less than low, {work.low}")


def _check_pod(where: str, pod: PodShape) -> None:
    for field, text in (("cpu", pod.cpu), ("memory", pod.memory), ("volume", pod.volume or "0")):
        try:
            Quantity.parse(text)
        except UnitError as error:
            raise ScenarioError(f"{where}.{field}", str(error)) from error


def _durations(work: Workload) -> Iterator[tuple[str, str, float]]:
    """Each with the least number of seconds that it may be."""
    match work:
        case Waves():
            yield from (("period", work.period, 10.0), ("at", work.at, 0.0))
        case Burst():
            yield from (("at", work.at, 0.0), ("lasts", work.lasts, 1.0))
        case Cron():
            yield from (("every", work.every, 10.0), ("runs", work.runs, 0.0), ("at", work.at, 0.0))
        case Rollout():
            yield from (("every", work.every, 10.0), ("at", work.at, 0.0))
        case Batch():
            yield from (("runs", work.runs, 0.0), ("at", work.at, 0.0))
        case Recorded():
            yield from (("from", work.since, 0.0), ("lasts", work.lasts, 1.0))


def _counts(work: Workload) -> Iterator[tuple[str, int, int]]:
    """Each with the least that it may be."""
    match work:
        case Waves():
            yield from (("low", work.low, 0), ("high", work.high, 0), ("steps", work.steps, 1))
        case Burst() | Cron():
            yield ("pods", work.pods, 1)
        case Rollout():
            yield ("replicas", work.replicas, 0)
        case Batch():
            yield from (("pods", work.pods, 1), ("parallelism", work.parallelism, 0))
        case Recorded():
            yield ("limit", work.limit, 0)


def _check_duration(field: str, text: str, *, least: float) -> float:
    try:
        seconds = Duration.parse(text).seconds
    except UnitError as error:
        raise ScenarioError(field, str(error)) from error
    if seconds < least:
        raise ScenarioError(field, f"{text} is less than {least:g}s")
    return seconds


def _beside(work: Workload, where: str, folder: pathlib.Path) -> Workload:
    if not isinstance(work, Recorded):
        return work
    path = folder / work.file
    try:
        lives = trace.read(path)
    except trace.TraceError as error:
        raise ScenarioError(f"{where}.file", f"{path}: {error}") from error
    since, lasts = Duration.parse(work.since).seconds, Duration.parse(work.lasts).seconds
    if not trace.window(lives, since=since, lasts=lasts, limit=work.limit):
        raise ScenarioError(f"{where}.from", f"no pod of {path} lives in these {work.lasts} from {work.since} on")
    return msgspec.structs.replace(work, file=str(path.absolute()))


# -- events and objects -----------------------------------------------------------------------------------------------------


def _check_events(scenario: Scenario) -> None:
    for at, event in enumerate(scenario.events):
        where = f"events[{at}]"
        seconds = _check_duration(f"{where}.at", event.at, least=0.0)
        if seconds > scenario.hours * 3600.0:
            raise ScenarioError(f"{where}.at", f"{event.at} is after the end, {scenario.hours:g} hours")
        if event.do != "crash":
            _check_named(event, where)
        elif event.object:
            raise ScenarioError(f"{where}.object", "crash concerns the autoscaler and no object: leave it out")


def _check_named(event: Event, where: str) -> None:
    metadata = event.object.get("metadata")
    if not event.object.get("kind") or not isinstance(metadata, dict) or not metadata.get("name"):
        raise ScenarioError(f"{where}.object", f"{event.do} needs apiVersion, kind and metadata.name")


def _lay_before_a_server(scenario: Scenario) -> None:
    """Creates everything once in a world in which nothing happens; the server's refusal names the field."""

    async def main(kernel: Kernel) -> None:
        world = World(kernel)
        await world.begin()
        for at, body in enumerate(scenario.objects):
            await _try(world, body, f"objects[{at}]")
        for at, work in enumerate(scenario.workloads):
            body_of = manifests.sample(work)
            if body_of is not None:
                await _try(world, body_of, f"workloads[{at}].pod")
        for at, event in enumerate(scenario.events):
            if event.do == "create":
                with contextlib.suppress(_Taken):
                    await _try(world, event.object, f"events[{at}].object")
            elif event.do != "crash":
                try:
                    world.named(event.object)
                except KubeError as error:
                    raise ScenarioError(f"events[{at}].object", str(error)) from error

    sim.run(main, seed=0)


async def _try(world: World, body: Json, where: str) -> None:
    title = f"{body.get('kind', 'no kind')} {(body.get('metadata') or {}).get('name', 'without a name')}"
    try:
        await world.create([body])
    except AlreadyExists as error:
        raise _Taken(f"{where} ({title})", str(error)) from error
    except KubeError as error:
        raise ScenarioError(f"{where} ({title})", str(error)) from error
