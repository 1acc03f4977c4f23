"""The claim of a planned machine: what it says, and how it stays small."""

import dataclasses

import msgspec
import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.instance_types import InstanceType, Offering
from growth.api.karpenter import NodePool
from growth.api.pools import PoolRef
from growth.cluster.snapshot import PoolView
from growth.controllers.provisioning.claims import (
    BODY_BYTES,
    Order,
    body,
    claim,
    claim_name,
    expressed,
    is_relaxed,
    short_list,
)
from growth.planning.plan import PlannedClaim
from growth.planning.requirements import ABSENT, ANY, Requirement, Requirements, one_of
from growth.ports import SystemRandom
from growth.providers.catalogues import builtin
from tests.manifests import node_pool

TYPES = builtin("kwok").types
POOL = PoolRef.karpenter("default")


def order(
    *,
    types: tuple[str, ...] = ("c-2x-amd64-linux",),
    requirements: Requirements | None = None,
    relaxed: bool = False,
    pool: str = "default",
) -> Order:
    planned = PlannedClaim(
        pool=POOL,
        instance_type=types[0],
        zone="test-zone-a",
        capacity_type="on-demand",
        price=50_000_000,
        max_price=62_500_000,
        lowest_max_price=50_000_000,
        instance_types=types,
        requirements=requirements or {names.CAPACITY_TYPE_LABEL: one_of("on-demand")},
        labels={},
        requests={"cpu": 1000, "memory": 1 << 30, "pods": 1},
        least_requests={"cpu": 1000, "memory": 1 << 30, "pods": 1},
        pods=("default/p",),
        next_best=None,
        min_values_relaxed=relaxed,
    )
    return Order(
        name=f"{pool}-abcde",
        pool=convert(node_pool(pool), NodePool),
        view=PoolView(ref=POOL, instance_types=TYPES),
        planned=planned,
        pods=planned.pods,
        types=types,
        max_price=62_500_000,
    )


@pytest.mark.parametrize(
    ("need", "words"),
    [
        (one_of("b", "a"), ["In a,b"]),
        (ABSENT, ["DoesNotExist "]),
        (ANY, ["Exists "]),
        (Requirement(True, frozenset({"x"})), ["NotIn x"]),
        (Requirement(True, frozenset({"x"}), present=True), ["NotIn x", "Exists "]),
        (Requirement(True, frozenset(), 3, None), ["Gte 3"]),
        (Requirement(True, frozenset({"4"}), 3, 9), ["NotIn 4", "Gte 3", "Lte 9"]),
    ],
)
def test_requirements_in_the_words_of_the_api(need: Requirement, words: list[str]) -> None:
    """Each says exactly what the plan means; one that has no single word is several."""
    assert [f"{each.operator} {','.join(each.values)}" for each in expressed("key", need)] == words


def test_a_claim_lists_its_types_cheapest_first() -> None:
    """In the order of the plan, which is that of prices."""
    made = claim(order(types=("m-2x-amd64-linux", "c-2x-amd64-linux")), currency="USD")
    listed = next(each for each in made.spec.requirements if each.key == names.INSTANCE_TYPE_LABEL)
    assert listed.values == ("m-2x-amd64-linux", "c-2x-amd64-linux")
    assert made.metadata.annotations[names.MAX_PRICE_ANNOTATION] == "0.0625"


def test_the_name_of_a_node_is_never_required() -> None:
    """No server accepts such a claim."""
    made = claim(order(requirements={names.HOSTNAME_LABEL: one_of("n")}), currency="USD")
    assert [each.key for each in made.spec.requirements] == [names.INSTANCE_TYPE_LABEL]


def test_relaxed_min_values_are_lowered_to_what_is_listed() -> None:
    """And the claim says that they were."""
    needs = {names.INSTANCE_TYPE_LABEL: dataclasses.replace(ANY, min_values=5)}
    two = {names.INSTANCE_TYPE_LABEL: dataclasses.replace(ANY, min_values=2)}
    made = claim(order(requirements=needs, relaxed=True), currency="USD")
    assert [each.min_values for each in made.spec.requirements] == [1]
    assert made.metadata.annotations[names.MIN_VALUES_RELAXED_ANNOTATION] == "true"
    assert is_relaxed(made)
    enough = claim(order(types=("c-2x-amd64-linux", "s-2x-amd64-linux"), requirements=two), currency="USD")
    assert [each.min_values for each in enough.spec.requirements] == [2]
    assert not is_relaxed(enough)
    dear = dataclasses.replace(
        order(types=("c-2x-amd64-linux", "s-2x-amd64-linux"), requirements=two), max_price=40_000_000
    )
    assert [each.min_values for each in claim(dear, currency="USD").spec.requirements] == [1]


def test_relaxed_min_values_count_only_what_the_requirement_allows() -> None:
    """A machine that its pods tie to one zone has one zone to choose from, whatever zones its types are sold in."""
    needs = {names.ZONE_LABEL: dataclasses.replace(one_of("test-zone-a"), min_values=2)}
    made = claim(order(requirements=needs, relaxed=True), currency="USD")
    zone = next(each for each in made.spec.requirements if each.key == names.ZONE_LABEL)
    assert (zone.values, zone.min_values) == (("test-zone-a",), 1)


def test_a_claim_stays_small_by_listing_fewer_types() -> None:
    """The dearest are left out, but for those that minValues need."""
    many = tuple(f"a-type-with-quite-a-long-name-as-some-clouds-have-them-{at:02}" for at in range(60))
    wanted = order(types=many)
    listed = short_list(wanted.planned, pool=wanted.pool, view=wanted.view, currency="USD")
    assert listed == many[: len(listed)]
    assert 10 < len(listed) < 60
    small = dataclasses.replace(wanted, types=listed)
    assert len(msgspec.json.encode(body(claim(small, currency="USD")))) <= BODY_BYTES
    families = [kind_of(name, family="last" if at == 59 else "first") for at, name in enumerate(many)]
    view = dataclasses.replace(wanted.view, instance_types=tuple(families))

    def kept(key: str, least: int) -> tuple[str, ...]:
        rigid = order(types=many, requirements={key: dataclasses.replace(ANY, min_values=least)})
        return short_list(rigid.planned, pool=rigid.pool, view=view, currency="USD")

    assert kept(names.INSTANCE_TYPE_LABEL, 50) == many[:50]
    few = kept(names.KWOK_INSTANCE_FAMILY_LABEL, 2)
    assert few == (*many[: len(few) - 1], many[59])
    assert 10 < len(few) <= len(listed)


def kind_of(name: str, *, family: str) -> InstanceType:
    offering = Offering("test-zone-a", names.ON_DEMAND, 50_000_000)
    room = {"cpu": 4000, "memory": 4 << 30, "pods": 110}
    return InstanceType(name, {names.KWOK_INSTANCE_FAMILY_LABEL: (family,)}, room, (offering,))


def test_names_fit_where_names_of_nodes_must() -> None:
    """A long pool's name is cut, and never to something that ends in a dash."""
    assert len(claim_name("p" * 80, SystemRandom())) == 63
    name = claim_name("p" * 56 + "-" + "q" * 20, SystemRandom())
    assert "--" not in name


def test_a_price_that_the_cloud_does_not_know_is_no_bound_for_it() -> None:
    """With prices of people's own the claim lists the types that may be bought, and says no price."""
    plain = order()
    repriced = dataclasses.replace(plain, planned=dataclasses.replace(plain.planned, repriced=True))
    assert names.MAX_PRICE_ANNOTATION in claim(plain, currency="USD").metadata.annotations
    assert names.MAX_PRICE_ANNOTATION not in claim(repriced, currency="USD").metadata.annotations
