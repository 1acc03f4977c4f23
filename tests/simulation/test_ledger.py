"""The independent count of machines: each of its rules catches the bug that it is there for, and nothing else."""

from collections.abc import Callable
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.sim.ledger import CLAIMS, CONFIG_MAPS, NODES, POOLS, Caps, Ledger

PRICES = {("small", "a", "spot"): 10, ("small", "a", "on-demand"): 20, ("large", "a", "on-demand"): 90}


class Story:
    """Tells a ledger what happened, one revision after the other."""

    def __init__(self, **options: Any) -> None:
        self.ledger = Ledger(**options)
        self._revision = 0

    def tell(self, which: tuple[str, str, str], change: str, body: Json) -> None:
        self._revision += 1
        body = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self._revision)}}
        self.ledger.see(which, change, body)

    def pool(self, *, nodes: str | None = "2", reserved: str = "", mode: str = "Hard") -> None:
        annotations = {"growth.dev/reserved": reserved} if reserved else {}
        limits = {} if nodes is None else {"nodes": nodes}
        spec = {"limits": limits, "disruption": {"nodeLimitMode": mode}}
        body = {"metadata": {"name": "default", "annotations": annotations}, "spec": spec}
        self.tell(POOLS, "MODIFIED", body)

    def claim(
        self,
        name: str,
        change: str = "ADDED",
        *,
        deleting: bool = False,
        types: tuple[str, ...] = (),
        replaces: str = "",
    ) -> None:
        meta: Json = {"name": name, "uid": f"uid-{name}", "labels": {"karpenter.sh/nodepool": "default"}}
        if replaces:
            meta["annotations"] = {"growth.dev/replaces": replaces}
        if deleting:
            meta["deletionTimestamp"] = "2030-01-07T08:00:00Z"
        wanted = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": list(types)}] if types else []
        status = {"providerID": f"kwok://{name}"}
        self.tell(CLAIMS, change, {"metadata": meta, "spec": {"requirements": wanted}, "status": status})

    def machine(
        self, name: str, change: str = "ADDED", *, claim: str = "", record: str = "", kind: str = "small"
    ) -> None:
        data = {"claimUID": f"uid-{claim or name}", "providerID": f"kwok://{name}", "instanceType": kind}
        data |= {"zone": "a", "capacityType": "on-demand"}
        meta = {"name": f"kwok-{name}", "uid": record or f"record-{name}", "labels": {"growth.dev/kwok-machine": "x"}}
        self.tell(CONFIG_MAPS, change, {"metadata": meta, "data": data})

    def node(self, name: str, change: str = "ADDED") -> None:
        self.tell(NODES, change, {"metadata": {"name": name}, "spec": {"providerID": f"kwok://{name}"}})

    def whole(self, name: str) -> None:
        self.claim(name)
        self.machine(name)
        self.node(name)

    @property
    def rules(self) -> list[str]:
        return [each.rule for each in self.ledger.complaints]


def test_a_life_from_claim_to_nothing_breaks_no_rule() -> None:
    """Reserve, claim, machine, Node; then machine, Node and claim go, in that order."""
    story = Story(caps=Caps(max_nodes=2, max_hourly=40, prices=PRICES))
    story.pool(reserved='{"one": {}, "two": {}}')
    story.whole("one")
    story.whole("two")
    story.pool()
    assert story.ledger.settled() == ()
    assert story.ledger.count() == (2, 2, 2)
    story.claim("one", "MODIFIED", deleting=True)
    story.machine("one", "DELETED")
    story.node("one", "DELETED")
    story.claim("one", "DELETED")
    story.whole("three")
    assert story.rules == []
    assert story.ledger.settled() == ()
    assert story.ledger.statistics().bought == 3
    assert (story.ledger.statistics().most, story.ledger.statistics().most_hourly) == (2, 40)


def test_reserved_names_count_against_the_limit() -> None:
    """Two claims and another reserved name are three."""
    story = Story()
    story.pool()
    story.claim("one")
    story.claim("two")
    story.pool(reserved='{"one": {}, "two": {}}')
    assert story.rules == []
    story.pool(reserved='{"three": {}}')
    assert story.rules == ["limit"]


def test_a_lowered_limit_is_broken_by_growth_only() -> None:
    """What was there before is a surplus and no breach; one more is."""
    story = Story()
    story.pool(nodes="2")
    story.claim("one")
    story.claim("two")
    story.pool(nodes="1")
    story.claim("two", "MODIFIED")
    assert story.rules == []
    story.claim("three")
    assert story.rules == ["limit"]


def test_what_was_granted_before_a_limit_was_lowered_may_still_come() -> None:
    """A name that was reserved in time becomes a claim and a machine; those of a name that was not are breaches."""
    story = Story()
    story.pool(nodes="2", reserved='{"two": {}}')
    story.whole("one")
    story.pool(nodes="1", reserved='{"two": {}}')
    story.claim("two")
    story.machine("two")
    assert story.rules == []
    story.claim("three")
    story.machine("three")
    assert story.rules == ["limit", "limit"]


@pytest.mark.parametrize(("mode", "rules"), [("Hard", ["limit", "limit"]), ("Soft", [])])
def test_what_replaces_others_may_pass_a_soft_limit_only(mode: str, rules: list[str]) -> None:
    """The name that is reserved for it, its claim and its machine; what replaces nothing is a breach in both."""
    story = Story()
    story.pool(nodes="1", mode=mode)
    story.whole("one")
    story.pool(nodes="1", mode=mode, reserved='{"two": {"replaces": ["one"]}}')
    story.claim("two", replaces="one")
    story.machine("two")
    assert story.rules == rules
    story.claim("three")
    assert story.rules == [*rules, "limit"]


def test_a_move_that_is_taken_back_buys_nothing() -> None:
    """What came for it stays and counts from then on: that is no breach, and the next purchase is one."""
    story = Story()
    story.pool(nodes="1", mode="Soft")
    story.whole("one")
    story.claim("two", replaces="one")
    story.machine("two")
    story.claim("two", "MODIFIED")
    story.pool(nodes="1", mode="Soft")
    assert story.rules == []
    story.claim("three")
    assert story.rules == ["limit"]


def test_what_replaces_others_may_come_above_a_soft_limit() -> None:
    """A pool that has too many already gets a machine in the place of another: afterwards it has as many as before."""
    story = Story()
    story.pool(nodes="2", mode="Soft")
    story.whole("one")
    story.whole("two")
    story.pool(nodes="1", mode="Soft")
    story.claim("three", replaces="two")
    story.machine("three")
    assert story.rules == []
    story.claim("four")
    story.machine("four")
    assert story.rules == ["limit", "limit"]


def test_a_replacement_that_goes_before_what_it_replaced_makes_nothing_more() -> None:
    """It was replaced in its turn, and the first of the three is slow to leave; the next purchase is a breach."""
    story = Story()
    story.pool(nodes="1", mode="Soft")
    story.whole("one")
    story.claim("two", replaces="one")
    story.machine("two")
    story.claim("one", "MODIFIED", deleting=True)
    story.claim("three", replaces="two")
    story.machine("three")
    story.machine("two", "DELETED")
    story.claim("two", "DELETED")
    assert story.rules == []
    story.claim("four")
    assert story.rules == ["limit"]


def test_machines_count_even_when_their_claims_are_hidden() -> None:
    """Claims that go while their machines stay do not make room."""
    story = Story()
    story.pool(nodes="1")
    story.claim("one")
    story.machine("one")
    story.claim("one", "DELETED")
    story.claim("two")
    story.machine("two")
    assert story.rules == ["leaked", "limit"]


def test_the_cluster_has_a_limit_of_its_own() -> None:
    """Names reserved in the caps' ConfigMap count, under whatever key."""
    story = Story(caps=Caps(max_nodes=1))
    story.pool(nodes=None)
    caps = {"metadata": {"name": "growth-caps", "namespace": "growth"}, "data": {"reserved": '{"one": {}}'}}
    story.tell(CONFIG_MAPS, "ADDED", caps)
    story.claim("one")
    assert story.rules == []
    story.tell(CONFIG_MAPS, "MODIFIED", {**caps, "data": {"reserved": '{"two": {}}'}})
    assert story.rules == ["limit"]


def test_what_claims_under_way_must_cost_counts() -> None:
    """Ninety runs, and the least for a small one is ten."""
    story = Story(caps=Caps(max_hourly=99, prices=PRICES))
    story.pool(nodes=None)
    story.claim("one", types=("large",))
    story.machine("one", kind="large")
    assert story.rules == []
    story.claim("two", types=("small", "large"))
    assert story.rules == ["money"]


def a_second_machine(story: Story) -> None:
    story.machine("again", claim="one")


def the_same_name_bought_again(story: Story) -> None:
    story.machine("one", "DELETED")
    story.machine("one", record="another")


def a_machine_out_of_the_blue(story: Story) -> None:
    story.machine("nobodys")


def a_claim_that_lets_go_too_early(story: Story) -> None:
    story.claim("one", "DELETED")


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        (a_second_machine, "bought twice"),
        (the_same_name_bought_again, "bought twice"),
        (a_machine_out_of_the_blue, "unasked"),
        (a_claim_that_lets_go_too_early, "leaked"),
    ],
)
def test_a_bug_of_ownership_is_caught_when_it_happens(bug: Callable[[Story], None], rule: str) -> None:
    """Not only at the end, when it may have healed."""
    story = Story()
    story.pool()
    story.whole("one")
    bug(story)
    assert story.rules == [rule]


def test_a_machine_may_come_late_where_writes_do() -> None:
    """Then collecting it is what is asked for, and the end is compared."""
    story = Story(late_writes=True)
    story.machine("nobodys")
    assert story.rules == []
    assert story.ledger.settled() == ("machine kwok://nobodys has no claim",)


def without_a_claim(story: Story) -> None:
    story.claim("one", "DELETED")


def without_a_machine(story: Story) -> None:
    story.machine("one", "DELETED")


def without_a_node(story: Story) -> None:
    story.node("one", "DELETED")


def on_its_way_out(story: Story) -> None:
    story.claim("one", "MODIFIED", deleting=True)


@pytest.mark.parametrize(
    ("lack", "said"),
    [
        (without_a_claim, ("machine kwok://one has no claim",)),
        (without_a_machine, ("claim one has no machine", "Node one has no machine")),
        (without_a_node, ("claim one has 0 Nodes",)),
        (on_its_way_out, ("claim one is still going",)),
    ],
)
def test_what_is_left_must_match(lack: Callable[[Story], None], said: tuple[str, ...]) -> None:
    """Machines = claims = Nodes, each way."""
    story = Story()
    story.whole("one")
    assert story.ledger.settled() == ()
    lack(story)
    assert story.ledger.settled() == said
