"""The model of kube-scheduler: who goes where, and who is left over."""

import dataclasses
from collections.abc import Mapping, Sequence

import pytest

from bench.clusters import cluster
from growth.api.pods import Pod
from growth.cluster.snapshot import Demand, NodeView, Snapshot
from growth.planning.rehearsal import Arrival, Rehearsal, Stage
from growth.planning.solve import solve
from growth.sim.judge.replay import planned_host
from growth.sim.judge.stage import Stage as JudgesStage
from growth.sim.predicates import Host, refusals
from tests.unit.planning.builders import (
    HOST,
    SHAPES,
    ZONE,
    claim,
    container,
    csi_node,
    expression,
    far,
    near,
    node,
    on_nodes,
    pod,
    pods,
    spread,
    storage,
    taint,
    term,
    tolerate,
    volume,
)


def rehearse(
    waiting: Sequence[Pod],
    *machines: NodeView,
    arrival: Arrival = Arrival.AT_ONCE,
    snapshot: Snapshot | None = None,
    meant: Mapping[str, int] | None = None,
) -> Rehearsal:
    """The pods on machines that are bought for them; what is there already is in the snapshot."""
    demands = [Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in waiting]
    stage = Stage(snapshot or Snapshot(currency="EUR", namespaces={"default": {}}), demands)
    return stage.rehearse_nodes(machines, arrival, meant={f"default/{name}": at for name, at in (meant or {}).items()})


def on(found: Rehearsal) -> dict[str, str | int]:
    return {key.partition("/")[2]: place for key, place in found.order}


def test_pods_are_spread_where_a_plan_would_pack() -> None:
    """Equal pods go to the machine with the largest part free, so two machines get two each."""
    found = on(rehearse(pods(4), node("a"), node("b")))
    assert sorted(found.values()) == [0, 0, 1, 1]


def test_small_pods_spread_thinly_leave_no_room_for_a_large_one() -> None:
    """What fits by packing is left over by kube-scheduler: the reason for the rehearsal."""
    found = rehearse([*pods(2), pod("large", cpu="4")], node("a"), node("b"))
    assert found.left == ("default/large",)


@pytest.mark.parametrize("arrival", [Arrival.AT_ONCE, Arrival.ONE_BY_ONE])
def test_pods_that_are_told_their_machines_are_packed_as_planned(arrival: Arrival) -> None:
    """A nominated node is tried first: what spreading would leave over has its place."""
    small, large = pods(2), pod("large", cpu="4")
    meant = {small[0].metadata.name: 0, small[1].metadata.name: 0, "large": 1}
    found = rehearse([*small, large], node("a"), node("b"), arrival=arrival, meant=meant)
    assert on(found) == meant


def test_the_room_of_who_is_told_is_kept_from_others() -> None:
    """Somebody who is told nothing, and comes first in the queue, gets what is left; who has a higher priority takes it."""
    found = rehearse([pod("other", cpu="3"), pod("told", cpu="3")], node("a"), meant={"told": 0})
    assert (on(found), found.left) == ({"told": 0}, ("default/other",))
    found = rehearse([pod("other", cpu="3", priority=10), pod("told", cpu="3")], node("a"), meant={"told": 0})
    assert (on(found), found.left) == ({"other": 0}, ("default/told",))


def test_who_is_told_a_machine_that_refuses_him_goes_where_he_can() -> None:
    """A nomination is a hint: kube-scheduler looks at all nodes where it does not hold."""
    found = rehearse([pod("p", cpu="3")], node("a", cpu="2"), node("b"), meant={"p": 0})
    assert on(found) == {"p": 1}


def test_pods_of_higher_priority_go_first() -> None:
    """The queue is by priority, then in the order of the demands."""
    found = rehearse([pod("low", cpu="3"), pod("high", cpu="3", priority=10)], node("a"))
    assert on(found) == {"high": 0}
    assert found.left == ("default/low",)


def test_machines_that_come_one_by_one_are_filled_one_after_the_other() -> None:
    """Nobody waits for the second machine who finds room on the first."""
    waiting = pods(6, cpu="1", memory="1Gi")
    assert sorted(on(rehearse(waiting, node("a"), node("b"), arrival=Arrival.ONE_BY_ONE)).values()) == [
        0,
        0,
        0,
        0,
        1,
        1,
    ]


def test_nodes_that_are_ready_take_pods_before_machines_come() -> None:
    """A pod that fits on what is there is bound before anything is bought."""
    there = Snapshot(currency="EUR", nodes=(node("old"),), namespaces={"default": {}})
    assert on(rehearse([pod("p")], node("a", cpu="64", memory="256Gi"), snapshot=there)) == {"p": "old"}


def test_machines_that_are_up_beforehand_take_pods_as_nodes_do() -> None:
    """Whoever is moved comes when what replaces is there: the emptier machine draws the pod, new or old."""
    there = Snapshot(currency="EUR", nodes=(node("old"),), namespaces={"default": {}})
    large = node("a", cpu="64", memory="256Gi")
    assert on(rehearse([pod("p")], large, snapshot=there, arrival=Arrival.BEFOREHAND)) == {"p": 0}


def test_daemons_take_their_room_first() -> None:
    """What DaemonSets will ask for on a machine is not there for pods."""
    agent = pod("agent", cpu="1")
    snapshot = Snapshot(currency="EUR", daemons=(agent,), namespaces={"default": {}})
    assert rehearse([pod("p", cpu="3500m")], node("a"), snapshot=snapshot).left == ("default/p",)


def test_pods_without_requests_count_as_a_tenth_of_a_core() -> None:
    """Otherwise all of them would go to one node: LeastAllocated assumes 100m and 200Mi for them."""
    waiting = pods(4, containers=[container()])
    assert sorted(on(rehearse(waiting, node("a"), node("b"))).values()) == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("refused", "machine"),
    [
        (pod("p", cpu="8"), node("a")),
        (pod("p"), node("a", taints=[taint()])),
        (pod("p", selector={ZONE: "b"}), node("a")),
        (pod("p", affinity=on_nodes([expression(ZONE, "NotIn", "a")])), node("a")),
        (pod("p", affinity=near(term(ZONE, app="web"))), node("a")),
        (pod("p", spread=[spread(ZONE)]), node("a", zone="")),
    ],
)
def test_filters_keep_pods_away(refused: Pod, machine: NodeView) -> None:
    """Room, taints, labels and rules among pods bind the model as they bind a plan."""
    assert rehearse([refused], machine).left == ("default/p",)
    assert not rehearse([pod("p", tolerations=[tolerate("dedicated")])], machine).left


def test_a_node_with_a_discouraging_taint_comes_last() -> None:
    """PreferNoSchedule is a score, not a rule."""
    discouraged = node("a", cpu="8", memory="32Gi", taints=[taint(effect="PreferNoSchedule")])
    assert on(rehearse([pod("p")], discouraged, node("b"))) == {"p": 1}
    assert on(rehearse([pod("p")], discouraged)) == {"p": 0}


def test_preferred_nodes_come_first() -> None:
    """A preferred term outweighs a larger machine."""
    prefers = pod("p", affinity=on_nodes(prefer=[(1, expression(ZONE, "In", "b"))]))
    assert on(rehearse([prefers], node("a", cpu="8", memory="32Gi"), node("b", zone="b"))) == {"p": 1}


def test_preferred_company_is_sought_and_avoided() -> None:
    """Preferred affinity draws pods together against LeastAllocated, and anti-affinity drives them apart."""
    web = {"app": "web"}
    together = [pod(f"p{at}", labels=web, affinity=near(prefer=[(100, term(HOST, app="web"))])) for at in range(3)]
    assert len(set(on(rehearse(together, node("a"), node("b"))).values())) == 1
    sizes = node("a", cpu="64", memory="256Gi"), node("b")
    apart = [pod(f"p{at}", labels=web, affinity=far(prefer=[(100, term(HOST, app="web"))])) for at in range(2)]
    assert len(set(on(rehearse(apart, *sizes)).values())) == 2


def test_siblings_of_a_replica_set_are_spread_by_default() -> None:
    """Pods that state no spread get the system's: the larger machine does not take them all."""
    machines = node("a", cpu="64", memory="256Gi"), node("b", cpu="32", memory="128Gi", zone="b")
    loose = on(rehearse(pods(6, cpu="100m", memory="128Mi"), *machines))
    siblings = on(rehearse(pods(6, cpu="100m", memory="128Mi", labels={"pod-template-hash": "x"}), *machines))
    assert sorted(loose.values()) == [0, 0, 0, 0, 0, 0]
    assert sorted(siblings.values()) == [0, 0, 0, 1, 1, 1]


def test_a_profile_may_have_no_default_spread() -> None:
    """Then siblings go where most room is, as pods of nobody do."""
    alike = pods(6, cpu="100m", memory="128Mi", labels={"pod-template-hash": "x"})
    demands = [Demand(f"default/{each.metadata.name}", SHAPES.shape(each)) for each in alike]
    stage = Stage(Snapshot(currency="EUR", namespaces={"default": {}}), demands, spread_by_default=False)
    machines = node("a", cpu="64", memory="256Gi"), node("b", cpu="32", memory="128Gi", zone="b")
    assert {place for _, place in stage.rehearse_nodes(machines).order} == {0}


def test_before_1_36_the_balance_of_a_node_counted_and_not_what_changes() -> None:
    """The even node stays even whoever comes; the lean one becomes a little less so, and only the older one minds."""
    even = node("even", pod("x", cpu="3", memory="6Gi"), memory="8Gi")
    lean = node("lean", pod("y", cpu="3500m", memory="3584Mi"), memory="32Gi")
    snapshot = Snapshot(currency="EUR", namespaces={"default": {}}, nodes=(even, lean))
    stage = Stage(snapshot, [Demand("default/web", SHAPES.shape(pod("web", cpu="500m")))])
    older = stage.before_1_36()
    for _ in range(2):  # neither disturbs the other
        assert on(stage.rehearse(())) == {"web": "lean"}
        assert on(older.rehearse(())) == {"web": "even"}


def test_hard_spread_counts_only_machines_that_are_there() -> None:
    """One by one the first zone takes what it can before the second exists; at once both are even."""
    waiting = pods(4, labels={"app": "web"}, spread=[spread(ZONE, app="web")])
    machines = node("a", zone="a"), node("b", zone="b")
    assert sorted(on(rehearse(waiting, *machines)).values()) == [0, 0, 1, 1]
    assert sorted(on(rehearse(waiting, *machines, arrival=Arrival.ONE_BY_ONE)).values()) == [0, 0, 0, 0]


@pytest.mark.parametrize("going", [True, False])
def test_spreads_leave_out_who_is_being_deleted_and_anti_affinity_does_not(going: bool) -> None:  # noqa: FBT001 - a parameter
    """As in kube-scheduler: a pod that goes counts for no spread, and keeps others away until it is gone."""

    def there(old: Pod) -> NodeView:
        return node("a", *([] if going else [old]), departing=[old] if going else [], zone="a")

    spreading = pods(2, cpu="100m", labels={"app": "web"}, spread=[spread(app="web")])
    snapshot = Snapshot(
        currency="EUR", namespaces={"default": {}}, nodes=(there(spreading[0]), node("b", cpu="0", zone="b"))
    )
    assert bool(rehearse(spreading[1:], snapshot=snapshot).left) != going
    alone = pods(2, cpu="100m", labels={"app": "web"}, affinity=far(term(HOST, app="web")))
    snapshot = Snapshot(currency="EUR", namespaces={"default": {}}, nodes=(there(alone[0]),))
    assert rehearse(alone[1:], snapshot=snapshot).left


def test_a_pod_that_waits_for_company_is_tried_again() -> None:
    """A pod whose affinity is met by one that comes later in the queue finds it in the end."""
    follower = pod("first", affinity=near(term(ZONE, app="web")))
    assert not rehearse([follower, pod("second", labels={"app": "web"})], node("a")).left


def test_ports_and_volumes_are_counted() -> None:
    """A port is bound once a node, and a node attaches no more volumes than its driver says."""
    assert len(rehearse(pods(3, ports=[80]), node("a"), node("b")).left) == 1
    view = storage(claim("one", volume="v1"), claim("two", volume="v2"), volume("v1"), volume("v2"), csi_node("old", 1))
    there = Snapshot(currency="EUR", nodes=(node("old"),), namespaces={"default": {}}, volumes=view)
    found = rehearse([pod("p", claims=["one"]), pod("q", claims=["two"])], snapshot=there)
    assert found.left == ("default/q",)


def test_above_a_hundred_nodes_only_some_are_scored() -> None:
    """kube-scheduler is content with half of the nodes, and goes on with the others for the next pod."""
    machines = [node(f"n{at:03}", cpu="8" if at == 130 else "4") for at in range(150)]
    first, second = on(rehearse([pod("p"), pod("q")], *machines)).values()
    assert first == 0
    assert second == 130


def test_the_same_question_has_the_same_answer() -> None:
    """A stage may be asked again and again: nothing of one rehearsal is left for the next."""
    demands = [Demand(f"default/p{at}", SHAPES.shape(each)) for at, each in enumerate(pods(5))]
    stage = Stage(Snapshot(currency="EUR", namespaces={"default": {}}), demands)
    machines = [node("a"), node("b", cpu="2")]
    assert stage.rehearse_nodes(machines) == stage.rehearse_nodes(machines)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("arrival", list(Arrival))
def test_pods_in_another_order_are_bound_as_on_a_stage_of_their_own(seed: int, arrival: Arrival) -> None:
    """What is compiled once serves every order, with machines and without, and nothing of one is left for the next."""
    made = cluster(seed)
    plan = solve(made.snapshot, made.demands)
    stage = Stage(made.snapshot, made.demands)
    for queue in (made.demands, made.demands[::-1], made.demands):
        for claims in (plan.claims, plan.claims[:1], ()):
            alone = Stage(made.snapshot, queue).rehearse(claims, arrival)
            assert stage.queued(queue).rehearse(claims, arrival) == alone


def test_the_short_way_for_plain_pods_ends_where_the_long_one_does() -> None:
    """One by one plain pods ask the newest machine alone; beside a pod with rules they ask all, and nothing changes."""
    sizes = [("1", "2Gi"), ("500m", "4Gi"), ("2", "1Gi"), ("100m", "100Mi")]
    plain = [pod(f"p{at}", cpu=sizes[at % 4][0], memory=sizes[at % 4][1]) for at in range(40)]
    nowhere = pod("nowhere", selector={ZONE: "moon"}, spread=[spread(ZONE, app="web")])
    machines = [node(f"n{at}", cpu=str(2 + at % 3), memory=f"{4 + 4 * (at % 2)}Gi") for at in range(8)]
    short = rehearse(plain, *machines, arrival=Arrival.ONE_BY_ONE)
    long = rehearse([*plain, nowhere], *machines, arrival=Arrival.ONE_BY_ONE)
    assert on(short) == on(long)
    assert (*short.left, "default/nowhere") == long.left


@pytest.mark.parametrize("seed", range(80))
@pytest.mark.parametrize("arrival", list(Arrival))
def test_the_slow_predicates_agree_with_every_binding(seed: int, arrival: Arrival) -> None:
    """On generated clusters every pod is bound where the predicates find nothing against it, and who is left is refused
    by every node in the end.
    """
    made = cluster(seed)
    plan = solve(made.snapshot, made.demands)
    judges = JudgesStage(made.snapshot, made.demands)
    found = Stage(made.snapshot, made.demands).rehearse(plan.claims, arrival)
    planned = [planned_host(judges, each, number) for number, each in enumerate(plan.claims)]
    hosts: dict[str | int, Host] = {host.name: host for host in judges.existing()} | dict(enumerate(planned))
    # A machine that has not come yet is not there to be counted; bindings are looked at when all that matter are.
    scene = judges.scene(list(hosts.values()))
    if arrival is Arrival.AT_ONCE:
        waits = {node_.name for node_ in made.snapshot.nodes if not node_.initialized}
        for key, place in found.order:
            early = place not in waits and isinstance(place, str)
            seen = [host for name, host in hosts.items() if isinstance(name, str) and name not in waits]
            now = dataclasses.replace(scene, hosts=seen) if early else scene
            wrong = refusals(judges.pods[key], hosts[place], now)
            if early and wrong:
                # It may have been bound after all had come.
                wrong = refusals(judges.pods[key], hosts[place], scene)
            assert wrong == [], (key, place)
            hosts[place].pods.append(judges.pods[key])
    else:
        for key, place in found.order:
            hosts[place].pods.append(judges.pods[key])
    for key in found.left:
        for place, host in hosts.items():
            assert refusals(judges.pods[key], host, scene), (key, place)
