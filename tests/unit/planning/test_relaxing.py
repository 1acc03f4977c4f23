"""Preferences are kept as long as they can be, and given up in Karpenter's order."""

from growth.api.placement import Affinity, Taint
from growth.planning.solve import Options
from tests.unit.planning.builders import (
    HOST,
    ZONE,
    expression,
    far,
    near,
    need,
    node,
    on_nodes,
    plan,
    pod,
    pods,
    pool,
    spread,
    term,
)

WEB = {"app": "web"}
IGNORE = Options(respect_preferences=False)


def test_a_preferred_zone_is_used() -> None:
    """A preference that can be met is met."""
    assert plan(pool(), pod(affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "b"))]))).claim.zone == "b"


def test_a_preference_that_cannot_be_met_is_given_up() -> None:
    """A preference keeps no pod pending."""
    assert plan(pool(), pod(affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "mars"))]))).unplaced == []


def test_the_heaviest_preference_is_tried_first() -> None:
    """Of two preferences the greater weight decides."""
    wishes = [(1, expression(ZONE, "In", "b")), (9, expression(ZONE, "In", "c"))]
    assert plan(pool(), pod(affinity=on_nodes(prefer=wishes))).claim.zone == "c"


def test_the_next_preference_counts_when_the_heaviest_cannot_be_met() -> None:
    """Preferences are given up one at a time, heaviest first."""
    wishes = [(1, expression(ZONE, "In", "b")), (9, expression(ZONE, "In", "mars"))]
    assert plan(pool(), pod(affinity=on_nodes(prefer=wishes))).claim.zone == "b"


def test_a_preference_never_breaks_a_requirement() -> None:
    """What is required counts more than what is preferred."""
    wish = on_nodes([expression(ZONE, "In", "a")], prefer=[(9, expression(ZONE, "In", "b"))])
    assert plan(pool(), pod(affinity=wish)).claim.zone == "a"


def test_preferred_affinity_is_kept_where_it_can_be() -> None:
    """A pod that would like company gets it."""
    there = node("one", pod("db", labels={"app": "db"}), cpu="1", zone="c")
    assert plan(there, pool(), pod(affinity=near(prefer=[(1, term(app="db"))]))).claim.zone == "c"


def test_preferred_affinity_to_nobody_is_given_up() -> None:
    """A pod that would like company that is nowhere runs alone."""
    assert plan(pool(), pod(affinity=near(prefer=[(1, term(app="db"))]))).unplaced == []


def test_preferred_anti_affinity_spreads_where_it_can() -> None:
    """Pods that would rather be apart get a host each."""
    made = plan(pool(), pods(3, cpu="100m", labels=WEB, affinity=far(prefer=[(1, term(HOST, app="web"))])))
    assert made.sizes == [1, 1, 1]


def test_preferred_anti_affinity_is_given_up_when_zones_run_out() -> None:
    """The fourth of four pods that would rather not share a zone shares one."""
    made = plan(pool(), pods(4, cpu="100m", labels=WEB, affinity=far(prefer=[(1, term(app="web"))])))
    assert made.unplaced == []
    assert set(made.zones) == {"a", "b", "c"}


def test_alternatives_are_dropped_before_preferences() -> None:
    """The first required term is given up before any preference, as Karpenter does."""
    wish = on_nodes(
        [expression(ZONE, "In", "a"), expression("team", "In", "x")],
        [expression(ZONE, "In", "b", "c")],
        prefer=[(1, expression(ZONE, "In", "c"))],
    )
    assert plan(pool(), pod(affinity=wish)).claim.zone == "c"


def test_a_term_that_only_a_preference_spoils_is_kept() -> None:
    """A required term is not lost because a preference beside it could not be met."""
    wish = on_nodes(
        [expression(ZONE, "In", "b")],
        [expression(ZONE, "In", "mars")],
        prefer=[(1, expression(ZONE, "In", "venus"))],
    )
    assert plan(pool(), pod(affinity=wish)).claim.zone == "b"


def test_preferred_affinity_goes_before_preferred_anti_affinity() -> None:
    """Of two wishes that exclude each other, nearness is given up first."""
    both = Affinity(
        pod_affinity=near(prefer=[(1, term(app="db"))]).pod_affinity,
        pod_anti_affinity=far(prefer=[(1, term(app="db"))]).pod_anti_affinity,
    )
    there = node("one", pod("db", labels={"app": "db"}), cpu="1", zone="a")
    assert plan(there, pool(), pod(affinity=both)).claim.zone != "a"


def test_preferred_anti_affinity_goes_before_preferred_nodes() -> None:
    """Of a wish to be apart and a wish for a zone, the zone is kept longer."""
    both = Affinity(
        node_affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "a"))]).node_affinity,
        pod_anti_affinity=far(prefer=[(1, term(app="db"))]).pod_anti_affinity,
    )
    there = node("one", pod("db", labels={"app": "db"}), cpu="1", zone="a")
    assert plan(there, pool(), pod(affinity=both)).claim.zone == "a"


def test_preferred_nodes_go_before_a_preferred_spread() -> None:
    """Of a wish for a zone and a spread that is not enforced, the spread is kept longer."""
    there = node("one", pod("w", labels=WEB), cpu="1", zone="a")
    wish = on_nodes(prefer=[(1, expression(ZONE, "In", "a"))])
    made = plan(there, pool(), pod(labels=WEB, affinity=wish, spread=[spread(app="web", anyway=True)]))
    assert made.claim.zone != "a"


def test_a_soft_taint_is_tolerated_last() -> None:
    """A preferred zone is given up before a pool that prefers to stay empty is used."""
    soft = pool("soft", weight=9, taints=[Taint(key="spare", effect="PreferNoSchedule")])
    hard = pool("hard", needs=[need(ZONE, "In", "a")])
    made = plan(soft, hard, pod(affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "b"))])))
    assert (str(made.claim.pool), made.claim.zone) == ("hard", "a")


def test_preferences_lead_to_a_lighter_pool() -> None:
    """All pools are asked with the preference before it is given up."""
    heavy = pool("heavy", weight=9, needs=[need(ZONE, "In", "a")])
    made = plan(heavy, pool("light"), pod(affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "b"))])))
    assert str(made.claim.pool) == "light"


def test_preferences_lead_past_an_existing_node() -> None:
    """A machine is bought for a preference, even if a node would do without it."""
    made = plan(node("one", zone="a"), pool(), pod(affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "b"))])))
    assert made.claim.zone == "b"


def test_ignored_preferences_buy_nothing() -> None:
    """With the policy Ignore preferred terms are dropped at once."""
    wish = on_nodes(prefer=[(1, expression(ZONE, "In", "b"))])
    assert plan(node("one", zone="a"), pool(), pod(affinity=wish), options=IGNORE).where() == "one"


def test_ignored_preferences_of_pods_share_machines() -> None:
    """With the policy Ignore preferred anti-affinity and preferred spread do not buy machines."""
    apart = pods(3, cpu="100m", labels=WEB, affinity=far(prefer=[(1, term(HOST, app="web"))]))
    even = pods(3, "e", cpu="100m", labels=WEB, spread=[spread(HOST, app="web", anyway=True)])
    assert plan(pool(), apart, even, options=IGNORE).sizes == [6]


def test_requirements_stay_with_ignored_preferences() -> None:
    """The policy Ignore drops nothing that is required."""
    wish = on_nodes([expression(ZONE, "In", "c")], prefer=[(1, expression(ZONE, "In", "b"))])
    assert plan(pool(), pod(affinity=wish), options=IGNORE).claim.zone == "c"


def test_each_pod_of_a_kind_keeps_its_preference_as_long_as_it_can() -> None:
    """Two of three get the wished zone when it has room for two, and the third runs elsewhere."""
    tight = pool("tight", needs=[need(ZONE, "In", "b")], limits={"nodes": 1})
    other = pool("other", needs=[need(ZONE, "In", "a")])
    wish = on_nodes(prefer=[(1, expression(ZONE, "In", "b"))])
    made = plan(tight, other, pods(3, cpu="8", affinity=wish))
    assert sorted((claim.zone, len(claim.pods)) for claim in made.claims) == [("a", 1), ("b", 2)]
