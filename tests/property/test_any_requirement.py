"""Requirements with any operators and bounds: what is left of them is decided without a search among open ranges."""

import random

from growth.planning.requirements import ABSENT, ANY, NEVER, any_value, parse
from tests.unit.planning.builders import expression

INTERSECTIONS = 100_000
FURTHEST = 10**18


def test_whatever_is_asked_of_a_label_has_a_value_that_meets_it_or_none() -> None:
    """Of 100,000 random intersections each is never met, is the label's absence, or allows the value that it is given.

    Bounds lie up to 10**18 to both sides, close together, far apart and on values that are excluded.
    """
    rng = random.Random(13)

    def number() -> int:
        near = rng.choice((0, 7, FURTHEST, -FURTHEST, 2**63 - 1))
        return rng.choice((near + rng.randint(-3, 3), rng.randint(-FURTHEST, FURTHEST)))

    seen = {"never": 0, "absent": 0, "value": 0}
    for _ in range(INTERSECTIONS):
        requirement = ANY
        for _ in range(rng.randint(1, 5)):
            operator = rng.choice(("In", "NotIn", "Exists", "Gt", "Lt", "Gte", "Lte"))
            if operator in {"In", "NotIn"}:
                values = [str(abs(number())) for _ in range(rng.randint(1, 4))]
            else:
                values = [] if operator == "Exists" else [str(min(number(), 2**63 - 1))]
            requirement = requirement.intersect(parse(expression("k", operator, *values)))
        if requirement == NEVER:
            seen["never"] += 1
        elif requirement == ABSENT:
            seen["absent"] += 1
        else:
            seen["value"] += 1
            assert requirement.allows(any_value(requirement)), requirement
    assert seen["never"] > INTERSECTIONS / 10
    assert seen["value"] > INTERSECTIONS / 10
