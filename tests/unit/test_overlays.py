"""NodeOverlays: which one decides, what it changes, when it conflicts."""

from typing import Any

import pytest

from growth.api.decoding import convert
from growth.api.instance_types import InstanceType, Offering
from growth.api.kinds import Json
from growth.api.overlays import NodeOverlay
from growth.api.pools import PoolRef
from growth.cluster.snapshot import NodeView, PoolView, Snapshot
from growth.planning.overlays import OverlayProblem, overlaid
from growth.units.money import NANO
from tests.manifests import need, overlay

SMALL = "small"
LARGE = "large"


def kind(name: str, price: int) -> InstanceType:
    offerings = tuple(Offering(zone, terms, price) for zone in ("a", "b") for terms in ("on-demand", "spot"))
    return InstanceType(
        name=name, labels={"kubernetes.io/arch": ("amd64",)}, capacity={"cpu": 1000}, offerings=offerings
    )


def pool(name: str = "default", **more: Any) -> PoolView:
    return PoolView(ref=PoolRef.karpenter(name), instance_types=(kind(SMALL, NANO), kind(LARGE, 2 * NANO)), **more)


def laid(*overlays: Json, pools: tuple[PoolView, ...] = ()) -> tuple[Snapshot, tuple[OverlayProblem, ...]]:
    snapshot = Snapshot(currency="USD", pools=pools or (pool(),))
    return overlaid(snapshot, [convert(each, NodeOverlay) for each in overlays])


def prices(snapshot: Snapshot, name: str = SMALL, *, at: int = 0) -> list[int | None]:
    (found,) = (each for each in snapshot.pools[at].instance_types if each.name == name)
    return [offering.price for offering in found.offerings]


def only(name: str) -> Json:
    return need("node.kubernetes.io/instance-type", "In", name)


def test_without_overlays_nothing_changes() -> None:
    """The very same snapshot comes back."""
    snapshot = Snapshot(currency="USD", pools=(pool(),))
    assert overlaid(snapshot, ()) == (snapshot, ())


@pytest.mark.parametrize(
    ("change", "price"),
    [
        ({"price": "0.25"}, NANO // 4),
        ({"priceAdjustment": "+0.5"}, 3 * NANO // 2),
        ({"priceAdjustment": "-0.5"}, NANO // 2),
        ({"priceAdjustment": "-3"}, 0),
        ({"priceAdjustment": "+10%"}, 11 * NANO // 10),
        ({"priceAdjustment": "-12.5%"}, 7 * NANO // 8),
        ({"priceAdjustment": "-100%"}, 0),
    ],
)
def test_a_price_is_replaced_or_adjusted_and_never_below_nothing(change: Json, price: int) -> None:
    """By a sum or by percent; other types keep theirs."""
    snapshot, problems = laid(overlay("o", only(SMALL), **change))
    assert problems == ()
    assert prices(snapshot) == [price] * 4
    assert prices(snapshot, LARGE) == [2 * NANO] * 4


def test_an_overlay_changes_only_the_offerings_that_it_means() -> None:
    """One zone, or one kind of terms."""
    snapshot, _ = laid(
        overlay(
            "o",
            need("topology.kubernetes.io/zone", "In", "b"),
            need("karpenter.sh/capacity-type", "NotIn", "spot"),
            price="9",
        )
    )
    assert prices(snapshot) == [NANO, NANO, 9 * NANO, NANO]


def test_an_overlay_may_mean_one_pool() -> None:
    """By the pool's label, or by a label of its template; a label that nothing has is not matched."""
    both = (pool("one"), pool("two", labels={"team": "x"}))
    by_pool, _ = laid(overlay("o", need("karpenter.sh/nodepool", "In", "one"), price="9"), pools=both)
    assert prices(by_pool, at=0) == [9 * NANO] * 4
    assert prices(by_pool, at=1) == [NANO] * 4
    by_label, _ = laid(overlay("o", need("team", "In", "x"), price="9"), pools=both)
    assert prices(by_label, at=0) == [NANO] * 4
    assert prices(by_label, at=1) == [9 * NANO] * 4
    by_absence, _ = laid(overlay("o", need("team", "NotIn", "x"), price="9"), pools=both)
    assert prices(by_absence, at=0) == [9 * NANO] * 4
    assert prices(by_absence, at=1) == [NANO] * 4


def test_capacity_is_added_to_the_whole_type() -> None:
    """Where one offering matches; what the cloud knows stays the cloud's."""
    zone = need("topology.kubernetes.io/zone", "In", "b")
    snapshot, _ = laid(overlay("o", only(SMALL), zone, capacity={"example.com/dongle": 3}))
    small, large = snapshot.pools[0].instance_types
    assert small.allocatable == {"cpu": 1000, "example.com/dongle": 3}
    assert large.capacity == {"cpu": 1000}


def test_the_greater_weight_decides() -> None:
    """And what it does not say, the next one may."""
    snapshot, problems = laid(
        overlay("light", price="1.5", capacity={"a.b/c": 1, "a.b/d": 1}, weight=1),
        overlay("heavy", price="9", capacity={"a.b/c": 2}, weight=2),
    )
    assert problems == ()
    assert prices(snapshot) == [9 * NANO] * 4
    assert snapshot.pools[0].instance_types[0].capacity == {"cpu": 1000, "a.b/c": 2, "a.b/d": 1}


def test_equal_weights_on_one_thing_are_a_conflict_and_the_later_is_dropped_whole() -> None:
    """Equal weights go by name, backwards; what the dropped one says elsewhere does not count either."""
    snapshot, problems = laid(overlay("a", price="5", capacity={"a.b/c": 1}), overlay("b", only(SMALL), price="9"))
    assert [(each.overlay, each.reason) for each in problems] == [("a", "Conflict")]
    assert "NodeOverlay b of equal weight (0)" in problems[0].message
    assert prices(snapshot) == [9 * NANO] * 4
    assert prices(snapshot, LARGE) == [2 * NANO] * 4
    assert "a.b/c" not in snapshot.pools[0].instance_types[1].capacity


def test_equal_weights_on_different_things_get_along() -> None:
    """One has the price, the other the capacity; one has this type, the other that."""
    _, problems = laid(
        overlay("a", only(SMALL), price="5"), overlay("b", only(LARGE), price="9"), overlay("c", capacity={"a.b/c": 1})
    )
    assert problems == ()


def test_an_overlay_that_cannot_be_read_is_a_problem_of_its_own() -> None:
    """A server would have refused it; the others count."""
    snapshot, problems = laid(overlay("odd", price="dear", weight=9), overlay("good", price="9"))
    assert [(each.overlay, each.reason) for each in problems] == [("odd", "RuntimeValidation")]
    assert prices(snapshot) == [9 * NANO] * 4


def test_nodes_that_are_there_cost_what_their_pool_says_now() -> None:
    """Otherwise a replacement would be compared with a price that nobody pays."""
    labels = {
        "node.kubernetes.io/instance-type": SMALL,
        "topology.kubernetes.io/zone": "a",
        "karpenter.sh/capacity-type": "spot",
    }
    mine = NodeView(name="mine", labels=labels, pool=PoolRef.karpenter("default"), price=NANO)
    foreign = NodeView(name="foreign", labels=labels, price=NANO)
    snapshot = Snapshot(currency="USD", pools=(pool(),), nodes=(mine, foreign))
    changed, _ = overlaid(snapshot, [convert(overlay("o", price="9"), NodeOverlay)])
    assert [node.price for node in changed.nodes] == [9 * NANO, NANO]


def test_what_was_laid_a_moment_ago_hides_no_change() -> None:
    """An overlay, a type or a label of a pool that is another now counts at once, and so does what was before it."""
    cheap, dear = overlay("a", only(SMALL), price="0.25"), overlay("a", only(SMALL), price="0.75")
    assert prices(laid(cheap)[0]) == [NANO // 4] * 4
    assert prices(laid(dear)[0]) == [3 * NANO // 4] * 4
    assert prices(laid(cheap)[0]) == [NANO // 4] * 4
    own = overlay("b", need("team", "In", "blue"), price="0.5")
    assert prices(laid(own, pools=(pool(labels={"team": "blue"}),))[0]) == [NANO // 2] * 4
    assert prices(laid(own, pools=(pool(labels={"team": "red"}),))[0]) == [NANO] * 4
