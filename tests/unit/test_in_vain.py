"""What a pool's annotation about machines in vain lets plans buy, and what claims say of the pods that they are for."""

import datetime as dt
from typing import Final

import pytest

from growth.api import names, vain
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClaimStatus, NodeClassReference
from growth.api.meta import Condition, ObjectMeta
from growth.api.vain import BoughtFor, InVain
from growth.cluster.snapshot import BackedOff
from growth.cluster.sorts import Sorts
from growth.cluster.vain import annotated, backed_off, rest_of
from tests.unit.planning.builders import SHAPES, plan, pod, pods, pool

NOW: Final = dt.datetime(2030, 1, 7, 8, tzinfo=dt.UTC)
HOUR: Final = dt.timedelta(hours=1)


def entry(rounds: int, *, until: dt.datetime = NOW + HOUR, basis: str = "a/b") -> InVain:
    return InVain(rounds=rounds, why="why", claim="last", node="host", basis=basis, at=NOW, until=until)


def held(known: InVain, *bought: BoughtFor, now: dt.datetime = NOW, whole: bool = True) -> BackedOff | None:
    meta = ObjectMeta(name="default", annotations={names.IN_VAIN_ANNOTATION: vain.printed({"sort": known}) or ""})
    spec = NodeClaimSpec(node_class_ref=NodeClassReference(group="g", kind="k", name="d"), requirements=())
    claims = [NodeClaim(metadata=ObjectMeta(name="one", annotations=vain.annotation(bought)), spec=spec)]
    return backed_off(meta, "a/c" if known.basis == "a/other" else "a/b", claims, now, whole=whole).get("sort")


@pytest.mark.parametrize(
    ("known", "bought", "now", "probe", "rested"),
    [
        pytest.param(entry(1), (), NOW, True, False, id="the second round is one machine"),
        pytest.param(entry(1), (BoughtFor(sort="sort", rounds=1),), NOW, False, False, id="it is under way"),
        pytest.param(
            entry(1), (BoughtFor(sort="sort", rounds=0),), NOW, True, False, id="one of the first round is not it"
        ),
        pytest.param(entry(2), (), NOW, False, False, id="a rest"),
        pytest.param(entry(2), (), NOW + HOUR, True, True, id="its end"),
        pytest.param(
            entry(2), (BoughtFor(sort="sort", rounds=2),), NOW + HOUR, False, False, id="the probe is under way"
        ),
        pytest.param(entry(2, basis="x/b"), (), NOW, True, True, id="the pool changed"),
        pytest.param(entry(2, basis="a/x"), (), NOW, True, True, id="what is sold changed"),
    ],
)
def test_one_machine_is_bought_when_it_may(
    known: InVain, bought: tuple[BoughtFor, ...], now: dt.datetime, *, probe: bool, rested: bool
) -> None:
    """After the first round, after a rest and after a change; and none while one is under way."""
    found = held(known, *bought, now=now)
    assert found is not None
    assert (found.probe, found.rested, found.rounds) == (probe, rested, known.rounds)


@pytest.mark.parametrize(("seconds", "probe"), [(30, False), (90, True)])
def test_a_machine_that_was_judged_holds_back_no_other(seconds: int, *, probe: bool) -> None:
    """The room of one that is tried may be taken by other pods; a minute after it is up the next one may be bought."""
    meta = ObjectMeta(name="default", annotations={names.IN_VAIN_ANNOTATION: vain.printed({"sort": entry(2)}) or ""})
    spec = NodeClaimSpec(node_class_ref=NodeClassReference(group="g", kind="k", name="d"), requirements=())
    up = Condition(type=names.INITIALIZED, status="True", last_transition_time=NOW + HOUR)
    bought = vain.annotation([BoughtFor(sort="sort", rounds=2)])
    claim = NodeClaim(
        metadata=ObjectMeta(name="one", annotations=bought), spec=spec, status=NodeClaimStatus(conditions=(up,))
    )
    found = backed_off(meta, "a/b", [claim], NOW + HOUR + dt.timedelta(seconds=seconds))["sort"]
    assert (found.probe, found.rested) == (probe, probe)


def test_those_who_only_read_do_not_compare_what_is_sold() -> None:
    """Else a list of prices that differs from the cloud's own would end every rest on paper."""
    found = held(entry(2, basis="a/x"), whole=False)
    assert found is not None
    assert not found.probe


def test_what_nobody_tries_again_is_forgotten() -> None:
    """A day after its rest."""
    assert held(entry(2), now=NOW + 26 * HOUR) is None


def test_rests_double() -> None:
    """From the first one, and not for ever."""
    assert [rest_of(rounds, 60.0) for rounds in (1, 2, 3, 4, 7, 50)] == [60.0, 60.0, 120.0, 240.0, 1920.0, 1920.0]


def test_a_claim_says_for_which_pods_it_was_bought() -> None:
    """Pods of one spec are one sort, whatever they are called; the sort's rounds come from its pool."""
    first, second = SHAPES.shape(pod("a", labels={"pod-template-hash": "1"})), SHAPES.shape(pod("b", cpu="2"))
    again = SHAPES.shape(pod("c", labels={"pod-template-hash": "2"}))
    sorts = Sorts()
    view = pool(in_vain={sorts.digest(second): BackedOff(rounds=3, why="", probe=True)})
    meta = ObjectMeta(name="one", annotations=annotated(view, (first, again, second), sorts))
    assert set(vain.bought_for(meta)) == {
        BoughtFor(sort=sorts.digest(first), rounds=0, pods=2),
        BoughtFor(sort=sorts.digest(second), rounds=3, pods=1),
    }


def test_annotations_that_nobody_can_read_hold_nothing_back() -> None:
    """Of a claim and of a pool."""
    assert vain.parse("{") == {}
    assert vain.parse('{"sort": {"rounds": "many"}}') == {}
    for text in ("", "x", "x:y", "x:1", "x:1:y", ":1:1"):
        assert vain.bought_for(ObjectMeta(name="one", annotations={names.BOUGHT_FOR_ANNOTATION: text})) == ()


def test_annotations_stay_small() -> None:
    """A claim of a hundred sorts and a pool of a thousand."""
    many = vain.annotation([BoughtFor(sort=f"{at:010}", pods=at) for at in range(100)])
    assert len(many[names.BOUGHT_FOR_ANNOTATION]) < 600
    assert f"{99:010}:0:99" in many[names.BOUGHT_FOR_ANNOTATION]
    entries = {f"{at:010}": entry(2, until=NOW) for at in range(1000)}
    assert len(vain.parse(vain.printed(entries) or "")) == vain.MOST_ENTRIES


def test_a_plan_buys_one_machine_for_a_sort_that_is_tried_and_all_for_others() -> None:
    """The first pod of the sort; the others are told why they wait."""
    asked, other = pods(5, "tried", cpu="1500m"), pods(5, "other", cpu="1200m")
    sort = Sorts().digest(SHAPES.shape(asked[0]))
    for probe, bought in ((True, 6), (False, 5)):
        made = plan(pool(in_vain={sort: BackedOff(rounds=1, why="the Node was wrong", probe=probe)}), asked, other)
        placed = [key for claim in made.claims for key in claim.pods]
        assert len(placed) == bought
        assert {each.reasons[0].message for each in made.plan.unplaced} == {"the Node was wrong"}


def test_another_pool_is_not_held_back() -> None:
    """What came in vain in one pool may be had in another."""
    sort = Sorts().digest(SHAPES.shape(pod()))
    wrong = pool("first", weight=10, in_vain={sort: BackedOff(rounds=2, why="", probe=False)})
    assert plan(wrong, pool("second"), pod(), judged=False).claim.pool.name == "second"
