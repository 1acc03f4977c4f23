"""What was there before a machine, as its claim tells it."""

import datetime as dt

from growth.api import names
from growth.api.karpenter import NodeClaim, NodeClaimSpec, NodeClassReference
from growth.api.meta import ObjectMeta
from growth.cluster.replacing import GIVEN_UP_FOR, MOST_GIVEN_UP, given_up, giving_up, kind_of

NOW = dt.datetime(2026, 11, 18, tzinfo=dt.UTC)


def claim(kind: str, *before: str, born: dt.datetime | None = NOW) -> NodeClaim:
    labels = {names.INSTANCE_TYPE_LABEL: kind, names.CAPACITY_TYPE_LABEL: "spot"} if kind else {}
    annotations = {names.GIVEN_UP_ANNOTATION: ",".join(before)} if before else {}
    uses = NodeClassReference(group="example.com", kind="Class", name="any")
    return NodeClaim(
        metadata=ObjectMeta(name="it", labels=labels, annotations=annotations, creation_timestamp=born),
        spec=NodeClaimSpec(node_class_ref=uses, requirements=()),
    )


def test_a_claim_tells_what_went_for_it_and_what_had_gone_for_that() -> None:
    """Each kind once; those that go now first."""
    going = [claim("large", "huge/spot"), claim("medium", "large/spot")]
    told = {names.GIVEN_UP_ANNOTATION: "large/spot,medium/spot,huge/spot"}
    assert giving_up(going, NOW) == told
    made = claim("small", *told[names.GIVEN_UP_ANNOTATION].split(","))
    assert given_up(made, NOW) == ("large/spot", "medium/spot", "huge/spot")


def test_after_an_hour_it_is_forgotten() -> None:
    """And so it is where nobody knows how old the claim is."""
    old = claim("large", "huge/spot")
    assert given_up(old, NOW + GIVEN_UP_FOR - dt.timedelta(seconds=1)) == ("huge/spot",)
    assert given_up(old, NOW + GIVEN_UP_FOR) == ()
    assert giving_up([old], NOW + GIVEN_UP_FOR) == {names.GIVEN_UP_ANNOTATION: "large/spot"}
    assert given_up(claim("large", "huge/spot", born=None), NOW) == ()


def test_of_a_machine_of_which_little_is_known_nothing_is_told() -> None:
    assert kind_of({names.INSTANCE_TYPE_LABEL: "large"}) == ""
    assert giving_up([claim("")], NOW) == {}


def test_a_long_line_is_cut_at_its_beginning() -> None:
    long = [f"kind-{at}/spot" for at in range(MOST_GIVEN_UP)]
    kinds = giving_up([claim("large", *long)], NOW)[names.GIVEN_UP_ANNOTATION].split(",")
    assert (kinds[0], kinds[-1], len(kinds)) == ("large/spot", "kind-98/spot", MOST_GIVEN_UP)
