"""Time that is paid for is used: empty machines stay until shortly before their paid time ends, where that is asked for."""

import datetime as dt

import msgspec

from growth.api import names
from growth.api.growthpools import GROWTH_POOL, GrowthPool
from growth.api.instance_types import Billing, InstanceType, Offering
from growth.api.karpenter import NODE_CLAIM, NodeClaim
from growth.cluster.paying import LEAD, paid_until, too_early
from growth.planning.emptying import PoolNode, plan_scale_down

START = dt.datetime(2026, 11, 16, 9, 7, 30, tzinfo=dt.UTC)
HOUR = dt.timedelta(hours=1)


def types(billing: Billing | None) -> dict[str, InstanceType]:
    offering = Offering("fsn1", names.ON_DEMAND, 1, billing=billing)
    return {"cx33": InstanceType("cx33", {}, {}, (offering, Offering("hel1", names.ON_DEMAND, 1)))}


def claim(zone: str = "fsn1") -> NodeClaim:
    labels = {names.INSTANCE_TYPE_LABEL: "cx33", names.ZONE_LABEL: zone, names.CAPACITY_TYPE_LABEL: names.ON_DEMAND}
    raw = {
        "metadata": {"name": "a", "creationTimestamp": START.isoformat(), "labels": labels},
        "spec": {"nodeClassRef": {"group": "g", "kind": "k", "name": "n"}, "requirements": []},
    }
    return msgspec.convert(raw, NODE_CLAIM.type)


def test_paid_time_ends_with_the_quantum_that_has_begun() -> None:
    """Counted from the purchase; exactly at its end the next one has begun."""
    hourly = types(Billing(3600))
    for passed, end in ((0, 1), (59, 1), (60, 2), (61, 2), (150, 3)):
        assert paid_until(claim(), hourly, START + dt.timedelta(minutes=passed)) == START + end * HOUR


def test_where_nobody_knows_how_time_is_billed_none_is_waited_for() -> None:
    """A cloud that bills by the second, a machine whose offering is not known, a claim from the future."""
    assert paid_until(claim(), types(None), START) is None
    assert paid_until(claim("mars"), types(Billing(3600)), START) is None
    assert paid_until(claim(), types(Billing(3600)), START - HOUR) is None
    assert not too_early(None, START)


def test_a_machine_goes_shortly_before_its_end() -> None:
    """Early enough to be gone in time."""
    end = START + HOUR
    assert too_early(end, end - LEAD - dt.timedelta(seconds=1))
    assert not too_early(end, end - LEAD)


def pool(after: str) -> GrowthPool:
    spec = {"serverTypes": [{"name": "CX33", "max": 3}], "scaleDownAfter": after}
    return msgspec.convert({"metadata": {"name": "default"}, "spec": spec}, GROWTH_POOL.type)


def test_an_empty_node_of_a_growth_pool_is_marked_so_that_it_goes_in_time() -> None:
    """Until then it is free for pods, and says why it stays; its mark runs out within the last minutes of its hour."""
    hourly = types(Billing(3600))
    node = PoolNode(name="a", pool="default", type="cx33", paid_until=lambda at: paid_until(claim(), hourly, at))
    early = plan_scale_down([node], {"default": pool("10m")}, now=START + dt.timedelta(minutes=5))
    assert early.mark == ()
    assert early.kept == {"a": "it is paid for until 2026-11-16T10:07:30Z"}
    late = plan_scale_down([node], {"default": pool("10m")}, now=START + dt.timedelta(minutes=48))
    (marking,) = late.mark
    assert START + HOUR - LEAD <= marking.at < START + HOUR


def test_without_the_setting_nothing_waits() -> None:
    """A node is marked as soon as it is empty."""
    node = PoolNode(name="a", pool="default", type="cx33")
    assert len(plan_scale_down([node], {"default": pool("10m")}, now=START).mark) == 1
