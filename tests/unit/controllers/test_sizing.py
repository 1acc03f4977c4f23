"""What a pool lacks, what it has too many of, and which drifted machines are replaced now."""

import msgspec
import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim, NodePool
from growth.api.kinds import Json
from growth.cluster.replacing import being_replaced
from growth.controllers.sizing import decide
from growth.planning.disruption import static, surplus
from growth.planning.disruption.static import Renewal
from growth.planning.disruption.surplus import limit_of, standing
from tests.manifests import claim, node_pool


def pool(replicas: int | None = 3, nodes: int | None = None, mode: str = "Hard") -> NodePool:
    spec: Json = {} if replicas is None else {"replicas": replicas}
    limits = {} if nodes is None else {"nodes": str(nodes)}
    body = node_pool(metadata={"uid": "p"}, limits=limits, disruption={"nodeLimitMode": mode}, **spec)
    return convert(body, NodePool)


def machine(
    name: str,
    *,
    leaving: bool = False,
    up: bool = True,
    replaces: str = "",
    drifted: bool = False,
    born: str = "2026-01-01T10:00:00Z",
) -> NodeClaim:
    meta: Json = {"uid": f"uid-{name}", "labels": {names.NODE_POOL_LABEL: "default"}, "creationTimestamp": born}
    if leaving:
        meta["deletionTimestamp"] = "2026-01-01T11:00:00Z"
    if replaces:
        meta["annotations"] = {names.REPLACES_ANNOTATION: replaces}
    conditions = [
        {"type": kind, "status": "True", "reason": kind, "message": ""}
        for kind, holds in ((names.INITIALIZED, up), (names.DRIFTED, drifted))
        if holds
    ]
    return convert(claim(name, metadata=meta, status={"conditions": conditions}), NodeClaim)


def named(claims: tuple[NodeClaim, ...]) -> list[str]:
    return [each.metadata.name for each in claims]


# --- counting


def test_what_leaves_or_is_replaced_does_not_stay() -> None:
    """In a static pool a replacement that is there has its predecessor's place, whether or not it is up."""
    claims = [machine("a"), machine("b", leaving=True), machine("c"), machine("d", replaces="c", up=False)]
    found = standing(pool(), claims, frozenset())
    assert (named(found.staying), named(found.replaced), named(found.leaving)) == (["a", "d"], ["c"], ["b"])
    assert found.count == 4


def test_elsewhere_a_move_counts_as_long_as_its_mark_stands() -> None:
    """A replacement that is up and a node that is not tainted: the move was taken back, and both stay."""
    old, new = machine("old"), machine("new", replaces="old")
    assert named(standing(pool(None, 5), [old, new], frozenset({"old"})).staying) == ["new"]
    assert named(standing(pool(None, 5), [old, new], frozenset()).staying) == ["old", "new"]
    coming = machine("new", replaces="old", up=False)
    assert named(standing(pool(None, 5), [old, coming], frozenset()).staying) == ["new"]


def test_a_younger_claim_of_the_name_is_not_what_was_replaced() -> None:
    """Names may come again; a replacement is never older than what it replaces."""
    new = machine("new", replaces="old", born="2026-01-01T10:00:00Z")
    assert being_replaced([new, machine("old", born="2026-01-01T09:00:00Z")]) == {"old"}
    assert being_replaced([new, machine("old", born="2026-01-01T10:30:00Z")]) == set()
    assert being_replaced([machine("new", replaces="old,other", leaving=True), machine("old")]) == set()


@pytest.mark.parametrize(
    ("replicas", "nodes", "there", "leaving", "lacks", "too_many"),
    [
        (3, None, 1, 0, 2, 0),
        (3, None, 1, 2, 2, 0),
        (3, 3, 1, 1, 1, 0),
        (3, 3, 1, 2, 0, 0),
        (3, 2, 1, 0, 1, 0),
        (3, None, 5, 0, 0, 2),
        (5, 3, 4, 0, 0, 1),
        (0, None, 2, 0, 0, 2),
        (None, 3, 1, 0, 0, 0),
        (None, 3, 5, 1, 0, 2),
        (None, None, 9, 0, 0, 0),
    ],
)
def test_what_is_lacking_and_what_is_too_many(
    *, replicas: int | None, nodes: int | None, there: int, leaving: int, lacks: int, too_many: int
) -> None:
    """Replicas and limits.nodes together; what leaves counts against the limit, and is no surplus."""
    claims = [machine(f"s{each}") for each in range(there)]
    claims += [machine(f"l{each}", leaving=True) for each in range(leaving)]
    asked = pool(replicas, nodes)
    found = standing(asked, claims, frozenset())
    assert (surplus.missing(asked, found), surplus.too_many(asked, found)) == (lacks, too_many)


# --- drift


def renewal(asked: NodePool, *claims: NodeClaim, budget: int | None = None) -> tuple[list[str], str]:
    found = standing(asked, claims, frozenset())
    drifted = [each for each in found.staying if any(told.type == names.DRIFTED for told in each.status.conditions)]
    chosen: Renewal = static.renewal(asked, found, drifted, budget=budget)
    return named(chosen.first), chosen.gone.metadata.name if chosen.gone is not None else ""


OLD = tuple(machine(name, drifted=True) for name in "abc")


def test_replacements_come_first_within_budget_and_limit() -> None:
    """As many as both leave; without either, all."""
    assert renewal(pool(), *OLD) == (["a", "b", "c"], "")
    assert renewal(pool(), *OLD, budget=2) == (["a", "b"], "")
    assert renewal(pool(), *OLD, budget=0) == ([], "")
    assert renewal(pool(nodes=4), *OLD) == (["a"], "")
    assert renewal(pool(nodes=3, mode="Soft"), *OLD, budget=1) == (["a"], "")
    assert renewal(pool(), machine("a"), machine("b"), machine("c")) == ([], "")


def test_a_soft_limit_is_passed_once_for_each_that_goes() -> None:
    """A replacement that failed and is still there holds up the next for the same machine, and no other."""
    asked = pool(nodes=3, mode="Soft")
    assert renewal(asked, *OLD) == (["a", "b", "c"], "")
    failed = machine("n", replaces="a", up=False, leaving=True)
    assert renewal(asked, *OLD, failed) == (["b", "c"], "")
    assert renewal(pool(nodes=4, mode="Soft"), *OLD, failed) == (["a", "b", "c"], "")


def test_a_full_hard_limit_deletes_one_and_waits() -> None:
    """Only while nothing leaves, nothing is being replaced, and all that stay are up."""
    assert renewal(pool(nodes=3), *OLD) == ([], "a")
    assert renewal(pool(nodes=3), *OLD, budget=0) == ([], "")
    assert renewal(pool(nodes=3), OLD[0], OLD[1], machine("l", leaving=True)) == ([], "")
    assert renewal(pool(nodes=3), OLD[0], OLD[1], machine("n", up=False)) == ([], "")
    assert renewal(pool(nodes=4), *OLD, machine("n", replaces="c", up=False)) == ([], "")
    assert renewal(pool(5, nodes=3), *OLD) == ([], "a")


def test_a_pool_that_grows_or_shrinks_does_that_first() -> None:
    """Nothing is replaced while the number is not right."""
    assert renewal(pool(4), *OLD) == ([], "")
    assert renewal(pool(2), *OLD) == ([], "")


def test_the_condition_says_when_machines_go_first() -> None:
    """A Hard limit that leaves no room beside the replicas, and nothing else."""
    assert "one at a time" in decide.why_in_place(pool(nodes=3))
    assert "2 machines are kept of 3" in decide.why_in_place(pool(nodes=2))
    for other in (pool(), pool(nodes=4), pool(nodes=3, mode="Soft"), pool(None, 3)):
        assert decide.why_in_place(other) == ""


# --- names


def test_names_are_the_same_for_whoever_looks_at_the_same_claims() -> None:
    """Also when some of them were created meanwhile, in their order; other claims give other names."""
    claims = [machine("a"), machine("b")]
    wanted = decide.refill_names(pool(), claims, 3, taken=())
    assert len(set(wanted)) == 3
    assert wanted == decide.refill_names(pool(), reversed(claims), 3, taken=())
    for made in (1, 2):
        there = [*claims, *(machine(name) for name in wanted[:made])]
        assert decide.refill_names(pool(), there, 3 - made, taken=()) == wanted[made:]
    assert not set(wanted) & set(decide.refill_names(pool(), claims[:1], 3, taken=()))


def test_what_takes_the_place_of_a_claim_that_went_has_another_name() -> None:
    """However equal what is left is to what was there before."""
    claims = [machine("a")]
    names_ = [decide.refill_names(pool(), claims, 1, taken=(), ends=ends)[0] for ends in range(3)]
    names_ += [decide.replacement_name(pool(), claims[0], ends=ends) for ends in range(3)]
    assert len(set(names_)) == 6


def test_a_name_that_is_taken_is_not_used() -> None:
    """Whoever has it: a claim of another pool, or one made by hand."""
    (first,) = decide.refill_names(pool(), [], 1, taken=())
    (second,) = decide.refill_names(pool(), [], 1, taken={first})
    assert first != second


def test_names_are_as_those_of_all_claims() -> None:
    """The pool's name and five characters, at most 63 in all."""
    long = msgspec.structs.replace(pool(), metadata=msgspec.structs.replace(pool().metadata, name="x" * 80))
    for name in (*decide.refill_names(long, [], 2, taken=()), decide.replacement_name(long, machine("a"))):
        assert len(name) == 63
    assert decide.replacement_name(pool(), machine("a")) != decide.replacement_name(pool(), machine("b"))
    assert decide.replacement_name(pool(), machine("a")).startswith("default-")


@pytest.mark.parametrize("nodes", ["many", "-1", -1])
def test_a_limit_that_cannot_be_meant_bounds_nothing_here(nodes: str | int) -> None:
    """The pool's condition tells of it; nobody's machine goes for a typing error, or for a word that is «no limit» elsewhere."""
    broken = convert(node_pool(limits={"nodes": nodes}), NodePool)
    assert limit_of(broken) is None
    assert surplus.too_many(broken, standing(broken, [machine("a")], frozenset())) == 0
