"""Packing for the least cost: which machines, how far from the cheapest, and what a claim lists."""

import dataclasses
from collections.abc import Callable, Sequence

import pytest

from growth.api.pods import Pod
from growth.planning import cost, patterns
from growth.planning.cost import Search
from growth.planning.drawing import Filler
from growth.planning.market import Floats
from growth.planning.plan import PlannedClaim
from growth.planning.rehearsal import Arrival, Rehearsal, Stage
from growth.planning.solve import Options
from tests.unit.planning.builders import (
    EURO,
    HOST,
    LARGE,
    TYPE,
    ZONE,
    Planned,
    far,
    kind,
    need,
    node,
    offering,
    plan,
    pod,
    pods,
    pool,
    spread,
    term,
)

COST = Options(packer="cost")


def types_of(made: Planned) -> list[str]:
    return [claim.instance_type for claim in made.claims]


def test_machines_fit_what_is_asked_for_altogether() -> None:
    """Pods that need cpu and pods that need memory share machines on which both run out."""
    thin, fat, even = (
        kind("thin", 8, "8Gi", price=1.0),
        kind("fat", 2, "32Gi", price=1.0),
        kind("even", 8, "32Gi", price=1.5),
    )
    wanted = [*pods(8, cpu="900m", memory="100Mi"), *pods(7, "m", cpu="100m", memory="4Gi")]
    made = plan(pool("default", thin, fat, even), wanted, options=COST)
    assert types_of(made) == ["even"]


def test_one_giant_is_not_bought_where_small_machines_are_cheaper() -> None:
    """First fit fills the largest type that there is; its price by the core is another matter."""
    small, giant = kind("small", 4, "16Gi", price=0.1), kind("giant", 64, "256Gi", price=10.0)
    made = plan(pool("default", small, giant), pods(30, cpu="1", memory="1Gi"), options=COST)
    assert set(types_of(made)) == {"small"}


def test_a_cost_of_a_node_makes_fewer_machines() -> None:
    """The objective counts it for each machine."""
    small, large = kind("small", 4, "16Gi", price=0.1), kind("large", 16, "64Gi", price=0.5)
    wanted = pods(12, cpu="1", memory="1Gi")
    dear = plan(pool("default", small, large), wanted, options=Options(packer="cost", node_cost=EURO))
    assert types_of(dear) == ["large"]
    assert dear.plan.objective == dear.plan.planned + EURO


def test_a_claim_lists_what_costs_at_most_a_quarter_more() -> None:
    """A stock-out falls through to the next type, within reason."""
    near, far = kind("near", 4, "16Gi", price=0.12), kind("far", 4, "16Gi", price=0.13)
    made = plan(pool("default", kind("best", 4, "16Gi", price=0.1), near, far), pod(cpu="3"), options=COST)
    assert made.claim.instance_types == ("best", "near")
    wide = plan(
        pool("default", kind("best", 4, "16Gi", price=0.1), near, far),
        pod(cpu="3"),
        options=Options(packer="cost", flexibility=130),
    )
    assert wide.claim.instance_types == ("best", "near", "far")


def test_min_values_are_listed_whatever_they_cost() -> None:
    """Flexibility that the pool asks for comes before the price of the fallbacks."""
    dear = kind("dear", 4, "16Gi", price=1.0)
    wanted = pool("default", kind("best", 4, "16Gi", price=0.1), dear, needs=[need(TYPE, "Exists", least=2)])
    assert plan(wanted, pod(cpu="3"), options=COST).claim.instance_types == ("best", "dear")


def test_the_bound_holds_for_one_pod() -> None:
    """One pod on its cheapest machine: whole pods are counted, so the bound is exact."""
    made = plan(pool("default", LARGE), pod(cpu="10"), options=COST).plan
    assert made.lower_bound is not None
    assert made.objective is not None
    assert 0 <= made.objective - made.lower_bound <= made.objective // 1000


def test_room_on_nodes_that_are_there_has_no_price() -> None:
    """What fits on them costs nothing, and the bound knows that."""
    made = plan(pool(), node("n", cpu="8"), pods(4), options=COST).plan
    assert (made.hourly, made.lower_bound) == (0, 0)


def test_the_bound_says_which_rules_it_leaves_out() -> None:
    """With the number of pods that they are about."""
    wanted = [pod(f"s{i}", labels={"app": "a"}, spread=[spread(ZONE, app="a")]) for i in range(3)]
    assert plan(pool(), wanted, options=COST).plan.bound_ignores == ("zone spread of 3 pods",)


def test_pods_that_keep_apart_are_bounded_by_their_number() -> None:
    """Each needs a machine of its own: that rule is not left out."""
    wanted = [pod(f"p{i}", labels={"app": "a"}, affinity=far(term(HOST, app="a"))) for i in range(5)]
    made = plan(pool(), wanted, options=COST).plan
    assert len(made.claims) == 5
    assert made.bound_ignores == ()
    assert made.lower_bound is not None
    assert made.lower_bound >= made.hourly * 99 // 100


def test_limits_are_named_beside_the_bound() -> None:
    """A limit can only make a plan dearer."""
    made = plan(pool(limits={"cpu": "100"}), pods(3), options=COST).plan
    assert made.bound_ignores == ("limits of NodePool default",)


def test_first_fit_has_no_bound() -> None:
    """It is not made for its cost."""
    made = plan(pool(), pods(3)).plan
    assert (made.objective, made.lower_bound, made.rehearsed) == (None, None, None)
    assert made.planned == made.hourly


def test_a_search_that_would_take_too_long_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pods times machines are counted before: first fit's plan is the answer, with its bound, and nobody says rehearsed."""
    small, giant = kind("small", 4, "16Gi", price=0.1), kind("giant", 64, "256Gi", price=10.0)
    wanted = (pool("default", small, giant), pods(30, cpu="1", memory="1Gi"))
    monkeypatch.setattr(cost, "MOST_WORK", 29)
    made = plan(*wanted, options=COST).plan
    assert [claim.instance_type for claim in made.claims] == types_of(plan(*wanted))
    assert made.rehearsed is None
    assert made.lower_bound is not None
    assert 0 < made.lower_bound <= made.hourly
    monkeypatch.setattr(cost, "MOST_WORK", 30)
    assert plan(*wanted, options=COST).plan.rehearsed is not None


def test_what_is_left_over_gets_its_machine_in_the_same_pass() -> None:
    """The price that is told is that of the plan with the machines that the rehearsal adds."""
    sizes = [("700m", "100Mi"), ("100m", "700Mi"), ("300m", "300Mi"), ("1500m", "2Gi")]
    wanted = [pod(f"p{i:02}", cpu=sizes[i % 4][0], memory=sizes[i % 4][1]) for i in range(60)]
    types = (kind("a", 2, "4Gi", price=0.1), kind("b", 4, "8Gi", price=0.21), kind("c", 8, "16Gi", price=0.45))
    made = plan(pool("default", *types), wanted, options=COST).plan
    assert made.rehearsed == made.hourly
    assert not made.unplaced


def test_pods_are_told_their_machines_where_that_is_much_cheaper() -> None:
    """Small pods come first and are spread over all machines; then none has room for a large one."""
    machines = pool("default", kind("k", 4, "16Gi", price=0.1))
    wanted = [pod(f"a{i:02}", cpu="900m", memory="1Gi") for i in range(40)]
    wanted += [pod(f"z{i:02}", cpu="3500m", memory="1Gi") for i in range(10)]
    made = plan(machines, wanted, options=COST).plan
    alone = plan(machines, wanted, options=dataclasses.replace(COST, nominate=False)).plan
    assert made.told
    assert not alone.told
    assert made.hourly <= alone.hourly
    assert (made.rehearsed, made.unplaced) == (made.hourly, ())


def leave_over(
    monkeypatch: pytest.MonkeyPatch, who: Callable[[Sequence[PlannedClaim], Arrival, bool], Sequence[str]]
) -> None:
    """From now on kube-scheduler would also leave those over, by the machines, how they come and whether pods are told."""
    rehearse = Stage.rehearse

    def unlucky(
        self: Stage, claims: Sequence[PlannedClaim], arrival: Arrival = Arrival.AT_ONCE, *, told: bool = False
    ) -> Rehearsal:
        found = rehearse(self, claims, arrival, told=told)
        return dataclasses.replace(found, left=(*found.left, *who(claims, arrival, told)))

    monkeypatch.setattr(Stage, "rehearse", unlucky)


@pytest.mark.parametrize(("first_fit", "told"), [(1.55, True), (1.66, False)])
def test_pods_are_told_their_machines_where_a_bad_day_would_cost_more_than_first_fit(
    monkeypatch: pytest.MonkeyPatch, *, first_fit: float, told: bool
) -> None:
    """A pod that is left over when machines come one by one is bearable, unless first fit's plan is cheaper then."""
    small, giant = kind("small", 4, "16Gi", price=0.1), kind("giant", 64, "256Gi", price=first_fit)
    wanted = (pool("default", small, giant), pods(60, cpu="1", memory="1Gi"))
    assert (plan(*wanted).plan.hourly, plan(*wanted, options=COST).plan.told) == (first_fit * 10**9, False)
    monkeypatch.setattr(cost, "few", lambda _: 1)
    leave_over(
        monkeypatch,
        lambda claims, arrival, told: (
            claims[0].pods[:1] if arrival is Arrival.ONE_BY_ONE and len(claims) > 1 and not told else ()
        ),
    )
    made = plan(*wanted, options=COST).plan
    assert (len(made.claims), made.told) == (15, told)


def test_pods_are_told_their_machines_though_some_would_be_left_over_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under rules kube-scheduler's order may leave some over whatever they are told: fewer than if they were told nothing.

    Machines that come one by one would hold all; that does not count where they may also come at once.
    """
    machines = pool("default", kind("k", 4, "16Gi", price=0.1))
    wanted = [pod(f"a{i:03}", cpu="900m", memory="1Gi") for i in range(248)]
    wanted += [pod(f"z{i:03}", cpu="3500m", memory="1Gi") for i in range(62)]
    wanted += [pod(f"r{i}", cpu="100m", labels={"app": "r"}, spread=[spread(HOST, app="r")]) for i in range(3)]
    leave_over(monkeypatch, lambda claims, _, told: claims[0].pods[:3] if told else ())
    made = plan(machines, wanted, options=COST).plan
    assert (made.told, len(made.claims)) == (True, 124)


def test_pods_are_told_nothing_where_kube_scheduler_packs_well_enough() -> None:
    """Telling is a write a pod."""
    made = plan(pool("default", kind("k", 4, "16Gi", price=0.1)), pods(40, cpu="1", memory="4Gi"), options=COST).plan
    assert not made.told


def test_a_dearer_zone_is_used_only_where_a_spread_asks_for_it() -> None:
    """Zones differ in price; pods without rules go to the cheapest."""
    zones = kind("k", 4, "16Gi", offerings=[offering("a", price=0.1), offering("b", price=0.2)])
    made = plan(pool("default", zones), pods(6), options=COST).plan
    assert {claim.zone for claim in made.claims} == {"a"}
    wanted = [pod(f"s{i}", labels={"app": "a"}, spread=[spread(ZONE, app="a")]) for i in range(4)]
    made = plan(pool("default", zones), wanted, options=COST).plan
    assert {claim.zone for claim in made.claims} == {"a", "b"}


def rehearsed(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[PlannedClaim], Arrival]]:
    """What is rehearsed from now on, and how machines come then."""
    seen: list[tuple[Sequence[PlannedClaim], Arrival]] = []
    rehearse = Stage.rehearse

    def heard(
        self: Stage, claims: Sequence[PlannedClaim], arrival: Arrival = Arrival.AT_ONCE, *, told: bool = False
    ) -> Rehearsal:
        seen.append((claims, arrival))
        return rehearse(self, claims, arrival, told=told)

    monkeypatch.setattr(Stage, "rehearse", heard)
    return seen


SIZES = [("700m", "100Mi"), ("100m", "700Mi"), ("300m", "300Mi"), ("1500m", "2Gi"), ("1100m", "3Gi")]
MACHINES = (kind("a", 2, "4Gi", price=0.1), kind("b", 4, "8Gi", price=0.21), kind("c", 8, "16Gi", price=0.45))


def spread_out(number: int) -> list[Pod]:
    return [
        pod(
            f"p{i:03}",
            cpu=SIZES[i % 5][0],
            memory=SIZES[i % 5][1],
            labels={"app": "a"},
            spread=[spread(HOST, app="a", skew=2)],
        )
        for i in range(number)
    ]


def test_a_small_batch_under_rules_is_rehearsed_a_few_times_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rehearsals under rules take most of the time, and a small batch is to be planned in a moment."""
    seen = rehearsed(monkeypatch)
    plan(pool("default", *MACHINES), spread_out(60), options=COST)
    assert 0 < len(seen) <= cost.BOUND_FOR_FEW


def test_machines_that_come_by_themselves_are_not_rehearsed_where_pods_under_rules_are_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every one of them would be tried by everybody."""
    seen = rehearsed(monkeypatch)
    monkeypatch.setattr(cost, "MOST_TURNS", 60)
    plan(pool("default", *MACHINES), spread_out(60), options=COST)
    assert {arrival for _, arrival in seen} == {Arrival.AT_ONCE}


def test_first_fit_leaves_rehearsals_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often machines would have to be added to its plan."""
    seen = rehearsed(monkeypatch)
    monkeypatch.setattr(Search, "_try", lambda *_, **__: None)
    plan(pool("default", *MACHINES), spread_out(60), options=dataclasses.replace(COST, nominate=False))
    assert 0 < len(seen) <= cost.BOUND_FOR_FEW // 2


def test_the_same_machines_are_not_rehearsed_for_two_proposals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several ways to propose find the same plan where there is little to choose."""
    seen = rehearsed(monkeypatch)
    only = kind("only", 16, "64Gi", price=0.4)
    plan(pool("preferred", only, weight=50, limits={"cpu": "1"}), pool("default", only), pods(8), options=COST)
    at_once = [claims for claims, arrival in seen if arrival is Arrival.AT_ONCE]
    assert len(at_once) == 2  # first fit's own, and the first proposal's


def test_fillings_by_new_prices_are_made_as_often_as_pods_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One machine for all takes a step a pod in every round: after three steps a pod no round is begun."""
    made: list[Filler] = []
    valued = Filler.value

    def value(self: Filler, worth: Floats) -> None:
        made.append(self)
        valued(self, worth)

    monkeypatch.setattr(Filler, "value", value)
    wanted = [pod(f"p{i:02}", cpu=f"{100 + i}m", memory=f"{200 + 7 * i % 90}Mi") for i in range(40)]
    plan(pool("default", *MACHINES, kind("d", 32, "64Gi", price=1.7)), wanted, options=COST)
    assert made
    assert max(filler.steps for filler in made) <= (patterns.STEPS + 1) * 40 + patterns.ROUNDS
