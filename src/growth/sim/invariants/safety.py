"""Safety: what may never happen, whatever goes wrong around Growth. Each class is one promise."""

import collections
import math
from collections.abc import Iterator, Sequence
from typing import Final

from growth.api.kinds import Json
from growth.sim.invariants.books import (
    CLAIMS,
    COLLECTION,
    CONFIG_MAPS,
    DISRUPTED,
    MACHINE_LABEL,
    NODES,
    PODS,
    POOL_LABEL,
    POOLS,
    REMOVALS,
    SCALE_DOWN,
    deleting,
    has_condition,
    labels,
    provider_id_of,
    tainted,
)
from growth.sim.invariants.exchanges import Warm
from growth.sim.invariants.facts import LATE_SECONDS, NEWS_SECONDS, begins_to_go, voluntary
from growth.sim.invariants.invariant import BLINK_SECONDS, Case, Complaint, Quiet, went_by_our_hand
from growth.sim.invariants.moves import MOVES, replaces
from growth.sim.invariants.pods import DisruptionBudgets, DoNotDisrupt, Drained
from growth.sim.invariants.purchases import InVain
from growth.sim.invariants.sizes import MOST_WRONG_SECONDS, surplus
from growth.sim.ports import EPOCH
from growth.sim.seams import Step
from growth.units import parse_time

# A machine without a claim is gone, asked to go, or held back for people within this time of calm, or of any weather.
LEAK_SECONDS: Final = 900.0
LEAK_SECONDS_IN_STORMS: Final = 2400.0
# Between the two answers of the cloud on which a claim is given up.
CONFIRM_SECONDS: Final = 60.0
EMPTY: Final = "Empty"
# Everything that decides must have heard of all of these.
NEEDED: Final = frozenset({"pods", "nodes", "nodeclaims", "nodepools"})


class Leak(Quiet):
    name = "leak"
    promise = "no machine stays without a claim for long, and no claim goes before its machine"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which == CLAIMS and step.new is None and went_by_our_hand(step):
            machine = case.books.machine_of(step.last)
            if machine is not None:
                name = step.key[1]
                yield Complaint(f"claim {name} went by our own hand and its machine is still there", (name,))

    def state(self, case: Case) -> Iterator[Complaint]:
        there = {machine["metadata"]["uid"]: (name, machine) for name, machine in case.books.unclaimed()}
        self._since = {uid: self._since.get(uid, case.now) for uid in there}
        held = case.books.find(CONFIG_MAPS, COLLECTION, "growth")
        listed = {word for text in (held or {}).get("data", {}).values() for word in text.split()}
        for uid, (name, machine) in there.items():
            since = self._since[uid]
            calm = case.now - max(since, case.calm_since) if case.calm_since is not None else 0.0
            named = machine["data"].get("providerID", name) in listed
            if not named and (calm > LEAK_SECONDS or case.now - since > LEAK_SECONDS_IN_STORMS):
                claim = name.removeprefix("kwok-")
                yield Complaint(f"machine {name} has had no claim for {case.now - since:.0f} s", (claim,))


class OneMachine(Quiet):
    name = "one machine"
    promise = "a claim never has a second machine"

    def __init__(self) -> None:
        self._told: dict[str, float] = {}  # by the UID of a claim: since when it has named a machine

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which == CLAIMS and step.last.get("status", {}).get("providerID"):
            self._told.setdefault(step.last["metadata"]["uid"], step.at)
        if step.which != CONFIG_MAPS or step.old is not None or step.new is None:
            return
        if labels(step.new).get(MACHINE_LABEL) != case.books.cluster:
            return
        uid = step.new["data"]["claimUID"]
        if case.books.made_for.get(uid) != step.new["metadata"]["uid"] and not self._excused(step.new, case):
            yield Complaint(f"{step.key[1]} is the second machine of claim {uid}", (_claim_name(step.key[1]),))

    def _excused(self, machine: Json, case: Case) -> bool:
        uid = machine["data"]["claimUID"]
        if sum(each["data"].get("claimUID") == uid for each in case.books.machines.values()) > 1:
            return False
        claim = case.books.claim_of(machine)
        # A machine that vanished before its claim knew of it, or before the news of that reached a second leader, may be
        # bought again: nobody has it, and nobody pays for it.
        if uid in case.by_hand and (claim is None or case.sent - self._told.get(uid, math.inf) < NEWS_SECONDS):
            return True
        # While the purchase was on its way, or its buyer stood still after the last look, its claim was ended, machine and
        # all. Clouds know machines by name, and a name is free when its machine is gone; nobody can call the request back.
        # What comes of it is a leak, and goes as one.
        late = case.now - case.sent > LATE_SECONDS or 0.0 <= case.sent - case.thawed < LATE_SECONDS
        return late and (claim is None or deleting(claim))

    def state(self, case: Case) -> Iterator[Complaint]:
        counts = collections.Counter(each["data"].get("claimUID", "") for each in case.books.machines.values())
        for uid, number in counts.items():
            if number > 1:
                yield Complaint(f"{number} machines are of the one claim {uid}")


class Foreign(Quiet):
    name = "foreign"
    promise = "nothing is touched that is not ours"

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if not step.actor.is_growth or not step.direct:
            return
        name = step.key[1]
        if step.which == NODES:
            provider_id = provider_id_of(step.old or step.last)
            if provider_id not in case.books.provider_ids:
                yield Complaint(f"Node {name} ({provider_id or 'no provider ID'}) is not ours: {step.verb}", (name,))
        elif step.which == CONFIG_MAPS:
            cluster = labels(step.last).get(MACHINE_LABEL)
            if cluster is None and not name.startswith("growth-"):
                yield Complaint(f"ConfigMap {step.key[0]}/{name} is not ours: {step.verb}", (name,))
            elif cluster not in {None, case.books.cluster}:
                yield Complaint(f"machine {name} is of another cluster: {step.verb}", (name,))
        elif step.which == CLAIMS and step.last["spec"]["nodeClassRef"]["group"] != case.class_group:
            yield Complaint(f"NodeClaim {name} is of another provider: {step.verb}", (name,))
        elif step.which == POOLS and _class_group(step.last, case.class_group) != case.class_group:
            yield Complaint(f"NodePool {name} is of another provider: {step.verb}", (name,))
        elif step.which == PODS and step.verb in {"evict", "delete"}:
            node = case.books.find(NODES, step.last["spec"].get("nodeName", ""))
            if node is not None and provider_id_of(node) not in case.books.provider_ids:
                yield Complaint(f"pod {name} runs on Node {node['metadata']['name']}, which is not ours", (name,))


class Budget(Quiet):
    """Nodes that others took down, or that fell silent, count once Growth had time to hear of it."""

    name = "budget"
    promise = "no more nodes of a pool are disrupted at once than its budgets allow"

    def __init__(self) -> None:
        self._since: dict[str, float] = {}  # by the UID of a claim or Node: since when it has been going or not ready

    def _follow(self, step: Step, *, ours: bool) -> None:
        uid = step.last["metadata"]["uid"]
        if step.new is None or not (
            deleting(step.new) or (step.which == NODES and not has_condition(step.new, "Ready"))
        ):
            self._since.pop(uid, None)
        else:
            self._since.setdefault(uid, float("-inf") if ours else step.at)

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        node = voluntary(step, case)
        if step.which in {CLAIMS, NODES}:
            # One that came late was given up by its sender, who could not know that it would still be done.
            self._follow(step, ours=node is not None and case.now - case.sent <= LATE_SECONDS)
        if node is None or case.now - case.sent > LATE_SECONDS:
            return
        name = labels(step.last).get(POOL_LABEL, "")
        pool = case.books.find(POOLS, name)
        if pool is None:
            return
        # As Karpenter counts: a machine that the cloud is taking down is no node of the pool any more.
        ours = [
            each
            for each in case.books.claims_of(name)
            if has_condition(each, "Initialized")
            and not has_condition(each, "InstanceTerminating")
            and case.books.nodes_of(each)
        ]
        going = sum(self._going(each, case) for each in ours)
        reason = _reason(step.last)
        allowed = self._allowed(pool, len(ours), reason)
        changed, before = case.pools_before.get(name, (float("-inf"), pool))
        if case.sent - changed < NEWS_SECONDS:
            earlier = self._allowed(before, len(ours), reason)
            allowed = None if allowed is None or earlier is None else max(allowed, earlier)
        if allowed is not None and going > allowed:
            yield Complaint(
                f"{going} of {len(ours)} nodes of NodePool {name} are disrupted, {allowed} allowed",
                (step.key[1], name),
            )

    def _going(self, claim: Json, case: Case) -> bool:
        known = case.sent - NEWS_SECONDS
        items = (claim, *case.books.nodes_of(claim))
        return any(self._since.get(each["metadata"]["uid"], float("inf")) < known for each in items)

    @staticmethod
    def _allowed(pool: Json, nodes: int, reason: str) -> int | None:
        """By budgets without a schedule; those with one are not judged."""
        sizes = []
        for each in pool["spec"].get("disruption", {}).get("budgets", ()):
            if each.get("schedule") or (each.get("reasons") and reason not in each["reasons"]):
                continue
            text = str(each["nodes"])
            sizes.append(math.ceil(int(text[:-1]) * nodes / 100) if text.endswith("%") else int(text))
        return min(sizes, default=None)


class Unsynced(Quiet):
    name = "unsynced"
    promise = "nothing is bought or disrupted by a process that has not heard the whole state"

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if not step.actor.is_growth or step.which != CLAIMS:
            return
        bought = step.verb == "create" and step.old is None
        if not bought and voluntary(step, case) is None:
            return
        missing = NEEDED - case.heard.get(step.actor.process, set())
        if missing:
            what = "bought" if bought else "disrupted"
            said = f"{step.actor.process} {what} {step.key[1]} and had not heard of {', '.join(sorted(missing))}"
            yield Complaint(said, (step.key[1],))


class Unknown(Quiet):
    """`patience` is how long (seconds) a machine may take to come up at least; a wall clock may be wrong by minutes.

    One whose Node registered may be given up sooner where the cloud denied it twice, `CONFIRM_SECONDS` apart: while its Node
    is not ready nobody could know better. And the removal of a machine may be asked for that has lost its mark in the blink
    before, or while its sender stood still: two who both believe to lead decide at once, and a removal looks at the mark itself
    before it does anything.
    """

    name = "unknown"
    promise = "what is well is not disrupted on a guess: it is tainted first, and looked at again"

    def __init__(self, *, patience: float = 900.0) -> None:
        self._patience = patience - MOST_WRONG_SECONDS
        self._marked_until: dict[str, float] = {}  # by the UID of a Node

    def step(self, step: Step, case: Case) -> Iterator[Complaint]:
        if step.which == NODES and step.old is not None and _marked(step.old):
            self._marked_until[step.old["metadata"]["uid"]] = step.at
        if case.now - case.sent > LATE_SECONDS:
            return
        node = voluntary(step, case)
        if node is not None and not _marked(node) and not self._a_blink_ago(step, node, case):
            name = node["metadata"]["name"]
            yield Complaint(
                f"claim {step.key[1]} of Node {name}, which is ready and untainted, was deleted", (step.key[1],)
            )
        age = self._coming_up(step, case)
        if age is not None and age < self._patience:
            yield Complaint(f"claim {step.key[1]} was given up after {age:.0f} s while it came up", (step.key[1],))

    def _a_blink_ago(self, step: Step, node: Json, case: Case) -> bool:
        """Whether a removal is asked for of a Node whose mark its sender may have seen, or had before it stood still."""
        until = self._marked_until.get(node["metadata"]["uid"], float("-inf"))
        looked = case.froze if 0.0 <= case.sent - case.thawed < LATE_SECONDS else case.sent
        return step.which == REMOVALS and looked - until < BLINK_SECONDS

    @staticmethod
    def _coming_up(step: Step, case: Case) -> float | None:
        """The age of a claim that Growth gives up while its machine comes up; None for everything else."""
        if not step.actor.is_growth or step.which != CLAIMS or not begins_to_go(step):
            return None
        claim = step.last
        machine = case.books.machine_of(claim)
        if has_condition(claim, "Initialized") or machine is None or machine["data"].get("state") == "deleting":
            return None
        if not claim.get("status", {}).get("providerID"):
            return None
        nodes = case.books.nodes_of(claim)
        if any(map(deleting, nodes)) or (has_condition(claim, "Registered") and not nodes):
            return None  # somebody takes its Node away, or did
        if surplus(claim, case) or replaces(claim):
            return None  # one too many, or for a move that is not made
        denied = case.denied.get(claim["status"]["providerID"], ())
        if has_condition(claim, "Registered") and _denied_twice(denied, case.now):
            return None
        return case.now - (parse_time(claim["metadata"]["creationTimestamp"]) - EPOCH).total_seconds()


def _marked(node: Json) -> bool:
    return tainted(node, DISRUPTED) or tainted(node, SCALE_DOWN)


def _denied_twice(times: Sequence[float], now: float) -> bool:
    """Whether the cloud says just now that there is no such machine, and said so before."""
    return bool(times) and now - times[-1] <= NEWS_SECONDS and times[-1] - times[0] >= CONFIRM_SECONDS


def _reason(claim: Json) -> str:
    """Why a claim is disrupted, where it says so; who says nothing found it empty."""
    told = (each for each in claim.get("status", {}).get("conditions", ()) if each["type"] == "DisruptionReason")
    return next((str(each.get("reason", EMPTY)) for each in told if each["status"] == "True"), EMPTY)


def _class_group(pool: Json, default: str) -> str:
    return str(pool["spec"]["template"]["spec"].get("nodeClassRef", {}).get("group", default))


def _claim_name(record: str) -> str:
    return record.removeprefix("kwok-")


SAFETY: Final = (
    Leak,
    OneMachine,
    Foreign,
    Budget,
    DisruptionBudgets,
    DoNotDisrupt,
    Drained,
    Unsynced,
    Unknown,
    InVain,
    *MOVES,
    Warm,
)
