"""What an invariant is, and what it may know."""

import dataclasses
import math
from collections.abc import Iterator
from typing import Final, Protocol

from growth.api.kinds import Json
from growth.sim.invariants.books import CLAIMS, PODS, POOLS, Books, node_of, provider_id_of
from growth.sim.seams import Step

# What changed so shortly before a request left cannot have been known to its sender.
BLINK_SECONDS: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken, when (virtual seconds), and the objects that it is about, by name."""

    invariant: str
    at: float
    said: str
    about: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Complaint:
    """What an invariant says; `about` are names of objects whose story is worth telling."""

    said: str
    about: tuple[str, ...] = ()


@dataclasses.dataclass(slots=True, kw_only=True)
class Case:
    """The state of affairs. `heard` are the kinds that a process has been answered a whole list of, by its identity.

    `by_hand` are UIDs of objects that somebody else than Growth interfered with; promises about them are void where said.
    `calm_since` is when load and faults ended, None before.
    """

    books: Books
    class_group: str = "karpenter.kwok.sh"
    """Of the node classes of the cloud that Growth runs on."""
    now: float = 0.0
    calm_since: float | None = None
    heard: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    by_hand: dict[str, str] = dataclasses.field(default_factory=dict)
    denied: dict[str, list[float]] = dataclasses.field(default_factory=dict)
    """By provider ID: when the cloud said that there is no such machine, though there was."""
    bound_at: dict[str, float] = dataclasses.field(default_factory=dict)
    """By the pod's UID."""
    pools_before: dict[str, tuple[float, Json]] = dataclasses.field(default_factory=dict)
    """By name: when the spec of a pool was last changed, and the pool as it was before."""
    claims_before: dict[str, tuple[float, Json]] = dataclasses.field(default_factory=dict)
    """By provider ID: when a claim went, and the claim as it was."""
    sent: float = 0.0
    """When the request that made the last change left its process."""
    thawed: float = -math.inf
    """When its process last went on after it had stood still: what it looked at before may be long past."""
    froze: float = -math.inf
    """When that standing still began."""
    boot: float = 0.0
    """What the boot clock of its process's machine showed when the request left; minus infinity where that is not known."""
    skew: float = 0.0
    """By how much its process's wall clock was ahead then, in seconds."""

    def see(self, step: Step) -> None:
        """One change, before it is judged."""
        self.now = step.at
        self.books.see(step.which, step.key, step.old, step.new)
        if step.new is None:
            if step.which == CLAIMS:
                self.claims_before[step.last.get("status", {}).get("providerID", "")] = (step.at, step.last)
            return
        if step.which == PODS and step.verb == "bind" and node_of(step.new):
            self.bound_at[step.new["metadata"]["uid"]] = step.at
        if step.which == POOLS and step.old is not None and step.old["spec"] != step.new["spec"]:
            self.pools_before[step.key[1]] = (step.at, step.old)

    def claim_on(self, node: Json) -> Json | None:
        """The claim of the Node's machine, or the one that the sender of a request must still have taken for it."""
        gone, before = self.claims_before.get(provider_id_of(node), (-math.inf, None))
        lately = before if self.sent - gone < BLINK_SECONDS else None
        return next(iter(self.books.claims_on(node)), lately)


def went_by_our_hand(step: Step) -> bool:
    """Whether an object that is gone went because Growth let go of it.

    A claim whose finalizer somebody else took off goes at once when it is deleted, and nobody could do anything about it.
    """
    return step.actor.is_growth and step.verb != "delete"


class Invariant(Protocol):
    """`step` judges one change, after the books have seen it; `state` the whole, now and then and at the end."""

    @property
    def name(self) -> str: ...

    @property
    def promise(self) -> str: ...

    def step(self, step: Step, case: Case) -> Iterator[Complaint]: ...

    def state(self, case: Case) -> Iterator[Complaint]: ...


class Quiet:
    """The base of invariants that judge only steps or only states."""

    name: str = ""
    promise: str = ""

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        del step, case
        yield from ()

    def state(self, case: Case) -> Iterator[Complaint]:
        del case
        yield from ()
