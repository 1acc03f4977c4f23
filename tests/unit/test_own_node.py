"""Which of several Nodes with one provider ID is the machine's own."""

import datetime as dt
from typing import Any

import pytest

from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.cluster.machines import machines, own_node

BORN = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
OWN = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "web", "uid": "u"}
OTHERS = {**OWN, "name": "other", "uid": "other"}
ROLE = {**OTHERS, "apiVersion": "v1", "kind": "ConfigMap"}


def claim(*, node: str = "") -> NodeClaim:
    meta = {"name": "web", "uid": "u", "creationTimestamp": BORN.isoformat()}
    spec = {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "requirements": []}
    return convert({"metadata": meta, "spec": spec, "status": {"providerID": "p://1", "nodeName": node}}, NodeClaim)


def node(name: str, *, ready: str = "True", owner: Any = None, after: float = 60.0) -> Node:
    made = BORN + dt.timedelta(seconds=after)
    meta = {
        "name": name,
        "uid": name,
        "creationTimestamp": made.isoformat(),
        "ownerReferences": [owner] if owner else [],
    }
    conditions = [{"type": "Ready", "status": ready}]
    body = {"metadata": meta, "spec": {"providerID": "p://1"}, "status": {"conditions": conditions}}
    return convert(body, Node)


@pytest.mark.parametrize(
    ("nodes", "own"),
    [
        pytest.param((), "", id="none"),
        pytest.param((node("a"),), "a", id="one"),
        pytest.param((node("a"), node("b")), "", id="nothing tells them apart"),
        pytest.param((node("a"), node("web")), "web", id="called as the claim"),
        pytest.param((node("a"), node("web", ready="False")), "web", id="called as the claim, coming up"),
        pytest.param((node("a", owner=OWN), node("web")), "a", id="owned by the claim"),
        pytest.param((node("a"), node("web", owner=OTHERS)), "a", id="the other is another claim's"),
        pytest.param((node("a"), node("b", owner=ROLE)), "", id="the other is owned by something else"),
        pytest.param((node("a"), node("web", after=-1.0)), "a", id="the other was there before the claim"),
        pytest.param((node("a"), node("b", after=0.0)), "", id="the other came in the claim's second"),
        pytest.param((node("a"), node("b", ready="Unknown")), "a", id="the other's kubelet is silent"),
        pytest.param((node("a"), node("web", ready="Unknown")), "a", id="called as the claim and silent"),
        pytest.param(
            (node("a"), node("b"), node("web", ready="Unknown")), "", id="called as the claim and silent, of three"
        ),
        pytest.param((node("a"), node("b", ready="False")), "", id="the other comes up"),
        pytest.param((node("a", ready="False"), node("b", ready="Unknown")), "", id="one comes up, one is silent"),
        pytest.param((node("a"), node("b"), node("c", ready="Unknown")), "", id="two speak"),
        pytest.param((node("a", after=-1.0), node("b", owner=OTHERS)), "", id="none can be"),
    ],
)
def test_nodes_are_told_apart(nodes: tuple[Node, ...], own: str) -> None:
    """In whatever order they come; by no more than what is certain."""
    for some in (nodes, nodes[::-1]):
        found = own_node(claim(), some)
        assert (found.metadata.name if found is not None else "") == own


def test_the_registered_node_stays_the_claims() -> None:
    """What the claim names counts more than anything that comes later."""
    found = own_node(claim(node="a"), (node("a", ready="Unknown"), node("web", owner=OWN)))
    assert found is not None
    assert found.metadata.name == "a"


def test_plans_take_the_same_node_for_the_machine() -> None:
    """The other one is a Node without a claim, whatever their names."""
    found = machines([node("a"), node("web")], [claim()], {})
    assert [(each.node and each.node.metadata.name, each.claim is not None) for each in found] == [
        ("a", False),
        ("web", True),
    ]
