"""Topology spread: pods even out over zones, hosts and any other label."""

import collections

from growth.api import names
from growth.planning.plan import Filter
from tests.unit.planning.builders import (
    AT_ANY_PRICE,
    HOST,
    LARGE,
    TERMS,
    ZONE,
    Planned,
    expression,
    kind,
    need,
    node,
    offering,
    on_nodes,
    plan,
    pod,
    pods,
    pool,
    spread,
    taint,
    tolerate,
)

WEB = {"app": "web"}


def by_zone(made: Planned) -> list[int]:
    counts: collections.Counter[str] = collections.Counter()
    for claim in made.claims:
        counts[claim.zone] += len(claim.pods)
    return sorted(counts.values())


def test_pods_spread_evenly_over_zones() -> None:
    """With skew one, six pods are two in each of three zones."""
    assert by_zone(plan(pool(), pods(6, labels=WEB, spread=[spread(app="web")]))) == [2, 2, 2]


def test_a_remainder_goes_to_one_zone_more() -> None:
    """With skew one, seven pods are two, two and three."""
    assert by_zone(plan(pool(), pods(7, labels=WEB, spread=[spread(app="web")]))) == [2, 2, 3]


def test_a_greater_skew_allows_more() -> None:
    """With skew three the first three pods may share a zone; the plan stays within the skew."""
    counts = by_zone(plan(pool(), pods(9, labels=WEB, spread=[spread(skew=3, app="web")])))
    assert max(counts) - (min(counts) if len(counts) == 3 else 0) <= 3


def test_pods_spread_over_hosts() -> None:
    """With skew one by host every pod gets its own machine."""
    assert plan(pool(), pods(3, cpu="100m", labels=WEB, spread=[spread(HOST, app="web")])).sizes == [1, 1, 1]


def test_hosts_take_as_many_as_the_skew_allows() -> None:
    """A new machine is always possible, so a host holds at most the skew."""
    made = plan(pool(), pods(6, cpu="100m", labels=WEB, spread=[spread(HOST, skew=2, app="web")]))
    assert made.sizes == [2, 2, 2]


def test_pods_spread_over_any_label() -> None:
    """Capacity type is a topology like any other."""
    both = kind("both", 8, offerings=[offering("a", 0.1, names.SPOT), offering("a", 0.3)])
    made = plan(pool("default", both), pods(4, labels=WEB, spread=[spread(TERMS, app="web")]))
    assert sorted(len(claim.pods) for claim in made.claims) == [2, 2]


def test_other_pods_are_not_counted() -> None:
    """A spread counts the pods that its selector matches and no others."""
    crowd = node("one", *pods(3, "other", cpu="100m", labels={"app": "db"}), zone="a")
    assert plan(crowd, pool(), pod(labels=WEB, spread=[spread(app="web")])).where() == "one"


def test_pods_that_are_being_deleted_are_not_counted() -> None:
    """As for kube-scheduler: what goes makes no zone fuller, so that the next pod belongs where it goes."""
    web = pods(2, cpu="100m", labels=WEB, spread=[spread(app="web")])
    full, new = node("two", cpu="0", zone="b"), pod(cpu="100m", labels=WEB, spread=[spread(app="web")])
    assert plan(node("one", web[0], zone="a"), full, new).unplaced
    assert plan(node("one", departing=[web[0]], zone="a"), full, new).where() == "one"
    assert plan(node("one", web[0], departing=[web[1]], zone="a"), full, new).unplaced


def test_pods_of_other_namespaces_are_not_counted() -> None:
    """A spread is about the pod's own namespace."""
    crowd = node("one", *pods(3, "other", cpu="100m", labels=WEB, namespace="shop"), zone="a")
    assert plan(crowd, pool(), pod(labels=WEB, spread=[spread(app="web")])).where() == "one"


def test_a_pod_that_its_own_selector_misses_is_not_counted() -> None:
    """A pod may follow a spread of others without adding to it."""
    made = plan(pool(), pods(4, cpu="100m", labels={"app": "other"}, spread=[spread(app="web")]))
    assert made.sizes == [4]


def test_domains_that_could_be_bought_count_as_empty() -> None:
    """Two pods do not stay in one zone while two more are for sale."""
    there = node("one", pod("x", labels=WEB), zone="a")
    made = plan(there, pool(), pod(labels=WEB, spread=[spread(app="web")]))
    assert made.claim.zone in {"b", "c"}


def test_a_zone_that_the_pod_cannot_use_does_not_count() -> None:
    """By default only nodes on which the pod could run are counted."""
    made = plan(
        pool(),
        pods(4, labels=WEB, spread=[spread(app="web")], affinity=on_nodes([expression(ZONE, "In", "a", "b")])),
    )
    assert by_zone(made) == [2, 2]


def test_ignoring_affinity_counts_zones_that_the_pod_cannot_use() -> None:
    """With nodeAffinityPolicy Ignore an unreachable zone stays empty and holds the others back."""
    made = plan(
        pool(),
        pods(
            4,
            labels=WEB,
            spread=[spread(app="web", affinity_policy="Ignore")],
            affinity=on_nodes([expression(ZONE, "In", "a", "b")]),
        ),
    )
    assert by_zone(made) == [1, 1]
    assert len(made.unplaced) == 2


def test_tainted_nodes_count_by_default() -> None:
    """With nodeTaintsPolicy Ignore, the default, a tainted empty zone counts as empty."""
    tainted = node("one", zone="b", taints=[taint()])
    made = plan(tainted, pool(needs=[need(ZONE, "In", "a")]), pods(3, labels=WEB, spread=[spread(app="web")]))
    assert len(made.unplaced) == 2


def test_honouring_taints_leaves_tainted_nodes_out() -> None:
    """With nodeTaintsPolicy Honor a tainted zone does not hold the others back."""
    tainted = node("one", zone="b", taints=[taint()])
    made = plan(
        tainted,
        pool(needs=[need(ZONE, "In", "a")]),
        pods(3, labels=WEB, spread=[spread(app="web", taints_policy="Honor")]),
    )
    assert made.unplaced == []


def test_honouring_taints_counts_what_the_pod_tolerates() -> None:
    """A pod that tolerates the taint counts the node."""
    tainted = node("one", zone="b", taints=[taint()], cpu="100m")
    made = plan(
        tainted,
        pool(needs=[need(ZONE, "In", "a")]),
        pods(3, labels=WEB, tolerations=[tolerate("dedicated")], spread=[spread(app="web", taints_policy="Honor")]),
    )
    assert len(made.unplaced) == 2


def test_too_few_domains_count_as_an_empty_one() -> None:
    """With minDomains five and three zones, each zone holds at most the skew."""
    made = plan(pool(), pods(5, labels=WEB, spread=[spread(app="web", at_least=5)]))
    assert by_zone(made) == [1, 1, 1]
    assert len(made.unplaced) == 2


def test_enough_domains_make_min_domains_harmless() -> None:
    """With minDomains three and three zones nothing changes."""
    made = plan(pool(), pods(6, labels=WEB, spread=[spread(app="web", at_least=3)]))
    assert by_zone(made) == [2, 2, 2]


def test_match_label_keys_count_each_revision_by_itself() -> None:
    """Pods of another revision are not counted."""
    rule = spread(app="web", keys=["rev"])
    old = node("one", pod("x", labels={**WEB, "rev": "1"}), zone="a")
    made = plan(old, pool(), pod(labels={**WEB, "rev": "2"}, spread=[rule]))
    assert made.where() == "one"


def test_two_spreads_hold_at_once() -> None:
    """Zones and hosts are evened out together."""
    rules = [spread(app="web"), spread(HOST, app="web")]
    made = plan(pool(), pods(6, cpu="100m", labels=WEB, spread=rules))
    assert made.sizes == [1] * 6
    assert by_zone(made) == [2, 2, 2]


def test_a_node_without_the_label_is_not_used() -> None:
    """A spread over zones needs a zone."""
    made = plan(node("one", zone=""), pool(), pod(labels=WEB, spread=[spread(app="web")]))
    assert made.on("one") == []


def test_a_label_that_no_machine_has_leaves_the_pod_waiting() -> None:
    """A spread over a label that nobody has is a reason of topology."""
    made = plan(pool(), pod(labels=WEB, spread=[spread("example.com/row", app="web")]))
    assert made.reason().filter is Filter.TOPOLOGY


def test_an_empty_selector_counts_nobody() -> None:
    """A spread over every pod is a spread over none, as in kube-scheduler."""
    assert plan(pool(), pods(4, cpu="100m", labels=WEB, spread=[spread()])).sizes == [4]


def test_a_full_zone_holds_the_others_back() -> None:
    """When one zone can take no more, the others stop at the skew."""
    tight = pool("default", LARGE, needs=[need(ZONE, "In", "a", "b")])
    full = node("one", cpu="100m", zone="c")
    made = plan(tight, full, pods(5, labels=WEB, spread=[spread(app="web")]))
    assert by_zone(made) == [1, 1]
    assert len(made.unplaced) == 3


def test_schedule_anyway_evens_out_where_it_can() -> None:
    """A preferred spread is kept as long as it costs nobody a place."""
    assert by_zone(plan(pool(), pods(3, labels=WEB, spread=[spread(app="web", anyway=True)]))) == [1, 1, 1]


def test_schedule_anyway_keeps_nobody_waiting() -> None:
    """A preferred spread is given up when it cannot be kept."""
    one_zone = pool(needs=[need(ZONE, "In", "a")])
    full = node("one", cpu="100m", zone="b")
    made = plan(one_zone, full, pods(4, labels=WEB, spread=[spread(app="web", anyway=True)]))
    assert made.unplaced == []


def test_pods_that_state_no_spread_are_counted_by_those_who_do() -> None:
    """A pod with the label counts, whether it has the rule or not."""
    made = plan(pool(), pod("plain", cpu="2", labels=WEB), pods(2, labels=WEB, spread=[spread(app="web")]))
    assert by_zone(made) == [1, 1, 1]


def test_a_node_counts_for_two_spreads_only_if_it_has_both_labels() -> None:
    """Pods on a node that lacks one of the labels count for neither, as in kube-scheduler."""
    rules = [spread(app="web"), spread("example.com/row", app="web")]
    labelled = {"example.com/row": "1"}
    half = node("half", *pods(2, "w", cpu="100m", labels=WEB), zone="a", cpu="1")
    full = node("full", zone="a", labels=labelled)
    other = node("other", pod("x", cpu="100m", labels=WEB), zone="b", labels=labelled)
    assert plan(half, full, other, pod(labels=WEB, spread=rules)).where() == "full"


def test_a_machine_settled_by_its_size_counts_as_what_it_is() -> None:
    """A machine that only one architecture can be any more is not counted by a spread over the other."""
    types = [kind("amd", 8, zones="a"), kind("arm", 2, arch="arm64", zones="a", price=9)]
    other = node("other", zone="b", labels={"kubernetes.io/arch": "arm64"}, cpu="1")
    arm = {"kubernetes.io/arch": "arm64"}
    made = plan(
        pool("default", *types),
        other,
        pods(2, "wide", cpu="2", labels=WEB),
        pod("x", labels=WEB, selector=arm, spread=[spread(app="web")]),
    )
    assert made.where("x") == "other"


def test_a_filter_that_everything_meets_narrows_nothing() -> None:
    """A spread of pods that ask only that a label exists leaves the machine open to all its values."""
    wish = on_nodes([expression("karpenter.kwok.sh/instance-cpu", "Exists")])
    made = plan(pool(), pod(labels=WEB, affinity=wish, spread=[spread(HOST, app="web")]), options=AT_ANY_PRICE)
    assert len(made.claim.instance_types) == 3


def test_a_pool_that_can_never_sell_gives_no_domains() -> None:
    """A pool whose `minValues` cannot be met makes no machines, so a spread need not wait for its zones."""
    rigid = pool("rigid", kind("far", zones="d"), needs=[need(names.INSTANCE_TYPE_LABEL, "Exists", least=2)])
    made = plan(rigid, pool("default", LARGE), pods(6, labels=WEB, spread=[spread(app="web")]))
    assert made.unplaced == []
    assert by_zone(made) == [2, 2, 2]
