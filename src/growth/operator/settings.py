"""Every setting of `growth run`, in one table: the flags, the variables, the documentation and the values come from it.

A setting `batchIdle` is the flag `--batch-idle` and the variable `GROWTH_BATCH_IDLE`; a flag beats a variable, a variable
beats the default. A value that cannot be read ends the start with its name, what is wrong and what to write instead.
"""

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from growth.api.reservations import RELEASE
from growth.controllers.settings import DEFAULT_SETTINGS, ControllerSettings
from growth.kube.http import DEADLINE_SECONDS
from growth.kube.lease import DEFAULT_LEASE, LeaseSettings
from growth.operator.logs import LEVELS, Format
from growth.providers.catalogues import CLOUDS
from growth.units import Duration, Money, UnitError

PREFIX: Final = "GROWTH_"
# The shortest time between two looks at the same thing.
LEAST_SECONDS: Final = 0.1
# Another leader gives a reserved name free after `RELEASE`, and a creation that was sent may take its deadline to land.
MOST_RESERVED_SECONDS: Final = RELEASE.total_seconds() - DEADLINE_SECONDS
# With less a purchase from LKE would be given up between its looks at a node that is on its way.
LEAST_PURCHASE_SECONDS: Final = 5.0


class SettingError(ValueError):
    """A setting that cannot be used: what, where it was given, what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Value:
    """How a text becomes a value, how a value is shown, and what to write, in a word for the table."""

    word: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    switch: bool = False


def _seconds(text: str) -> float:
    seconds = Duration.parse(text).seconds
    if seconds < 0:
        raise ValueError("a time cannot be negative")
    return seconds


def _period(*, least: float = LEAST_SECONDS, most: float = math.inf) -> Callable[[str], float]:
    """A time that passes: with none something would be done without a pause, or given up before it began."""

    def read(text: str) -> float:
        seconds = _seconds(text)
        if seconds < least:
            raise ValueError(f"it must be {Duration.of(seconds=least)} or more, such as 10s")
        if seconds > most:
            raise ValueError(f"it must be {Duration.of(seconds=most)} or less")
        return seconds

    return read


def _name(text: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", text, re.ASCII):
        raise ValueError("write a namespace: at most 63 lower-case letters, digits and -, such as growth")
    return text


def _switch(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("write true or false")
    return text.lower() == "true"


def _count(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) or int(text) < least:
            raise ValueError(f"write a whole number of {least} or more")
        return int(text)

    return read


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0.0 <= share <= 1.0:
        raise ValueError("write a number from 0 to 1, such as 0.2")
    return share


def _choice(*options: str) -> Value:
    def read(text: str) -> str:
        for option in options:
            if option.lower() == text.lower():
                return option
        raise ValueError(f"choose one of {', '.join(options)}")

    return Value(" or ".join(options), read)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not re.fullmatch(r"[0-9]{1,5}", port, re.ASCII) or int(port) > 65535:
        raise ValueError("write HOST:PORT, such as 127.0.0.1:8080 or :8080")
    return host.strip("[]"), int(port)


# ISO 4217 for none: an amount is in the catalogue's currency, whichever that is.
NO_CURRENCY: Final = "XXX"


def _money(text: str) -> int:
    nano = Money.parse(text, NO_CURRENCY).nano
    if nano < 0:
        raise ValueError("an amount cannot be negative")
    return nano


def _optional(value: Value) -> Value:
    return dataclasses.replace(value, show=lambda held: "none" if held is None else value.show(held))


TEXT: Final = Value("text", str, lambda held: held or "none")
SWITCH: Final = Value("true or false", _switch, lambda held: "true" if held else "false", switch=True)
NAME: Final = Value("namespace", _name)
SECONDS: Final = Value("duration", _seconds, lambda held: str(Duration.of(seconds=held)))
PERIOD: Final = dataclasses.replace(SECONDS, word="duration, at least 100ms", read=_period())
RESERVED: Final = dataclasses.replace(SECONDS, word="duration, at most 30s", read=_period(most=MOST_RESERVED_SECONDS))
PURCHASE: Final = dataclasses.replace(SECONDS, word="duration, at least 5s", read=_period(least=LEAST_PURCHASE_SECONDS))
COUNT: Final = Value("number", _count(0))
POSITIVE: Final = Value("number, 1 or more", _count(1))
PERCENT: Final = Value("number, 100 or more", _count(100))
MAYBE_COUNT: Final = _optional(COUNT)
SHARE: Final = Value("0 to 1", _share)
MONEY: Final = _optional(Value("amount an hour", _money, lambda held: Money(held, NO_CURRENCY).exact))
AMOUNT: Final = Value("amount", _money, lambda held: Money(held, NO_CURRENCY).exact)
ADDRESS: Final = Value("HOST:PORT", _address, lambda held: f"{held[0]}:{held[1]}")


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One row: its name, what a value looks like, what it is for, and its default."""

    name: str
    value: Value
    doc: str
    default: Any = None

    @property
    def field(self) -> str:
        return re.sub(r"(?<=[a-z0-9])([A-Z]+)", r"_\1", self.name).lower()

    @property
    def flag(self) -> str:
        return f"--{self.field.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.field.upper()}"


@dataclasses.dataclass(frozen=True, slots=True)
class Section:
    title: str
    settings: tuple[Setting, ...]


def _of(source: object, name: str, value: Value, doc: str) -> Setting:
    """A row whose default stands where the value is used."""
    return Setting(name, value, doc, getattr(source, Setting(name, value, doc).field))


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """What concerns the process and not the controllers. An empty namespace is the pod's own, else `growth`."""

    provider: str = ""
    log_level: str = "info"
    log_format: str = ""
    listen: tuple[str, int] = ("", 8080)
    kube_qps: int = 200
    kube_burst: int = 300
    api_endpoint: str = ""
    token_file: str = ""
    linode_cluster: str = ""
    linode_region: str = ""
    lke_create_timeout: float = 15.0
    lke_orphan_ttl: float = 300.0
    kwok_catalogue: str = "kwok"
    instance_types: str = ""
    kwok_controller: bool = False
    kwok_kubeconfig: str = ""
    kwok_qps: int = 1000
    kwok_burst: int = 2000


DEFAULT_PROCESS: Final = ProcessSettings()


def _sections() -> Iterator[Section]:
    own, made, lease = DEFAULT_PROCESS, DEFAULT_SETTINGS, DEFAULT_LEASE
    yield Section(
        "The process",
        (
            _of(own, "provider", _choice("kwok", "hetzner", "linode"), "The cloud in which machines are bought."),
            _of(made, "observe", SWITCH, "Plan and write Decisions, and nothing else; needs no Lease."),
            _of(made, "paused", SWITCH, "Buy and disrupt nothing anywhere; deletions that have begun complete."),
            _of(made, "namespace", NAME, "Where the Lease, the ConfigMaps and the KWOK machines live."),
            _of(own, "listen", ADDRESS, "Where /healthz, /readyz and /metrics are served; port 0 takes a free one."),
            _of(own, "logLevel", _choice(*LEVELS), "The least important lines that are logged."),
            _of(own, "logFormat", _choice(*Format), "How lines look; without it columns on a terminal, else JSON."),
            _of(own, "kubeQPS", POSITIVE, "Calls a second to the API server, on average."),
            _of(own, "kubeBurst", POSITIVE, "Calls to the API server at once."),
        ),
    )
    yield Section(
        "Leader election",
        (
            Setting("leaseDuration", SECONDS, "How long the others wait for a silent leader.", lease.lease_seconds),
            Setting(
                "renewDeadline",
                SECONDS,
                "A leader that could not renew for so long ends.",
                lease.renew_deadline_seconds,
            ),
            Setting(
                "retryPeriod",
                PERIOD,
                "How often the Lease is tried; a leader renews it three times within its deadline.",
                lease.retry_seconds,
            ),
        ),
    )
    yield Section(
        "Buying",
        (
            _of(made, "batchIdle", SECONDS, "A batch of pods ends after so long without a new kind of pod."),
            _of(made, "batchMax", PERIOD, "A batch ends at the latest after so long."),
            _of(made, "podAge", SECONDS, "From this age a pod counts whose like was found unschedulable before."),
            _of(made, "nomination", SECONDS, "How long a node that pods are on their way to is left alone."),
            _of(
                made,
                "packer",
                _choice("first-fit", "cost"),
                "How pods are packed onto machines: as Karpenter does, or for the least cost.",
            ),
            _of(
                made,
                "nominatePods",
                SWITCH,
                "Tell kube-scheduler which machine pods were planned for, where that makes the cluster cheaper.",
            ),
            _of(made, "preferencePolicy", _choice("Respect", "Ignore"), "Whether preferred terms of pods count."),
            _of(
                made,
                "minValuesPolicy",
                _choice("Strict", "BestEffort"),
                "Whether a machine may cost what minValues need, or minValues are lowered to what it may cost.",
            ),
            _of(
                made,
                "maxPricePercent",
                PERCENT,
                "What a machine may cost at most, in percent of the planned price, or more where minValues need it.",
            ),
            _of(made, "maxNodes", MAYBE_COUNT, "How many machines the cluster may have; a hard cap."),
            _of(
                made, "maxHourly", MONEY, "What the machines may cost an hour, in the catalogue's currency; a hard cap."
            ),
            _of(
                made,
                "vainBackOff",
                PERIOD,
                "After two rounds of machines that took none of their pods the next comes after so long; then twice as long.",
            ),
            _of(made, "reservationUse", RESERVED, "A reserved name is not used any more after so long."),
            _of(made, "cataloguePeriod", PERIOD, "How often prices and stock are read anew."),
            _of(made, "refusedTTL", PERIOD, "An offering that the cloud refused is left out of plans for so long."),
        ),
    )
    yield Section(
        "Coming up",
        (
            _of(made, "launchTTL", PERIOD, "A claim without a machine is given up after so long."),
            _of(made, "registrationTTL", PERIOD, "A machine without a Node is given up after so long."),
            _of(made, "initializationTTL", PERIOD, "A Node that does not become usable is given up after so long."),
        ),
    )
    yield Section(
        "Going down",
        (
            _of(made, "drainRetry", PERIOD, "How often a drain looks again."),
            _of(made, "deletePoll", PERIOD, "How often the cloud is asked whether a machine is gone."),
            _of(made, "disruptionPoll", PERIOD, "How often nodes are looked at for what is no longer needed."),
            _of(made, "disruptionSteps", POSITIVE, "So many steps a search for cheaper machines may take."),
            _of(
                made,
                "spotToSpotConsolidation",
                SWITCH,
                "Move from spot machines to cheaper spot machines too, where 15 types or more are cheaper.",
            ),
            _of(made, "evictionCost", AMOUNT, "What moving one pod counts for, in the catalogue's currency."),
            _of(
                made, "evictionHorizon", PERIOD, "A move must save more than its evictions count for within this time."
            ),
            _of(
                made,
                "usePaidTime",
                SWITCH,
                "Empty machines stay until three minutes before the time ends that is paid for, such as each begun hour.",
            ),
            _of(made, "driftPeriod", PERIOD, "How often machines are compared with what their pools ask for."),
            _of(made, "nodeRepair", SWITCH, "Take down machines whose Nodes stay broken, by the rules of the cloud."),
            _of(
                made,
                "validation",
                PERIOD,
                "How long a move that is decided waits before it is checked again and begun.",
            ),
        ),
    )
    yield Section(
        "Collection of leaks",
        (
            _of(made, "collectionPeriod", PERIOD, "How often machines and claims are compared."),
            _of(made, "collectionGrace", SECONDS, "Machines younger than this are not looked at."),
            _of(
                made, "collectionConfirm", PERIOD, "Between the two answers «not found» on which a claim is collected."
            ),
            _of(made, "collectionShare", SHARE, "A sweep that would take more than this share takes none."),
            _of(made, "collectionFew", COUNT, "So many may be taken whatever their share."),
        ),
    )
    yield Section(
        "Pools of growth.dev",
        (
            _of(made, "unplaceablePasses", POSITIVE, "A pod backs off that has no place so often in a row."),
            _of(made, "backOff", PERIOD, "How long it is left out at first; doubled each time."),
            _of(made, "backOffCeiling", PERIOD, "A pod that would be left out for so long is marked and waits."),
            _of(made, "backOffRecheck", PERIOD, "A marked pod is looked at again after so long at the latest."),
            _of(made, "unmetTTL", PERIOD, "A type that the cloud had none of is not asked for during so long."),
            _of(made, "readyTTL", PERIOD, "A NodeRequest that was fulfilled is kept for so long."),
            _of(made, "readinessWait", PERIOD, "A machine that is not ready after so long goes."),
            _of(made, "removalRetryAfter", PERIOD, "How long after one attempt to remove a machine the next is made."),
            _of(made, "maxRemovalAttempts", POSITIVE, "After so many attempts people must look at it."),
        ),
    )
    yield Section("Records", (_of(made, "decisionsKept", POSITIVE, "How many Decisions are kept."),))
    yield Section(
        "Clouds on the network",
        (
            _of(
                own,
                "apiEndpoint",
                TEXT,
                "The address of the cloud's API, else the vendor's; with http on this machine it is a fake, whose kubelets"
                " Growth plays.",
            ),
            _of(
                own,
                "tokenFile",
                TEXT,
                "A file with the token of the project or account; else the variable HCLOUD_TOKEN or LINODE_TOKEN has it.",
            ),
        ),
    )
    yield Section(
        "The Linode cloud",
        (
            _of(own, "linodeCluster", TEXT, "How the LKE cluster is called at Linode; exactly one must be."),
            _of(
                own, "linodeRegion", TEXT, "Instead: the region in which instances are bought that are no nodes of LKE."
            ),
            _of(
                own, "lkeCreateTimeout", PURCHASE, "A purchase that has no machine after so long is tried again later."
            ),
            _of(
                own,
                "lkeOrphanTTL",
                PERIOD,
                "Capacity of LKE pools that nobody claimed for so long goes; at least twice the time of a purchase.",
            ),
        ),
    )
    yield Section(
        "The KWOK cloud",
        (
            _of(own, "kwokCatalogue", _choice(*CLOUDS), "Whose types and prices the simulated machines have."),
            _of(
                own,
                "instanceTypes",
                TEXT,
                "A file of instance types instead, in the format of Karpenter's KWOK provider.",
            ),
            _of(own, "kwokController", SWITCH, "A kwok controller plays the kubelets; otherwise Growth does."),
            _of(
                own, "kwokKubeconfig", TEXT, "The kubeconfig by which the cloud writes; else Growth's own credentials."
            ),
            _of(own, "kwokQPS", POSITIVE, "Calls a second of the cloud and its kubelets, on average."),
            _of(own, "kwokBurst", POSITIVE, "Calls of the cloud and its kubelets at once."),
        ),
    )


SECTIONS: Final = tuple(_sections())
TABLE: Final = {setting.name: setting for section in SECTIONS for setting in section.settings}


@dataclasses.dataclass(frozen=True, slots=True)
class Settings:
    """Everything that was set, by whom it concerns."""

    process: ProcessSettings
    controllers: ControllerSettings
    lease: LeaseSettings


def read(flags: Mapping[str, str | bool | None], environ: Mapping[str, str]) -> Settings:
    """The settings of one start; `flags` is by the setting's name, None where it was not given."""
    values: dict[str, Any] = {}
    for name, setting in TABLE.items():
        given, where = flags.get(name), setting.flag
        if given is None:
            given, where = environ.get(setting.variable), setting.variable
        if given is None or given == "":
            values[setting.field] = setting.default
        elif isinstance(given, bool):
            values[setting.field] = given
        else:
            try:
                values[setting.field] = setting.value.read(given)
            except (ValueError, UnitError) as error:
                said = str(error) if repr(given) in str(error) else f"{given!r} cannot be used: {error}"
                raise SettingError(f"{where}: {said}") from None
    return Settings(
        process=_made(ProcessSettings, values), controllers=_made(ControllerSettings, values), lease=_lease(values)
    )


def unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Variables that look like a setting and are none, each with the setting that it is nearest to.

    A pod beside a Service called growth gets variables that begin like ours; those are no mistakes.
    """
    known = {setting.variable for setting in TABLE.values()} | {"GROWTH_DEBUG", "GROWTH_BENCH_DATA"}
    told = []
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known and not re.search(r"_(SERVICE_|PORT(_|$))", name):
            near = difflib.get_close_matches(name, known, n=1)
            told.append(f"{name} is no setting of Growth{f': do you mean {near[0]}?' if near else ''}")
    return tuple(told)


def _lease(values: Mapping[str, Any]) -> LeaseSettings:
    duration = values["lease_duration"]
    if duration != int(duration):
        raise SettingError("--lease-duration: the server keeps whole seconds: write a duration such as 15s")
    try:
        return LeaseSettings(
            lease_seconds=int(duration),
            renew_deadline_seconds=values["renew_deadline"],
            retry_seconds=values["retry_period"],
        )
    except ValueError as error:
        raise SettingError(f"--lease-duration, --renew-deadline, --retry-period: {error}") from None


def _made(kind: Any, values: Mapping[str, Any]) -> Any:
    return kind(**{field.name: values[field.name] for field in dataclasses.fields(kind)})
