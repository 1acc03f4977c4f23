"""The kinds of faults and how often they strike; what `--faults` and a scenario's `faults` may say.

A rate is a chance per opportunity (a call, an event, a join, a list) or a number of strikes per hour, as `unit` says.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final

CALL: Final = "per call"
WRITE: Final = "per write"
EVENT: Final = "per event of a watch"
WATCH: Final = "per hour of a watch"
LIST: Final = "per list of the cloud"
GET: Final = "per question about a machine"
CREATE: Final = "per purchase or deletion"
JOIN: Final = "per machine"
HOUR: Final = "per hour"


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One kind. `rate` is what `all` gives it; `some` gives a quarter of it."""

    unit: str
    rate: float
    says: str


FAULTS: Final[Mapping[str, Fault]] = {
    # Between a process and the API server.
    "conflict": Fault(WRITE, 0.03, "409 although nobody else wrote"),
    "throttled": Fault(CALL, 0.01, "429 with Retry-After"),
    "server-error": Fault(CALL, 0.01, "500 to 504, nothing done"),
    "unreachable": Fault(CALL, 0.005, "no connection"),
    "lost-request": Fault(WRITE, 0.003, "never arrives, no answer"),
    "lost-answer": Fault(CALL, 0.01, "done, and the answer lost"),
    "late-write": Fault(WRITE, 0.01, "arrives up to 20 s later, after the sender gave up or died"),
    "gone": Fault(WATCH, 4.0, "410: the history is too short"),
    "watch-cut": Fault(WATCH, 4.0, "the watch breaks"),
    "watch-silent": Fault(WATCH, 1.0, "the watch falls silent without a word: a gap"),
    "watch-late": Fault(EVENT, 0.004, "events come seconds late"),
    "watch-repeat": Fault(EVENT, 0.01, "an event comes twice"),
    # Processes.
    "crash": Fault(HOUR, 9.0, "the process dies at some await"),
    "freeze": Fault(HOUR, 6.0, "the process stands still for up to 40 s"),
    "sleep": Fault(HOUR, 6.0, "the process's machine is suspended for up to a minute, its timers with it"),
    "partition": Fault(HOUR, 6.0, "nothing passes between a replica and the server"),
    "two-leaders": Fault(HOUR, 6.0, "the Lease is taken from a leader that cannot know it, and both write"),
    "clock-jump": Fault(HOUR, 6.0, "the wall clock jumps by up to ten minutes, and back minutes later"),
    # The cloud.
    "list-stale": Fault(LIST, 0.5, "the cloud lists what was there a minute ago"),
    "list-partial": Fault(LIST, 0.25, "some machines are missing from the list"),
    "list-empty": Fault(LIST, 0.2, "the list is empty and no error is said"),
    "not-found": Fault(GET, 0.3, "404 for a machine that runs"),
    "cloud-error": Fault(CREATE, 0.03, "the cloud does not answer"),
    "cloud-answer-lost": Fault(CREATE, 0.05, "bought or deleted, and the answer lost"),
    "delete-undone": Fault(HOUR, 6.0, "a deletion is accepted and not done for minutes"),
    "stock-out": Fault(HOUR, 6.0, "types cannot be had for a while, again and again"),
    "price-change": Fault(HOUR, 6.0, "prices of some types change by half"),
    # Machines.
    "slow-join": Fault(JOIN, 0.08, "the kubelet registers minutes late"),
    "never-join": Fault(JOIN, 0.05, "the kubelet never registers"),
    "double-join": Fault(JOIN, 0.05, "two Nodes say that they are this machine"),
    "wrong-allocatable": Fault(JOIN, 0.06, "the Node has less room than was sold"),
    "missing-provider-id": Fault(JOIN, 0.06, "the Node has no provider ID at first"),
    "name-reuse": Fault(JOIN, 0.08, "the Node has the name of an earlier one"),
    "late-taint": Fault(JOIN, 0.08, "the network's agent taints the Node after it is ready"),
    "zone-relabelled": Fault(JOIN, 0.03, "a controller manager writes another zone on the Node"),
    "region-relabelled": Fault(JOIN, 0.03, "a controller manager writes another region on the Node"),
    "type-relabelled": Fault(JOIN, 0.03, "a controller manager writes another type on the Node"),
    "wrong-arch": Fault(JOIN, 0.02, "the Node's architecture is spelled otherwise"),
    "wrong-os": Fault(JOIN, 0.02, "the Node's operating system is spelled otherwise"),
    "hostname-differs": Fault(JOIN, 0.03, "the Node's host has another name than the Node"),
    "label-lost": Fault(JOIN, 0.03, "a label of the pool's template goes from the Node"),
    "stray-taint": Fault(JOIN, 0.03, "the Node has a taint that nobody planned, for long"),
    "agent-away": Fault(JOIN, 0.03, "a startup taint stays: what takes it off does not start"),
    "less-memory": Fault(JOIN, 0.03, "the Node has hardly any memory for pods"),
    "fewer-pods": Fault(JOIN, 0.03, "the Node takes a single pod"),
    "device-missing": Fault(JOIN, 0.03, "the Node reports none of a device"),
    "kubelet-flap": Fault(HOUR, 6.0, "a kubelet is silent for minutes and comes back"),
    "machine-vanishes": Fault(HOUR, 5.0, "a machine is gone without a word"),
    # People and other programs.
    "pdb-zero": Fault(HOUR, 6.0, "a PodDisruptionBudget that allows nothing, for minutes"),
    "deleted-by-hand": Fault(HOUR, 6.0, "a claim, Node or pod is deleted"),
    "finalizer-by-hand": Fault(HOUR, 6.0, "a finalizer of ours is taken off"),
    "spec-change": Fault(HOUR, 6.0, "a NodePool is edited while claims are under way"),
    "foreign-node": Fault(HOUR, 6.0, "Nodes that are not ours come"),
    "other-cluster": Fault(HOUR, 6.0, "machines of another cluster in the same project"),
}

_UNKNOWN: Final = "there is no fault {name!r}; choose none, some, all, or NAME=RATE of: {names}"


def parse(text: str) -> dict[str, float]:
    """What `--faults` says; ValueError with what is wrong and what to do."""
    match text.strip():
        case "none" | "":
            return {}
        case "some":
            return {name: fault.rate / 4 for name, fault in FAULTS.items()}
        case "all":
            return {name: fault.rate for name, fault in FAULTS.items()}
    rates: dict[str, float] = {}
    for part in text.split(","):
        name, found, rate = (piece.strip() for piece in part.partition("="))
        if name not in FAULTS:
            raise ValueError(_UNKNOWN.format(name=name, names=", ".join(FAULTS)))
        try:
            rates[name] = float(rate) if found else FAULTS[name].rate
        except ValueError:
            raise ValueError(f"the rate of fault {name} is {rate!r}: write a number, such as {name}=0.1") from None
    return checked(rates)


def checked(rates: Mapping[str, float]) -> dict[str, float]:
    """The rates of a scenario; ValueError where a name or number cannot be."""
    for name, rate in rates.items():
        fault = FAULTS.get(name)
        if fault is None:
            raise ValueError(_UNKNOWN.format(name=name, names=", ".join(FAULTS)))
        most = float("inf") if fault.unit in {HOUR, WATCH} else 1.0
        if not 0.0 <= rate <= most:
            raise ValueError(f"the rate of fault {name} is {rate}: it is {fault.unit}, from 0 to {most:g}")
    return dict(rates)


def printed(rates: Mapping[str, float]) -> str:
    """As `--faults` takes them; the shortest way to say it."""
    if not rates:
        return "none"
    if dict(rates) == parse("all"):
        return "all"
    return ",".join(name if rate == FAULTS[name].rate else f"{name}={rate:g}" for name, rate in rates.items())
