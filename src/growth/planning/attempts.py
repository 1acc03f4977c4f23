"""What first fit works on: a planned machine that fills up, and one kind of pods on its way through the machines."""

from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.requests import Port, ports_conflict
from growth.planning.classes import PodClass, Variant
from growth.planning.existing import Bools
from growth.planning.ledger import Hold
from growth.planning.offerings import Constraint, Shelf, State
from growth.planning.requirements import Requirement
from growth.planning.taints import untolerated
from growth.planning.topology import Group, Rule

Pinned = tuple[Constraint, ...]  # values of labels that the rules narrow a machine to
Fit = tuple[State, int, Hold | None]  # what a machine would be narrowed to: state, options, what it would hold


class Claim:
    """A planned machine, filling up. `mask` is the options that hold everything on it.

    It takes no pods that would leave none of `expected` among them: how far it may grow.
    """

    __slots__ = (
        "at",
        "attached",
        "counts",
        "expected",
        "firm",
        "fresh",
        "hold",
        "mask",
        "pods",
        "ports",
        "shelf",
        "state",
        "used",
    )

    def __init__(self, shelf: Shelf, resources: int, *, mask: int = -1, expected: int = -1, firm: bool = False) -> None:
        self.at = -1  # its place among the planned machines, once it holds a pod
        self.shelf = shelf
        self.state = shelf.start
        self.mask = shelf.start.mask & mask
        self.expected = expected
        self.firm = firm  # it is no smaller than it was drawn
        self.used = [0] * resources
        self.ports: frozenset[Port] = frozenset()
        self.attached: dict[str, set[str]] = {}
        self.fresh: dict[str, int] = {}
        self.counts: dict[Group, int] = {}
        self.pods: list[str] = []
        self.hold: Hold | None = None


class Attempt:
    """One variant of a class on its way through the machines, and what it has learned there.

    `open` are the shelves that the pods may use at all, with what they imply; `pins` the labels to narrow by. `tried` is
    how far the planned machines are known to refuse it, by pinned values; `closed` are the shelves whose new machines
    cannot take it; `candidates` are the existing nodes that labels and taints allow.
    """

    __slots__ = (
        "candidates",
        "ceilings",
        "closed",
        "hosts",
        "lapses",
        "near",
        "one_by_one",
        "open",
        "pins",
        "pods",
        "rules",
        "tried",
        "variant",
    )

    def __init__(self, pods: PodClass, variant: Variant, shelves: Iterable[Shelf], candidates: Bools) -> None:
        self.pods = pods
        self.variant = variant
        self.rules = (*variant.rules, *pods.kept_away)
        self.hosts = tuple(group for group in self.rules if group.by_host)
        self.near = tuple(group for group in self.hosts if group.rule is Rule.AFFINITY)
        # The other rules of hosts, as the most such pods that a machine may hold before it takes one more.
        self.ceilings = [
            (group, group.max_skew - pods.selects_itself(group) if group.rule is Rule.SPREAD else 0)
            for group in self.hosts
            if group.rule is not Rule.AFFINITY
        ]
        self.lapses = bool(self.near)
        self.candidates = candidates
        self.open = {shelf: shelf.implied(variant.constraint) for shelf in shelves if open_to(shelf, pods, variant)}
        self.pins = pinned_keys(pods)
        # How many of them a machine takes depends on which ones: ports and volumes are counted apart.
        self.one_by_one = bool(pods.ports or pods.volumes.attach)
        self.tried: dict[Pinned, int] = {}
        self.closed: set[tuple[Pinned, Shelf]] = set()

    @property
    def begins(self) -> bool:
        """Whether these are the first of a group that must share a host, and nothing else decides how many may."""
        return bool(self.near) and all(
            group.total == 0 and self.pods.selects_itself(group)
            if group.rule is Rule.AFFINITY
            else not self.pods.selects_itself(group)
            for group in self.rules
        )

    def hosts_allow(self, counts: Mapping[Group, int]) -> bool:
        """Whether a planned machine that holds so many pods of each rule takes one more."""
        for group, most in self.ceilings:
            if counts.get(group, 0) > most:
                return False
        return all(
            group.allows_host(counts.get(group, 0), selects_itself=self.pods.selects_itself(group))
            for group in self.near
        )


def pinned_keys(pods: PodClass) -> dict[str, tuple[Requirement, ...] | None]:
    """Labels by which some rule that must hold counts these pods.

    The rule's own key (None: one value must be chosen), and what it asks of nodes that count at all (it is enough that
    all values left, or none, satisfy it).
    """
    keys: dict[str, tuple[Requirement, ...] | None] = {}
    for group in (*pods.counted, *pods.keeps_away):
        if not group.firm:
            continue
        for constraint in group.filters:
            for key, asked in constraint.requirements.items():
                known = keys.get(key, ())
                keys[key] = None if known is None else (*known, asked)
        if not group.by_host:
            keys[group.key] = None
    return keys


def settled(asked: Iterable[Requirement], values: Iterable[str], *, absent: bool) -> bool:
    """Whether all values that a label can still have meet each requirement, or none does."""
    many = list(values)
    return all(
        len({each.allows(value) for value in many} | ({each.tolerates_absence} if absent else set())) < 2
        for each in asked
    )


def open_to(shelf: Shelf, pods: PodClass, variant: Variant) -> bool:
    """Whether pods of the class may use the shelf at all: its taints are tolerated, a growth pool that is not the
    default one is asked for by name, and machines of the pool did not come in vain for them.
    """
    ref = shelf.pool.ref
    if any(ref == pool for pool, _ in pods.backed_off):
        return False
    by_name = ref.group == names.GROWTH and ref.name != names.DEFAULT_POOL
    if by_name and names.POOL_LABEL not in variant.constraint.requirements:
        return False
    return untolerated(pods.tolerations, shelf.pool.taints, soft=variant.soft) is None


def without_ports(taken: Iterable[tuple[frozenset[Port], int]], wanted: frozenset[Port], mask: int) -> int:
    """The options of the mask on which no DaemonSet binds one of the ports."""
    for ports, options in taken:
        if ports_conflict(ports, wanted):
            mask &= ~options
    return mask
