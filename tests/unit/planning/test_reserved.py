"""Capacity that is reserved and paid for already."""

from growth.api import names
from tests.unit.planning.builders import TERMS, kind, need, offering, plan, pod, pods, pool

PAID = kind(
    "paid",
    4,
    offerings=[offering("a", 0.0, names.RESERVED, reservation="r1", places=2), offering("a", 0.4), offering("b", 0.4)],
)


def test_reserved_capacity_is_used_first() -> None:
    """What is paid for already costs least."""
    assert plan(pool("default", PAID), pod()).claim.capacity_type == names.RESERVED


def test_a_reservation_has_so_many_places() -> None:
    """Two places are two machines; the third is bought."""
    made = plan(pool("default", PAID), pods(9))
    assert sorted(claim.capacity_type for claim in made.claims) == [names.ON_DEMAND, names.RESERVED, names.RESERVED]


def test_an_empty_reservation_is_no_offering() -> None:
    """A reservation without a free place is passed over."""
    none = kind("none", 4, offerings=[offering("a", 0.0, names.RESERVED, reservation="r1"), offering("b", 0.4)])
    assert plan(pool("default", none), pod()).claim.capacity_type == names.ON_DEMAND


def test_an_empty_reservation_is_no_choice() -> None:
    """Terms on which nothing can be had do not count for `minValues`."""
    none = kind("none", 4, offerings=[offering("a", 0.0, names.RESERVED, reservation="r1"), offering("b", 0.4)])
    assert plan(pool("default", none, needs=[need(TERMS, "Exists", least=2)]), pod()).unplaced == ["pod"]


def test_a_pool_may_leave_reservations_alone() -> None:
    """A pool for on-demand alone does not touch reserved places."""
    made = plan(pool("default", PAID, needs=[need(TERMS, "In", names.ON_DEMAND)]), pod())
    assert made.claim.capacity_type == names.ON_DEMAND


def test_a_pool_for_reserved_capacity_alone_stops_with_it() -> None:
    """A pool that admits only reserved capacity buys nothing else."""
    made = plan(pool("default", PAID, needs=[need(TERMS, "In", names.RESERVED)]), pods(12))
    assert made.sizes == [4, 4]
    assert len(made.unplaced) == 4


def test_what_a_reservation_cannot_hold_goes_to_the_next_pool_in_the_same_pass() -> None:
    """A spent reservation is known to be spent: the pool of lower weight takes the rest at once."""
    first = pool("first", PAID, needs=[need(TERMS, "In", names.RESERVED)], weight=10)
    made = plan(first, pool("second", PAID, needs=[need(TERMS, "In", names.ON_DEMAND)]), pods(9))
    assert [(claim.pool.name, claim.capacity_type) for claim in made.claims] == [
        ("first", names.RESERVED),
        ("first", names.RESERVED),
        ("second", names.ON_DEMAND),
    ]


def test_types_that_share_a_reservation_share_its_places() -> None:
    """One reservation for two types is counted once."""
    shared = [
        kind(name, 4, offerings=[offering("a", 0.0, names.RESERVED, reservation="r1", places=1), offering("a", 0.4)])
        for name in ("x", "y")
    ]
    made = plan(pool("default", *shared), pods(8))
    assert sorted(claim.capacity_type for claim in made.claims) == [names.ON_DEMAND, names.RESERVED]


def test_pods_may_ask_for_reserved_capacity() -> None:
    """A pod's own selector can insist on a reservation."""
    made = plan(pool("default", PAID), pods(12, selector={TERMS: names.RESERVED}))
    assert made.sizes == [4, 4]
