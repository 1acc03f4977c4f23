"""Topology groups: spread, affinity and anti-affinity as counts per domain, updated by delta.

A group is one distinct rule (kind, key, selector, …), shared by every class that states it. For a key other than the
host name the counts are by the label's value. For the host name each node is its own domain, and the counts live with
the nodes: in `Existing` for those that exist, in `Claim.counts` for planned ones.

The rules are kube-scheduler's where Karpenter is laxer than it (an affinity that selects pods elsewhere is not
bootstrapped anew; several affinity terms must be met by the same pods), because kube-scheduler has the last word.
"""

import enum
from collections.abc import Iterable, Mapping

from growth.api import names
from growth.api.placement import Toleration
from growth.planning.offerings import Constraint
from growth.planning.selectors import Test


class Rule(enum.Enum):
    SPREAD = "spread"
    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    # A pod that is already placed keeps others away: counted where such pods are, asked by those whom they keep away.
    KEEPS_AWAY = "keeps away"


class Group:
    """One rule and its counts. `namespaces` None means all. `test` says which pods the rule is about."""

    __slots__ = (
        "counts",
        "filters",
        "firm",
        "honours_taints",
        "key",
        "max_skew",
        "min_domains",
        "namespaces",
        "rule",
        "siblings",
        "test",
        "text",
        "tolerations",
        "total",
    )

    def __init__(
        self,
        rule: Rule,
        key: str,
        test: Test,
        *,
        namespaces: frozenset[str] | None,
        text: str,
        max_skew: int = 0,
        min_domains: int = 0,
        filters: tuple[Constraint, ...] = (),
        honours_taints: bool = False,
        tolerations: tuple[Toleration, ...] = (),
    ) -> None:
        self.rule = rule
        self.key = key
        self.test = test
        self.namespaces = namespaces
        self.text = text
        self.max_skew = max_skew
        self.min_domains = min_domains
        # Spread counts only nodes on which the pod could run; an empty tuple filters nothing.
        self.filters = filters
        self.honours_taints = honours_taints
        self.tolerations = tolerations
        self.counts: dict[str, int] = {}
        self.total = 0
        # The rules of the same pod's other affinity terms, which the same pods must meet.
        self.siblings: tuple[Group, ...] = ()
        self.firm = False  # somebody must keep it; otherwise it is a preference of all who state it

    @property
    def by_host(self) -> bool:
        return self.key == names.HOSTNAME_LABEL

    @property
    def unmet(self) -> bool:
        """No pod that an affinity wants is anywhere: the first that wants its own kind may begin."""
        return self.total == 0 and all(each.total == 0 for each in self.siblings)

    def selects(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether the rule is about such a pod."""
        return (self.namespaces is None or namespace in self.namespaces) and self.test(labels)

    def know(self, domains: Iterable[str]) -> None:
        """Domains that exist or could: a spread evens out over them, empty ones included."""
        for domain in domains:
            self.counts.setdefault(domain, 0)

    def record(self, domain: str, pods: int) -> None:
        self.counts[domain] = self.counts.get(domain, 0) + pods
        self.total += pods

    # -- keys other than the host name --------------------------------------------------------------------------

    def allows(self, domain: str, *, selects_itself: bool) -> bool:
        """Whether one more pod that states the rule (or is kept away by it) may go to the domain."""
        count = self.counts.get(domain, 0)
        match self.rule:
            case Rule.SPREAD:
                return count + selects_itself - self.least <= self.max_skew
            case Rule.AFFINITY:
                return count > 0 or (self.unmet and selects_itself)
            case Rule.ANTI_AFFINITY | Rule.KEEPS_AWAY:
                return count == 0

    @property
    def least(self) -> int:
        """The count of the emptiest domain; too few domains for `minDomains` count as an empty one."""
        if len(self.counts) < self.min_domains or not self.counts:
            return 0
        return min(self.counts.values())

    @property
    def tolerates_absence(self) -> bool:
        """Whether a node without the label is fine: it has no domain in which anybody could be in the way."""
        return self.rule in {Rule.ANTI_AFFINITY, Rule.KEEPS_AWAY}

    # -- the host name ------------------------------------------------------------------------------------------

    def allows_host(self, count: int, *, selects_itself: bool) -> bool:
        """The same for one node that holds `count` such pods. A new node is always possible, so the least is 0."""
        match self.rule:
            case Rule.SPREAD:
                return count + selects_itself <= self.max_skew
            case Rule.AFFINITY:
                return count > 0 or (self.unmet and selects_itself)
            case Rule.ANTI_AFFINITY | Rule.KEEPS_AWAY:
                return count == 0
