"""Pods that want to be near others or far from them."""

from growth.api.meta import LabelSelector, LabelSelectorRequirement
from growth.api.placement import Affinity, PodAffinityTerm
from growth.planning.plan import Filter
from tests.unit.planning.builders import (
    HOST,
    LARGE,
    MEDIUM,
    ZONE,
    far,
    kind,
    near,
    need,
    node,
    offering,
    plan,
    pod,
    pods,
    pool,
    term,
)

WEB = {"app": "web"}
DB = {"app": "db"}
SPACES: dict[str, dict[str, str]] = {"default": {}, "shop": {"tier": "front"}, "jobs": {"tier": "back"}}


def test_a_group_that_wants_itself_shares_a_zone() -> None:
    """The first pod goes anywhere, the others follow it."""
    made = plan(pool("default", MEDIUM), pods(9, labels=WEB, affinity=near(term(app="web"))))
    assert len(set(made.zones)) == 1


def test_a_group_that_wants_itself_shares_a_host() -> None:
    """By host they all share one machine."""
    assert plan(pool(), pods(4, labels=WEB, affinity=near(term(HOST, app="web")))).sizes == [4]


def test_a_group_too_large_for_its_host_waits() -> None:
    """Pods that must share a host do not get another one."""
    made = plan(pool("default", MEDIUM), pods(6, labels=WEB, affinity=near(term(HOST, app="web"))))
    assert made.sizes == [4]
    assert len(made.unplaced) == 2


def test_a_group_that_wants_itself_begins_where_all_of_it_fits() -> None:
    """The first of a group by host does not take the last room of a machine where the others would find none."""
    group = pods(4, "web", cpu="1", labels=WEB, affinity=near(term(HOST, app="web")))
    made = plan(pool("default", MEDIUM), pod("large", cpu="3"), group)
    assert made.unplaced == []
    assert sorted(made.sizes) == [1, 4]


def test_a_group_begins_on_the_existing_node_that_holds_all_of_it() -> None:
    """Among existing nodes too, room for one is not enough."""
    group = pods(3, "web", cpu="1", labels=WEB, affinity=near(term(HOST, app="web")))
    made = plan(node("a", cpu="1"), node("b", cpu="4"), pool("default", MEDIUM), group)
    assert len(made.on("b")) == 3


def test_a_pod_follows_those_that_are_there() -> None:
    """Affinity leads to the zone of the bound pods."""
    there = node("one", pod("db", labels=DB), cpu="1", zone="b")
    assert plan(there, pool(), pod(affinity=near(term(app="db")))).claim.zone == "b"


def test_a_pod_follows_those_that_are_planned() -> None:
    """Affinity leads to the zone of pods of the same plan."""
    made = plan(pool(), pod("db", cpu="2", labels=DB, selector={ZONE: "c"}), pod("x", affinity=near(term(app="db"))))
    assert set(made.zones) == {"c"}


def test_followers_wait_for_those_that_come_later_in_the_queue() -> None:
    """A large follower is tried again once the small pod that it wants is placed."""
    made = plan(pool(), pod("db", cpu="100m", labels=DB), pod("x", cpu="3", affinity=near(term(app="db"))))
    assert made.unplaced == []


def test_affinity_to_nobody_leaves_the_pod_waiting() -> None:
    """A pod that wants others who are nowhere gets no machine."""
    assert plan(pool(), pod(affinity=near(term(app="db")))).reason().filter is Filter.TOPOLOGY


def test_a_group_that_lives_elsewhere_is_not_founded_anew() -> None:
    """A self-selecting pod joins its kind where it is, even if there is no room for it there."""
    there = node("one", pod("w", labels=WEB), cpu="1", zone="b")
    made = plan(there, pool(needs=[need(ZONE, "In", "a")]), pod(labels=WEB, affinity=near(term(app="web"))))
    assert made.unplaced == ["pod"]


def test_two_affinities_hold_at_once() -> None:
    """Pods that match both terms must be in both domains."""
    wanted = near(term(ZONE, app="web"), term(HOST, app="web"))
    assert len(plan(pool(), pods(3, labels=WEB, affinity=wanted)).claims) == 1


def test_affinity_needs_the_label_on_the_node() -> None:
    """A node without a zone is in nobody's zone."""
    there = node("one", pod("db", labels=DB), zone="b", cpu="1")
    made = plan(there, node("bare", zone=""), pool(), pod(affinity=near(term(app="db"))))
    assert made.on("bare") == []


def test_pods_that_avoid_their_kind_get_a_host_each() -> None:
    """Anti-affinity by host: one a machine."""
    assert plan(pool(), pods(3, cpu="100m", labels=WEB, affinity=far(term(HOST, app="web")))).sizes == [1, 1, 1]


def test_pods_that_avoid_their_kind_get_a_zone_each() -> None:
    """Anti-affinity by zone: one a zone, and the fourth waits."""
    made = plan(pool(), pods(4, cpu="100m", labels=WEB, affinity=far(term(app="web"))))
    assert made.zones == ["a", "b", "c"]
    assert len(made.unplaced) == 1


def test_a_pod_avoids_those_that_are_there() -> None:
    """Anti-affinity keeps away from the zone of bound pods."""
    there = node("one", pod("db", labels=DB), cpu="8", zone="a")
    made = plan(there, pool(), pod(affinity=far(term(app="db"))))
    assert made.claim.zone in {"b", "c"}


def test_those_that_are_there_keep_others_away() -> None:
    """The anti-affinity of a bound pod works in both directions."""
    there = node("one", pod("db", labels=DB, affinity=far(term(app="web"))), zone="a", cpu="8")
    made = plan(there, pool(), pod(labels=WEB))
    assert made.claim.zone in {"b", "c"}


def test_those_that_are_planned_keep_others_away() -> None:
    """The anti-affinity of a planned pod keeps later ones out of its host."""
    made = plan(pool(), pod("db", cpu="2", labels=DB, affinity=far(term(HOST, app="web"))), pod("w", labels=WEB))
    assert made.sizes == [1, 1]


def test_a_node_without_the_label_is_in_nobodys_way() -> None:
    """Anti-affinity by zone takes a node without a zone."""
    there = node("one", pod("db", labels=DB), zone="a", cpu="1")
    assert plan(there, node("bare", zone=""), pool(), pod(affinity=far(term(app="db")))).where() == "bare"


def test_new_machines_without_the_label_are_in_nobodys_way() -> None:
    """Anti-affinity by a label that the pool's machines lack does not keep the pod waiting."""
    assert plan(pool(), pods(2, labels=WEB, affinity=far(term("example.com/row", app="web")))).unplaced == []


def test_preferred_anti_affinity_of_bound_pods_keeps_nobody_away() -> None:
    """Only required terms work backwards."""
    there = node("one", pod("db", labels=DB, affinity=far(prefer=[(100, term(app="web"))])), cpu="8")
    assert plan(there, pool(), pod(labels=WEB)).where() == "one"


def test_affinity_is_about_the_pods_own_namespace() -> None:
    """Without namespaces a term sees the pod's own."""
    there = node("one", pod("db", labels=DB, namespace="shop"), cpu="8")
    made = plan(there, pool(), pod(affinity=near(term(app="db"))), namespaces=SPACES)
    assert made.unplaced == ["pod"]


def test_named_namespaces_are_looked_at() -> None:
    """A term may name other namespaces."""
    wanted = near(
        PodAffinityTerm(topology_key=ZONE, label_selector=LabelSelector(match_labels=DB), namespaces=("shop",))
    )
    there = node("one", pod("db", labels=DB, namespace="shop"), cpu="8")
    assert plan(there, pool(), pod(affinity=wanted), namespaces=SPACES).where() == "one"


def test_named_namespaces_leave_the_own_one_out() -> None:
    """A term that names others does not see the pod's own namespace."""
    wanted = near(
        PodAffinityTerm(topology_key=ZONE, label_selector=LabelSelector(match_labels=DB), namespaces=("shop",))
    )
    made = plan(node("one", pod("db", labels=DB), cpu="8"), pool(), pod(affinity=wanted), namespaces=SPACES)
    assert made.unplaced == ["pod"]


def test_namespaces_are_selected_by_label() -> None:
    """A namespace selector sees the namespaces with its labels."""
    wanted = near(
        PodAffinityTerm(
            topology_key=ZONE,
            label_selector=LabelSelector(match_labels=DB),
            namespace_selector=LabelSelector(match_labels={"tier": "front"}),
        )
    )
    front = node("one", pod("db", labels=DB, namespace="shop"), cpu="8", zone="b")
    back = node("two", pod("db", labels=DB, namespace="jobs"), cpu="1", zone="a")
    assert plan(front, back, pool(), pod(affinity=wanted), namespaces=SPACES).where() == "one"


def test_an_empty_namespace_selector_sees_all() -> None:
    """An empty selector of namespaces means every namespace."""
    wanted = near(
        PodAffinityTerm(
            topology_key=ZONE, label_selector=LabelSelector(match_labels=DB), namespace_selector=LabelSelector()
        )
    )
    there = node("one", pod("db", labels=DB, namespace="elsewhere"), cpu="8")
    assert plan(there, pool(), pod(affinity=wanted), namespaces=SPACES).where() == "one"


def test_no_selector_selects_nobody() -> None:
    """A term without a label selector is about no pod at all."""
    there = node("one", pod("db", labels=DB), cpu="8")
    assert plan(there, pool(), pod(affinity=far(PodAffinityTerm(topology_key=ZONE)))).where() == "one"


def test_expressions_select_pods() -> None:
    """A term may select pods by expression."""
    either = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=("db", "cache")),)
    )
    there = node("one", pod("db", labels=DB), cpu="1", zone="c")
    assert plan(there, pool(), pod(affinity=near(term(ZONE, either)))).claim.zone == "c"


def test_match_label_keys_narrow_a_term_to_the_pods_own_value() -> None:
    """Pods of another revision are not the pod's kind."""
    wanted = PodAffinityTerm(
        topology_key=HOST, label_selector=LabelSelector(match_labels=WEB), match_label_keys=("rev",)
    )
    old = node("one", pod("w", labels={**WEB, "rev": "1"}), cpu="8")
    assert plan(old, pool(), pod(labels={**WEB, "rev": "2"}, affinity=far(wanted))).where() == "one"


def test_mismatch_label_keys_narrow_a_term_to_other_values() -> None:
    """Pods of the own tenant are left out."""
    others = PodAffinityTerm(
        topology_key=HOST, label_selector=LabelSelector(match_labels=WEB), mismatch_label_keys=("tenant",)
    )
    mine = node("mine", pod("w", labels={**WEB, "tenant": "x"}), cpu="8")
    theirs = node("a-theirs", pod("w", labels={**WEB, "tenant": "y"}), cpu="8")
    assert plan(mine, theirs, pool(), pod(labels={**WEB, "tenant": "x"}, affinity=far(others))).where() == "mine"


def test_near_some_and_far_from_others() -> None:
    """Affinity by zone and anti-affinity by host hold together."""
    both = Affinity(
        pod_affinity=near(term(ZONE, app="web")).pod_affinity,
        pod_anti_affinity=far(term(HOST, app="web")).pod_anti_affinity,
    )
    made = plan(pool(), pods(3, cpu="100m", labels=WEB, affinity=both))
    assert made.sizes == [1, 1, 1]
    assert len(set(made.zones)) == 1


def test_affinity_by_a_label_of_the_cloud() -> None:
    """Any label that machines have can be the topology."""
    racks = kind(
        "racks",
        8,
        offerings=[offering("a", 0.1, labels={"rack": "r1"}), offering("b", 0.2, labels={"rack": "r2"})],
    )
    made = plan(pool("default", racks), pods(2, cpu="5", labels=WEB, affinity=near(term("rack", app="web"))))
    assert {claim.labels["rack"] for claim in made.claims} == {"r1"}


def test_a_pod_that_avoids_everybody_gets_a_machine_alone() -> None:
    """Anti-affinity to every pod by host leaves the machine to one."""
    loner = pod("loner", cpu="2", affinity=far(term(HOST, LabelSelector())))
    made = plan(pool("default", LARGE), loner, pods(2, "w", labels=WEB))
    assert sorted(made.sizes) == [1, 2]


def test_pods_placed_in_the_own_zone_count_once_the_machine_is_pinned() -> None:
    """A pod without rules that others avoid is put in one zone, so that they know where not to go."""
    made = plan(pool(), pod("db", cpu="2", labels=DB), pods(2, "x", affinity=far(term(app="db"))))
    homes = {claim.zone for claim in made.claims if "default/db" in claim.pods}
    others = {claim.zone for claim in made.claims if "default/db" not in claim.pods}
    assert not homes & others


def test_a_kind_that_lives_somewhere_is_not_founded_anew_by_another_label() -> None:
    """Of two terms, friends in the zone of a node without rack are friends: the rack is not begun without them."""
    racks = kind("racks", 8, offerings=[offering("a", 0.1, labels={"rack": "r1"})])
    there = node("one", pod("w", labels=WEB), zone="a", cpu="1")
    both = near(term(ZONE, app="web"), term("rack", app="web"))
    assert plan(there, pool("default", racks), pod(labels=WEB, affinity=both)).unplaced == ["pod"]
