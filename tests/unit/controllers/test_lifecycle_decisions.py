"""What a claim needs next, as a function of the claim, its Nodes and the time."""

import datetime as dt
from typing import Any

import pytest

from growth.api import names
from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim
from growth.api.nodes import Node
from growth.controllers.lifecycle import decide, edits
from growth.controllers.lifecycle.decide import (
    GiveUp,
    Hold,
    Initialize,
    Launch,
    Nothing,
    Patience,
    Register,
    Tell,
    Wait,
)
from growth.controllers.lifecycle.failures import delay_before_end
from growth.planning.readiness import NOT_REGISTERED, SEVERAL_NODES

NOW = dt.datetime(2030, 1, 7, 12, 0, tzinfo=dt.UTC)
PATIENCE = Patience(launch=300, registration=900, initialization=600)


def ago(seconds: float) -> dt.datetime:
    return NOW - dt.timedelta(seconds=seconds)


def said(type_: str, seconds: float, status: str = "True", reason: str = "") -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason or type_, "lastTransitionTime": ago(seconds).isoformat()}


def claim(
    *conditions: dict[str, Any],
    age: float = 9999,
    node: str = "",
    deleting: bool = False,
    held: bool = True,
    **spec: Any,
) -> NodeClaim:
    metadata: dict[str, Any] = {"name": "c", "uid": "u", "creationTimestamp": ago(age).isoformat()}
    metadata["finalizers"] = [names.TERMINATION_FINALIZER] if held else []
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    launched = any(each["type"] == "Launched" and each["status"] == "True" for each in conditions)
    body = {
        "metadata": metadata,
        "spec": {"nodeClassRef": {"group": "g", "kind": "K", "name": "n"}, "requirements": [], **spec},
        "status": {"conditions": list(conditions), "providerID": "p://1" if launched else "", "nodeName": node},
    }
    return convert(body, NodeClaim)


def node(name: str = "n", *, ready: bool = True, deleting: bool = False, taints: Any = (), **labels: str) -> Node:
    metadata: dict[str, Any] = {"name": name, "uid": name, "labels": {f"karpenter.sh/{key}": "true" for key in labels}}
    if deleting:
        metadata["deletionTimestamp"] = NOW.isoformat()
    return convert(
        {
            "metadata": metadata,
            "spec": {"providerID": "p://1", "taints": list(taints)},
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
                "allocatable": {"cpu": "1"},
            },
        },
        Node,
    )


def step(of: NodeClaim, *nodes: Node, paused: bool = False, wanted: bool = True) -> decide.Step:
    return decide.next_step(of, nodes, now=NOW, patience=PATIENCE, paused=paused, wanted=wanted)


def launched(seconds: float = 0, **more: Any) -> NodeClaim:
    told = said("Launched", seconds), said("Registered", seconds, "Unknown", "NodeNotFound")
    return claim(*told, **{"age": 9999, **more})


def registered(seconds: float = 0, reason: str = "NodeNotReady", **more: Any) -> NodeClaim:
    return claim(
        said("Launched", 1000),
        said("Registered", seconds),
        said("Initialized", seconds, "Unknown", reason),
        **{"node": "n", "age": 9999, **more},
    )


JOINED = node(ready=False, registered="true")
VIOLATED = claim(said("Launched", 0, "False", "InvariantViolation"), age=9999)


@pytest.mark.parametrize(
    ("of", "nodes", "expected"),
    [
        (claim(age=0), (), Launch()),
        (claim(age=299), (), Launch()),
        (claim(age=300), (), GiveUp("launch_timeout", 300)),
        (claim(said("Launched", 10, "Unknown", "LaunchFailed"), age=301), (), GiveUp("launch_timeout", 300)),
        (VIOLATED, (), Launch()),
        (claim(deleting=True), (), Nothing()),
        (launched(100), (), Wait(800)),
        (launched(900), (), GiveUp("registration_timeout", 900)),
        (launched(901), (node(),), Register(node())),
        (launched(100), (node(deleting=True),), Wait(800)),
        (launched(100), (node("a"), node("b")), Tell(names.REGISTERED, SEVERAL_NODES, 800)),
        (launched(901), (node("a"), node("b")), Tell(names.REGISTERED, SEVERAL_NODES, 900)),
        (launched(901), (node("a", ready=False), node("b", ready=False)), GiveUp("registration_timeout", 900)),
        (launched(901), (node("a"), node("c")), Register(node("c"))),
        (launched(100, deleting=True), (node(),), Nothing()),
        (registered(10), (JOINED,), Wait(20)),
        (registered(100), (JOINED,), Wait(500)),
        (registered(600), (JOINED,), GiveUp("initialization_timeout", 600)),
        (registered(10), (node(registered="true"),), Initialize(node(registered="true"))),
        (registered(10), (node("other"), node(registered="true")), Initialize(node(registered="true"))),
        (registered(10), (node(),), Register(node())),
        (registered(100), (), Tell(names.INITIALIZED, NOT_REGISTERED, 500)),
    ],
)
def test_each_state_has_one_next_step(of: NodeClaim, nodes: tuple[Node, ...], expected: decide.Step) -> None:
    """No clock, no server: the same claim, Nodes and time give the same step."""
    assert step(of, *nodes) == expected


@pytest.mark.parametrize(
    "of",
    [claim(age=9999), VIOLATED, launched(9999), registered(9999)],
    ids=["new", "violated", "launched", "registered"],
)
def test_a_pause_stops_buying_and_giving_up(of: NodeClaim) -> None:
    """Nothing but waiting and telling happens to a paused claim that has no usable node."""
    assert isinstance(step(of, paused=True), Wait | Tell)


def test_what_a_contradiction_stops_is_given_up_where_nothing_wants_it() -> None:
    """Not before the time that every launch has; and never while it is wanted or paused."""
    young = claim(said("Launched", 0, "False", "InvariantViolation"), age=299)
    assert step(VIOLATED, wanted=False) == GiveUp("launch_timeout", 300)
    assert step(young, wanted=False) == step(VIOLATED) == Launch()
    assert isinstance(step(VIOLATED, wanted=False, paused=True), Wait)


def test_a_wrong_clock_does_not_shorten_a_time() -> None:
    """Conditions are dated by whoever wrote them, and nothing began before the claim was there."""
    assert step(launched(1500, age=300)) == Wait(600)
    assert step(registered(1500, age=200), JOINED) == Wait(400)


def test_a_pause_does_not_keep_a_node_from_being_taken() -> None:
    """What is bought already may come to be used."""
    assert step(launched(9999), node(), paused=True) == Register(node())
    usable = node(registered="true")
    assert step(registered(9999), usable, paused=True) == Initialize(usable)


def test_no_stage_began_before_its_claim() -> None:
    """Who wrote when it began may have had a slow clock; when the claim was made is the server's word."""
    assert step(launched(1000, age=300)) == Wait(600)
    assert step(registered(1000, age=300), JOINED) == Wait(300)


def test_claims_refused_for_good_are_kept_longer_and_longer() -> None:
    """The first goes at once; from then on the pool makes fewer and fewer, at least one every five minutes."""
    assert [delay_before_end(n) for n in (0, 1, 2, 3, 6, 7, 100, 10_000)] == [0, 5, 10, 20, 160, 300, 300, 300]


def test_a_claim_with_a_machine_gets_its_finalizer_back() -> None:
    """Whatever stage it is in; one without a machine gets it when it is launched, and one that goes never."""
    assert [step(of(held=False)) for of in (launched, registered)] == [Hold(), Hold()]
    assert step(claim(held=False, age=0)) == Launch()
    assert step(launched(held=False, deleting=True)) == Nothing()


def test_a_failure_is_not_told_of_a_claim_that_has_its_machine() -> None:
    """Of two leaders one may buy while the other is refused: whoever is told «failed» would give the machine up."""
    told = {"type": names.LAUNCHED, "status": "True", "reason": "Launched", "message": "", "lastTransitionTime": "x"}
    for conditions, status in (([], "Unknown"), ([told], "True")):
        draft: dict[str, Any] = {"metadata": {}, "status": {"conditions": list(conditions)}}
        edits.tell_launch_failure(draft, status="Unknown", reason="LaunchFailed", message="no answer", now=NOW)
        assert [one["status"] for one in draft["status"]["conditions"] if one["type"] == names.LAUNCHED] == [status]
