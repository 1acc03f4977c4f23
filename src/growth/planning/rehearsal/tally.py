"""Counts of pods by the values of a label, kept for every node: how many are where the node is."""

from collections.abc import Callable
from typing import Any

import numpy as np

from growth.planning.existing import Bools, Existing, Ints
from growth.planning.rehearsal.kinds import Count
from growth.planning.topology import Group, Rule


class Tally:
    """One count. `at` holds for every node how many such pods are in its domain; 0 where it has none."""

    __slots__ = ("_by_host", "_codes", "_eligible", "at", "everywhere", "labelled", "spreads", "total")

    def __init__(self, count: Count, nodes: Existing) -> None:
        group = count.group
        codes, values = nodes.column(group.key)
        self._codes = codes
        self.labelled: Bools = np.array([value is not None for value in values], dtype=np.bool_)[codes]
        self.everywhere = bool(self.labelled.all())
        self._eligible = eligible(group, nodes) & self.labelled
        self.spreads = group.rule is Rule.SPREAD  # such a count leaves out pods that are being deleted
        self._by_host = len(values) == len(codes)  # every node is a domain of its own
        self.at: Ints = np.zeros(len(codes), dtype=np.int64)
        self.total = 0

    def save(self) -> Callable[[], None]:
        """Remembers the count; the result makes it so again."""
        at, total = self.at.copy(), self.total

        def restore() -> None:
            self.at, self.total = at.copy(), total

        return restore

    def add(self, node: int, pods: int = 1) -> None:
        if not self._eligible[node]:
            return
        self.total += pods
        if self._by_host:
            self.at[node] += pods
        else:
            self.at[self._codes == self._codes[node]] += pods

    def least(self, present: Bools, min_domains: int) -> int:
        """The count of the emptiest domain that a present node is in; 0 where there are too few domains."""
        here = self._eligible & present
        counts = self.at[here]
        if not len(counts):
            return 0
        if min_domains > 1 and len(np.unique(self._codes[here])) < min_domains:
            return 0
        return int(counts.min())

    def domains(self, nodes: Bools) -> int:
        """How many values of the label the nodes have; no value at all counts as one."""
        return int(np.count_nonzero(np.bincount(self._codes[nodes])))


def eligible(group: Group, nodes: Existing) -> Bools:
    """The nodes on which the rule counts pods."""
    fine: Bools = np.ones(len(nodes.nodes), dtype=np.bool_)
    if group.filters:
        fine = np.zeros(len(nodes.nodes), dtype=np.bool_)
        for constraint in group.filters:
            fine |= nodes.matching(constraint)
    if group.honours_taints:
        fine &= nodes.tolerated(group.tolerations, soft=False)
    return fine


def allowed(group: Group, tally: Tally, present: Bools, *, selects_itself: bool, unmet: bool) -> Bools:
    """The nodes onto which the rule lets one more pod. `unmet`: nobody that an affinity wants is anywhere."""
    found: np.ndarray[Any, np.dtype[np.bool_]]
    match group.rule:
        case Rule.SPREAD:
            most = group.max_skew + tally.least(present, group.min_domains) - selects_itself
            found = tally.labelled & (tally.at <= most)
        case Rule.AFFINITY:
            found = tally.labelled.copy() if unmet and selects_itself else tally.at > 0
        case Rule.ANTI_AFFINITY | Rule.KEEPS_AWAY:
            found = tally.at == 0
    return found
