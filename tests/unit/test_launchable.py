"""Launch flexibility: what a claim lists can be launched, for every key with `minValues` so many values of it."""

import datetime as dt
from typing import Any

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.instance_types import Catalogue
from growth.api.karpenter import NodePool
from growth.api.kinds import Json
from growth.api.pods import Pod
from growth.cluster.assemble import Picture
from growth.cluster.shapes import Shapes
from growth.controllers.provisioning.demand import Marked, Sorts
from growth.controllers.provisioning.passes import Answer, Question, answered
from growth.planning.solve import Options
from growth.providers.catalogues import builtin
from tests.manifests import need, node_pool, pod
from tests.unit.launching import enough, launchable, orders, values_by_choice, written

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
SHAPES = Shapes()
SERVED = frozenset({("karpenter.kwok.sh", "KWOKNodeClass")})
MARK: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
KWOK = builtin("kwok")
FAMILY = "karpenter.kwok.sh/instance-family"
TYPE = names.INSTANCE_TYPE_LABEL
# The document's own example.
EXAMPLE = (need(FAMILY, "In", "c", "m", "r", minValues=2), need(TYPE, "Exists", minValues=10))

packers = pytest.mark.parametrize("packer", ["cost", "first-fit"])


def asking(*needs: Json, **spec: Any) -> Json:
    return node_pool(template={"requirements": [*needs]}, **spec)


def asked(*pods: Json, pool: Json, catalogue: Catalogue = KWOK, **options: Any) -> Answer:
    picture = Picture(
        catalogue=catalogue,
        now=NOW,
        pending=tuple(SHAPES.keep(convert({**each, "status": MARK}, Pod)) for each in pods),
        pools=[convert(pool, NodePool)],
    )
    marked = Marked(now=100.0, age=1.0, since={}, sorts=frozenset())
    return answered(
        Question(picture=picture, marked=marked, sort=Sorts().of, served=SERVED, options=Options(**options))
    )


@packers
@pytest.mark.parametrize("terms", ["spot", "on-demand"])
def test_the_documents_example_can_launch_ten_types_of_two_families(terms: str, packer: str) -> None:
    """At least so many types and families can be launched as `minValues` asks for, counted in two ways."""
    pool = asking(*EXAMPLE, need(names.CAPACITY_TYPE_LABEL, "In", terms))
    (order,) = orders(asked(pod("p", cpu="1"), pool=pool, packer=packer))
    made, raw = written(order)
    assert len(values_by_choice(made, KWOK, TYPE)) >= 10
    assert len(values_by_choice(made, KWOK, FAMILY)) >= 2
    found = enough(raw, KWOK.types, order.pool)
    assert all(have >= wanted for have, wanted in found.values()), found
    assert {name for name, _, _ in launchable(raw, KWOK.types)} == set(order.types)
