"""Whether orders are within limits and caps: what exists, what is reserved and what is asked for, at the most that it may be."""

import dataclasses
import datetime as dt
from typing import Any

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pools import PoolRef
from growth.api.reservations import RELEASE, Reservation, ReservationError, live, parse, printed
from growth.cluster.snapshot import PoolView
from growth.controllers.provisioning.booking import (
    Caps,
    Prices,
    UnknownUsage,
    afforded,
    book_caps,
    book_pool,
    spending,
)
from growth.controllers.provisioning.claims import Order
from growth.planning.plan import PlannedClaim
from growth.providers.catalogues import builtin
from tests import manifests
from tests.manifests import claim, need, node_pool

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
TYPES = builtin("kwok").types
POOL = PoolRef.karpenter("default")
VIEWS = {POOL: PoolView(ref=POOL, instance_types=TYPES)}
SMALL = "c-2x-amd64-linux"
LARGE = "c-8x-amd64-linux"
OWN: Json = {names.NODE_POOL_LABEL: "default"}
DEAREST = max(offering.price or 0 for kind in TYPES for offering in kind.offerings)


def order(name: str, *types: str, price: int = 50, max_price: int = 60, least: int = 0) -> Order:
    planned = PlannedClaim(
        pool=POOL,
        instance_type=types[0] if types else SMALL,
        zone="test-zone-a",
        capacity_type="on-demand",
        price=price,
        max_price=max_price,
        lowest_max_price=least or price,
        instance_types=types or (SMALL,),
        requirements={},
        labels={},
        requests={},
        least_requests={},
        pods=("default/p",),
        next_best=None,
    )
    pool = convert(node_pool(), NodePool)
    return Order(
        name=name,
        pool=pool,
        view=VIEWS[POOL],
        planned=planned,
        pods=planned.pods,
        types=types or (SMALL,),
        max_price=max_price,
    )


def limited(**limits: str) -> NodePool:
    return convert(node_pool(limits=limits), NodePool)


def existing(name: str, *types: str, **more: Json) -> NodeClaim:
    return convert(
        claim(name, need(names.INSTANCE_TYPE_LABEL, "In", *(types or (SMALL,))), labels=OWN, **more), NodeClaim
    )


def names_of(orders: tuple[Order, ...]) -> list[str]:
    return [each.name for each in orders]


# --- pools


def test_nodes_are_counted_with_what_exists_and_what_is_reserved() -> None:
    """A reserved name that exists counts once; how old it is by somebody's clock does not matter."""
    booking = book_pool(
        limited(nodes="4"),
        [order(each) for each in "xyz"],
        reserved={
            "a": Reservation(at=NOW, instance_type=SMALL),
            "b": Reservation(at=NOW - RELEASE - dt.timedelta(minutes=10), instance_type=SMALL),
        },
        claims=[existing("a")],
        nodes=[],
        types=TYPES,
        now=NOW,
    )
    assert names_of(booking.orders) == ["x", "y"]
    assert [(each.name, why) for each, why in booking.refused] == [
        ("z", "NodePool default has no room left: limit nodes 4, used 4")
    ]
    assert sorted(booking.reserved) == ["b", "x", "y"]


def test_nodes_that_no_pool_made_are_not_counted() -> None:
    """A Node of no pool, and one of another, take nothing of the limit; one of the pool without a claim does."""
    own, other = {names.NODE_POOL_LABEL: "default"}, {names.NODE_POOL_LABEL: "other"}
    for labels, bought in (({}, ["x"]), (other, ["x"]), (own, [])):
        booking = book_pool(
            limited(nodes="2"),
            [order("x")],
            reserved={},
            claims=[existing("a")],
            nodes=[convert(manifests.node("n", labels=labels), Node)],
            types=TYPES,
            now=NOW,
        )
        assert names_of(booking.orders) == bought


def test_resources_are_counted_at_the_largest_type_that_is_listed() -> None:
    """Whichever is bought, the limit holds; and the reservation says how much."""
    booking = book_pool(
        limited(cpu="12"),
        [order("x", SMALL, LARGE), order("y", SMALL), order("z", LARGE)],
        reserved={},
        claims=[existing("a", SMALL)],
        nodes=[],
        types=TYPES,
        now=NOW,
    )
    assert names_of(booking.orders) == ["x", "y"]
    assert booking.reserved["x"].capacity == {"cpu": "8"}
    assert booking.reserved["y"].capacity == {"cpu": "2"}


def test_what_cannot_be_read_is_not_nothing() -> None:
    """A quantity of a claim or of a reservation that nobody understands stops purchases in that pool."""
    broken = existing("a", status={"capacity": {"cpu": "many"}})
    with pytest.raises(UnknownUsage, match="NodePool default"):
        book_pool(limited(cpu="9"), [order("x")], reserved={}, claims=[broken], nodes=[], types=TYPES, now=NOW)
    odd = {"b": Reservation(at=NOW, capacity={"cpu": "few"})}
    with pytest.raises(UnknownUsage, match="NodePool default"):
        book_pool(limited(cpu="9"), [order("x")], reserved=odd, claims=[], nodes=[], types=TYPES, now=NOW)


# --- the annotation


def test_the_annotation_is_read_as_it_is_written() -> None:
    """Names, times and sizes survive; an empty one reserves nothing."""
    told = {"a": Reservation(at=NOW, instance_type=SMALL, capacity={"cpu": "2"}, price=7)}
    assert parse(printed(told)) == told
    assert parse("") == {}
    assert live(told, NOW + RELEASE) == told
    assert live(told, NOW + RELEASE + dt.timedelta(seconds=1)) == {}


@pytest.mark.parametrize("text", ["{", "[]", '{"a":{}}', '{"a":{"at":"soon"}}'])
def test_an_annotation_that_cannot_be_read_is_an_error(text: str) -> None:
    """How much is reserved is unknown then."""
    with pytest.raises(ReservationError, match="remove it if nobody is about to buy machines"):
        parse(text)


# --- caps


def capped(
    *orders: Order, claims: tuple[NodeClaim, ...] = (), reserved: int = 0, **caps: int
) -> tuple[list[str], list[str]]:
    spent = book_caps(
        Caps(**caps),
        [spending(each) for each in orders],
        reserved={f"r{at}": Reservation(at=NOW, price=100) for at in range(reserved)},
        claims=claims,
        pools=VIEWS,
        types=TYPES,
        currency="USD",
        now=NOW,
    )
    booking = afforded(orders, spent)
    return [f"{each.name}@{each.max_price}" for each in booking.orders], [why for _, why in booking.refused]


def test_the_cap_of_nodes_counts_all_claims_and_names() -> None:
    """And the refusal names it."""
    taken, refused = capped(order("x"), order("y"), claims=(existing("a"),), reserved=1, nodes=3)
    assert taken == ["x@60"]
    assert refused == ["the cluster's cap --max-nodes 3 is reached: 3 machines exist or are on their way"]


def test_the_cap_of_money_lets_a_claim_cost_what_is_left() -> None:
    """Booked at the most that it may cost; near the cap it may cost less, and its planned price must fit."""
    taken, refused = capped(order("x"), order("y"), order("z"), reserved=1, hourly=215)
    assert taken == ["x@60", "y@55"]
    assert len(refused) == 1
    assert refused[0].startswith("the cluster's cap --max-hourly ")


def test_a_claim_whose_prices_the_cloud_does_not_know_must_fit_whole() -> None:
    """It cannot be told what is left, so it is bought at the most that it may cost or not at all."""
    order_of_their_own = order("x", least=60)
    assert capped(order_of_their_own, reserved=1, hourly=160) == (["x@60"], [])
    taken, refused = capped(order_of_their_own, reserved=1, hourly=155)
    assert (taken, len(refused)) == ([], 1)


def test_a_claim_that_minvalues_make_dear_is_refused_and_not_bought_with_less_choice() -> None:
    """Below the price at which `minValues` hold the cap lets nothing be bought, and the refusal says why."""
    flexible = order("x", least=58)
    assert capped(flexible, reserved=1, hourly=159) == (["x@59"], [])
    taken, refused = capped(flexible, reserved=1, hourly=157)
    assert taken == []
    assert refused[0].startswith("the cluster's cap --max-hourly ")
    assert refused[0].endswith("would be (minValues of NodePool default)")


def test_a_price_that_is_not_known_is_the_dearest() -> None:
    """Never nothing: a type that is no longer sold, a claim without types."""
    prices = Prices(VIEWS, TYPES, "USD")
    assert prices.dearest == DEAREST
    assert prices.of(existing("a", "no-such-type")) == DEAREST
    gone = convert(claim("b", labels={**OWN, names.INSTANCE_TYPE_LABEL: "no-such-type"}), NodeClaim)
    assert prices.of(gone) == DEAREST
    assert prices.of(convert(claim("c", labels=OWN), NodeClaim)) == DEAREST


def test_a_claim_costs_at_most_what_it_promises_until_it_is_bought() -> None:
    """Then it costs what its labels say, whatever was promised."""
    prices = Prices(VIEWS, TYPES, "USD")
    promise = {names.MAX_PRICE_ANNOTATION: "0.0000005"}
    promised = convert(
        claim("a", need(names.INSTANCE_TYPE_LABEL, "In", LARGE), labels=OWN, metadata={"annotations": promise}),
        NodeClaim,
    )
    assert prices.of(promised) == 500
    bought = {
        **OWN,
        names.INSTANCE_TYPE_LABEL: SMALL,
        names.CAPACITY_TYPE_LABEL: "on-demand",
        names.ZONE_LABEL: "test-zone-a",
    }
    launched = convert(claim("a", labels=bought, metadata={"annotations": promise}), NodeClaim)
    assert prices.of(launched) > 500


# --- pools of a fixed size, and what replaces


def fixed(replicas: int, **limits: str) -> NodePool:
    return convert(node_pool(replicas=replicas, limits=limits), NodePool)


def replacing_order(name: str, *gone: str) -> Order:
    return dataclasses.replace(order(name), replaces=gone)


def book(pool: NodePool, *orders: Order, claims: tuple[NodeClaim, ...] = (), **reserved: Reservation) -> list[str]:
    return names_of(book_pool(pool, orders, reserved=reserved, claims=claims, nodes=(), types=TYPES, now=NOW).orders)


def test_a_pool_of_a_fixed_size_gets_no_more_than_its_replicas() -> None:
    """Claims and names that somebody else has reserved count; those that leave do not."""
    leaving = existing("gone", metadata={"deletionTimestamp": "2026-01-01T11:00:00Z", "labels": OWN})
    wanted = [order(each) for each in "xyz"]
    assert book(fixed(2), *wanted) == ["x", "y"]
    assert book(fixed(3), *wanted, claims=(existing("a"), leaving)) == ["x", "y"]
    assert book(fixed(3), *wanted, claims=(existing("a"),), b=Reservation(at=NOW)) == ["x"]
    assert book(fixed(0), *wanted) == []


def test_its_node_limit_holds_beside_its_replicas() -> None:
    """Machines that leave count against limits.nodes until they are gone, so the refill waits for them."""
    leaving = existing("gone", metadata={"deletionTimestamp": "2026-01-01T11:00:00Z", "labels": OWN})
    assert book(fixed(2, nodes="2"), order("x"), claims=(existing("a"), leaving)) == []
    assert book(fixed(2, nodes="3"), order("x"), claims=(existing("a"), leaving)) == ["x"]


def test_a_replacement_comes_beside_the_replicas() -> None:
    """The machine that it replaces still stands; when both do, the pool lacks none and has none too many."""
    pool, old = fixed(1, nodes="2"), existing("old")
    assert book(pool, replacing_order("new", "old"), claims=(old,)) == ["new"]
    assert book(pool, order("x"), claims=(old,), new=Reservation(at=NOW, replaces=("old",))) == []
    both = (old, existing("new", metadata={"annotations": {names.REPLACES_ANNOTATION: "old"}, "labels": OWN}))
    assert book(fixed(1, nodes="3"), order("x"), claims=both) == []
    assert book(fixed(2, nodes="3"), order("x"), claims=both) == ["x"]


def test_nothing_of_a_static_pool_is_replaced_twice() -> None:
    """Whoever comes second finds the name that is reserved for it, or its replacement."""
    old, pool = existing("old"), fixed(1)
    assert (
        book(pool, replacing_order("mine", "old"), claims=(old,), theirs=Reservation(at=NOW, replaces=("old",))) == []
    )
    both = (old, existing("theirs", metadata={"annotations": {names.REPLACES_ANNOTATION: "old"}, "labels": OWN}))
    assert book(pool, replacing_order("mine", "old"), claims=both) == []


@pytest.mark.parametrize("oldest", ["protected", "leaving", "gone"])
def test_what_replaces_a_replacement_comes_once_whatever_becomes_of_the_first(oldest: str) -> None:
    """It is asked for in the place of both; a late cache asks again when the first has gone meanwhile."""
    pool, leaving = fixed(1), {"deletionTimestamp": "2026-01-01T11:00:00Z"} if oldest == "leaving" else {}
    there = () if oldest == "gone" else (existing("first", metadata={**leaving, "labels": OWN}),)
    second, third = replacement("second", "first"), replacement("third", "second,first")
    assert book(pool, replacing_order("third", "second", "first"), claims=(*there, second)) == ["third"]
    assert book(pool, replacing_order("again", "second", "first"), claims=(*there, second, third)) == []


@pytest.mark.parametrize(("mode", "bought"), [("Hard", []), ("Soft", ["new"])])
def test_only_what_replaces_may_pass_a_soft_limit(mode: str, bought: list[str]) -> None:
    """At the limit a replacement is bought in Soft mode; nothing else is, in neither."""
    full = node_pool(limits={"nodes": "1"}, disruption={"nodeLimitMode": mode})
    pool = convert(full, NodePool)
    assert book(pool, replacing_order("new", "old"), claims=(existing("old"),)) == bought
    assert book(pool, order("x"), claims=(existing("old"),)) == []


def replacement(name: str, gone: str, **metadata: Any) -> NodeClaim:
    return existing(name, metadata={"annotations": {names.REPLACES_ANNOTATION: gone}, "labels": OWN, **metadata})


def test_a_soft_limit_is_passed_by_what_goes_and_no_more() -> None:
    """One machine comes for one that goes: no second one while the first that failed is there, none for another pool's."""
    pool = convert(node_pool(limits={"nodes": "2"}, disruption={"nodeLimitMode": "Soft"}), NodePool)
    old, other = existing("old"), existing("other")
    leaving = {"deletionTimestamp": "2026-01-01T11:00:00Z"}
    assert book(pool, replacing_order("new", "old"), claims=(old, other)) == ["new"]
    assert book(pool, replacing_order("x", "old"), replacing_order("y", "old"), claims=(old, other)) == ["x"]
    assert book(pool, replacing_order("x", "old"), replacing_order("y", "other"), claims=(old, other)) == ["x", "y"]
    failed = replacement("failed", "old", **leaving)
    assert book(pool, replacing_order("new", "old"), claims=(old, other, failed)) == []
    assert book(pool, replacing_order("new", "other"), claims=(old, other, failed)) == ["new"]
    done = replacement("done", "old")
    gone = existing("old", metadata={**leaving, "labels": OWN})
    assert book(pool, replacing_order("new", "other"), claims=(gone, other, done)) == ["new"]
    assert book(pool, replacing_order("new", "elsewhere"), claims=(old, other)) == []
    assert book(pool, replacing_order("new", "elsewhere"), claims=(old,)) == ["new"]
    crowded = (old, other, existing("third"))
    assert book(pool, replacing_order("new", "old"), claims=crowded) == ["new"], "it makes it no worse"


def test_a_soft_limit_is_passed_for_the_pools_own_machines_alone() -> None:
    """What replaces another pool's machine would stay beyond the limit for good; so would two for one."""
    pool = convert(node_pool(limits={"nodes": "1"}, disruption={"nodeLimitMode": "Soft"}), NodePool)
    assert book(pool, replacing_order("new", "elsewhere"), claims=(existing("old"),)) == []
    assert book(pool, replacing_order("new", "old", "elsewhere"), claims=(existing("old"),)) == ["new"]
    both = (replacing_order("new", "old"), replacing_order("newer", "old"))
    assert book(pool, *both, claims=(existing("old"),)) == ["new"]


def test_a_pool_beyond_its_soft_limit_may_replace_what_it_has() -> None:
    """As many as go; a lowered limit is brought about by another rule, and what is being replaced is done once."""
    pool = convert(node_pool(limits={"nodes": "1"}, disruption={"nodeLimitMode": "Soft"}), NodePool)
    there = (existing("a"), existing("b"))
    orders = (replacing_order("x", "a", "b"), replacing_order("y", "a", "b"), replacing_order("z", "a", "b"))
    assert book(pool, *orders, claims=there) == ["x", "y"]
    assert book(pool, replacing_order("x", "a"), replacing_order("y", "b"), claims=there) == ["x", "y"]
