"""Karpenter's own scheduler as a peer: what it decides about a scenario, and how long it takes.

The Go program beside this file calls NewTopology, NewScheduler and Solve of the module `sigs.k8s.io/karpenter` that
`go.mod` pins. It is built once into the cache (`tools.gobuild`). Inputs are those of `growth plan`: raw Kubernetes objects
(workloads expanded to pods) and instance types in the format of Karpenter's KWOK provider.

Known differences from a running Karpenter: an offering with `"Available": false` is believed (its KWOK provider calls
every offering available); NodePools without a status count as ready; a NodeClaim without a provider ID takes no part,
where a running Karpenter would wait for it; dynamic resources are refused, as by default there.
Karpenter walks Go maps, so plans of equal cost may differ from run to run.
"""

import itertools
import pathlib
import subprocess
import tempfile
from collections.abc import Sequence
from typing import Final, Literal, TypeVar

import msgspec

from growth.api.kinds import Json
from tools.gobuild import Build, keyed_folder

HERE: Final = pathlib.Path(__file__).parent
PROGRAM: Final = "karpenter"
FLAGS: Final = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags=-s -w")
# Its own benchmark looks for a node with this many goroutines.
WORKERS: Final = 5
# Solve has no deadline of its own here; this is for whoever waits.
TIMEOUT_SECONDS: Final = 1800.0

T = TypeVar("T", bound=msgspec.Struct)

PreferencePolicy = Literal["Respect", "Ignore"]
MinValuesPolicy = Literal["Strict", "BestEffort"]


class PeerError(Exception):
    """The program refused its input or failed; the message is what it said."""


class Answered(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what the program prints."""


class Run(Answered, frozen=True):
    """One pass. `seconds` is NewTopology + NewScheduler + Solve; the copy of the cluster's nodes before it stands apart.

    `cpu_seconds` is the processor time behind `seconds`, of all goroutines: it tells a busy machine from slow code.
    """

    copy_seconds: float
    seconds: float
    solve_seconds: float
    cpu_seconds: float
    nodes: int


class Claim(Answered, frozen=True):
    """A planned node; price, zone and capacity type are those of its cheapest compatible available offering.

    `instance_types` are cheapest first, `requests` include DaemonSets, `pods` are in the order of placement.
    """

    node_pool: str
    pods: tuple[str, ...]
    instance_types: tuple[str, ...]
    price: float
    zone: str
    capacity_type: str
    requests: dict[str, str]


class ExistingNode(Answered, frozen=True):
    """A node that is there and gets pods."""

    name: str
    pods: tuple[str, ...]


class Command(Answered, frozen=True):
    """What consolidation would do first: `method` is `multi` or `single`, `decision` `delete`, `replace` or `no-op`.

    `nodes` and the types of the replacement are by name. `seconds` are those of the methods that were asked.
    """

    method: str
    decision: str
    nodes: tuple[str, ...]
    instance_types: tuple[str, ...]
    seconds: float


class Answer(Answered, frozen=True):
    """What Karpenter decided at the last pass, and the times of all passes.

    `pods` counts those that it tried to place; `ignored` are pending pods that it does not look at, `errors` those that it
    could not place, by `namespace/name` with its reason.
    """

    runs: tuple[Run, ...]
    peak_memory_bytes: int
    pods: int
    claims: tuple[Claim, ...]
    existing_nodes: tuple[ExistingNode, ...]
    errors: dict[str, str]
    ignored: dict[str, str]
    ignored_node_pools: dict[str, str]

    @property
    def hourly(self) -> float:
        """The price of all planned nodes."""
        return sum(claim.price for claim in self.claims)

    @property
    def best(self) -> Run:
        """The quickest pass."""
        return min(self.runs, key=lambda run: run.seconds)

    @property
    def placed(self) -> frozenset[str]:
        """The pods that got a node, planned or existing."""
        placements = [claim.pods for claim in self.claims] + [node.pods for node in self.existing_nodes]
        return frozenset(itertools.chain.from_iterable(placements))


def build() -> pathlib.Path:
    """The program, built if it is not in the cache. `tools.gobuild.BuildError` where that fails."""
    return _build().run() / PROGRAM


def built() -> bool:
    """Whether the program is in the cache."""
    return not _build().missing()


def version() -> str:
    """The pinned release of Karpenter, as in `v1.14.1`."""
    for line in (HERE / "go.mod").read_text().splitlines():
        words = line.split()
        if words[:1] == ["sigs.k8s.io/karpenter"]:
            return words[1]
    raise PeerError(f"{HERE / 'go.mod'} does not pin sigs.k8s.io/karpenter; restore the file")


def solve(
    objects: Sequence[Json],
    *,
    instance_types: Sequence[Json],
    preference_policy: PreferencePolicy = "Respect",
    min_values_policy: MinValuesPolicy = "Strict",
    repeat: int = 1,
    workers: int = WORKERS,
) -> Answer:
    """Karpenter's answer for one scenario; each repeat starts from the same state."""
    (answer,) = solve_each(
        [objects],
        instance_types=instance_types,
        preference_policy=preference_policy,
        min_values_policy=min_values_policy,
        repeat=repeat,
        workers=workers,
    )
    return answer


def solve_each(
    scenarios: Sequence[Sequence[Json]],
    *,
    instance_types: Sequence[Json],
    preference_policy: PreferencePolicy = "Respect",
    min_values_policy: MinValuesPolicy = "Strict",
    repeat: int = 1,
    workers: int = WORKERS,
) -> list[Answer]:
    """The answers for many scenarios over one catalogue, in their order, from one start of the program."""
    settings = ["--preference-policy", preference_policy, "--min-values-policy", min_values_policy]
    settings += ["--repeat", str(repeat), "--workers", str(workers)]
    return decode(_asked(scenarios, instance_types, settings))


def consolidate(scenarios: Sequence[Sequence[Json]], *, instance_types: Sequence[Json]) -> list[Command]:
    """The first command of Karpenter's consolidation for each scenario: multi-node, else single-node.

    Budgets allow everything, and commands are not looked at a second time. Pools must say their `consolidateAfter`.
    """
    return _decoded(_asked(scenarios, instance_types, ["--consolidate"]), Command)


def _asked(scenarios: Sequence[Sequence[Json]], instance_types: Sequence[Json], settings: Sequence[str]) -> bytes:
    """What the program prints for the scenarios."""
    program = build()
    with tempfile.TemporaryDirectory(prefix="growth-peer-") as folder:
        types = pathlib.Path(folder) / "instance-types.json"
        types.write_bytes(msgspec.json.encode(instance_types))
        command = [str(program), "--instance-types", str(types), *settings]
        for i, objects in enumerate(scenarios):
            path = pathlib.Path(folder) / f"scenario-{i}.json"
            path.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": objects}))
            command += ["--objects", str(path)]
        return _run(command)


def decode(printed: bytes) -> list[Answer]:
    """The answers in what the program printed, one a line."""
    return _decoded(printed, Answer)


def _decoded(printed: bytes, kind: type[T]) -> list[T]:
    try:
        return msgspec.json.decode(b"[" + b",".join(printed.splitlines()) + b"]", type=list[kind])  # type: ignore[valid-type]
    except msgspec.DecodeError as error:
        raise PeerError(f"the peer printed what is not an answer: {error}") from error


def _run(command: list[str]) -> bytes:
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise PeerError(f"no answer within {TIMEOUT_SECONDS:.0f} s; ask for fewer pods") from error
    if done.returncode:
        raise PeerError(done.stderr.decode(errors="replace")[:4000].strip() or f"exit code {done.returncode}")
    return done.stdout


def _build() -> Build:
    sources = [HERE / "go.mod", HERE / "go.sum", *sorted(HERE.glob("*.go"))]
    parts = [path.read_bytes() for path in sources]
    return Build(
        name="karpenter",
        module=HERE,
        programs={PROGRAM: "."},
        target=keyed_folder("peer-karpenter", [*parts, " ".join(FLAGS).encode()]),
        flags=FLAGS,
        expected="once; about two minutes after the control plane, more with empty Go caches",
    )
