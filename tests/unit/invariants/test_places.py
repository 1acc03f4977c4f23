"""Where pods could go that must leave their node: what counts, and what nobody can have known."""

from collections.abc import Mapping

import pytest

from growth.api.kinds import Json
from growth.sim.invariants import moves
from growth.sim.invariants.books import BUDGETS, CLAIMS, NODES, PODS
from tests.unit.invariants.histories import GROWTH, History, claim, going, node, pod, running


def asking(name: str, cpu: str, *, on: str = "") -> Json:
    """A pod of that size, bound or not."""
    body = pod(name)
    body["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    body["spec"]["nodeName"] = on
    return body


def with_rooms(rooms: Mapping[str, str]) -> History:
    """A machine `one`, and others with that much room."""
    history = running(moves.Replacement())
    for name, room in rooms.items():
        other = node(name)
        other["status"]["allocatable"] = {"cpu": room, "pods": "10"}
        history.put(CLAIMS, claim(name), by=GROWTH)
        history.put(NODES, other)
    return history


def remove_one(history: History, *, at: float = 100.0, grace: str = "") -> int:
    """How many complaints there are when the first machine goes, which may have a grace period."""
    body = going(claim())
    if grace:
        body["spec"]["terminationGracePeriod"] = grace
    history.put(CLAIMS, body, by=GROWTH, verb="delete", at=at)
    return len(history.said)


@pytest.mark.parametrize(("rooms", "said"), [({"two": "6", "three": "7"}, 0), ({"two": "6", "three": "6"}, 1)])
def test_every_way_is_tried(rooms: Mapping[str, str], said: int) -> None:
    """Pods of 4, 3, 3 and 3 fit into 6 and 7, though not the largest first into the fullest; and not into 6 and 6."""
    history = with_rooms(rooms)
    for name, cpu in (("a", "4"), ("b", "3"), ("c", "3"), ("d", "3")):
        history.put(PODS, asking(name, cpu, on="one"))
    assert remove_one(history) == said


@pytest.mark.parametrize(("came", "said"), [(99.0, 0), (90.0, 1)])
def test_who_came_after_the_last_look_is_not_held_against_it(came: float, said: int) -> None:
    """A pod that took the room a second ago is news; one that took it ten seconds ago is not."""
    history = with_rooms({"two": "2"})
    history.put(PODS, asking("a", "1", on="one"))
    thief = asking("thief", "2", on="two")
    history.case.bound_at[thief["metadata"]["uid"]] = came
    history.put(PODS, thief, at=came)
    assert remove_one(history) == said


@pytest.mark.parametrize(("came", "said"), [(99.0, 0), (90.0, 1)])
def test_who_waits_comes_first(came: float, said: int) -> None:
    """A pod that has waited for a while takes the room; one that was created a second ago nobody knew of."""
    history = with_rooms({"two": "2"})
    history.put(PODS, asking("a", "1", on="one"))
    history.put(PODS, asking("waiting", "2"), at=came)
    assert remove_one(history) == said


@pytest.mark.parametrize(("closed", "said"), [(99.0, 0), (90.0, 1)])
def test_a_node_that_closed_after_the_last_look(closed: float, said: int) -> None:
    """A node that was tainted or taken away a second ago could take the pods when it was looked at."""
    for taken in (False, True):
        history = with_rooms({"two": "2"})
        history.put(PODS, asking("a", "1", on="one"))
        if taken:
            history.remove(NODES, node("two"), at=closed)
        else:
            tainted = node("two", tainted=True)
            tainted["status"]["allocatable"] = {"cpu": "2", "pods": "10"}
            history.put(NODES, tainted, at=closed)
        assert remove_one(history) == said, taken


def budget(name: str, **spec: object) -> Json:
    """For every pod `app: web`; it may allow nothing, ever."""
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-of-{name}"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
        "status": {"disruptionsAllowed": 0, "expectedPods": 1},
    }


NONE = {"maxUnavailable": 0}
ALL = {"minAvailable": "100%"}
FEW = {"maxUnavailable": 1}
SICK = {"maxUnavailable": 0, "unhealthyPodEvictionPolicy": "AlwaysAllow"}


@pytest.mark.parametrize(
    ("budgets", "grace", "said"),
    [
        ([], "5m", 1),
        ([NONE], "5m", 0),
        ([ALL], "5m", 0),
        ([FEW], "5m", 1),
        ([FEW, FEW], "5m", 0),
        ([SICK], "5m", 1),  # nobody says that the pod is well
        ([NONE], "", 1),
    ],
)
def test_who_can_never_be_evicted_needs_no_place_before_the_grace_period_ends(
    budgets: list[Json], grace: str, said: int
) -> None:
    """Nobody knows when such a pod will want one; without a grace period its node should not have been chosen at all."""
    history = with_rooms({"two": "0"})
    held = asking("a", "1", on="one")
    held["metadata"]["labels"] = {"app": "web"}
    history.put(PODS, held)
    for number, spec in enumerate(budgets):
        history.put(BUDGETS, budget(f"budget-{number}", **spec))
    assert remove_one(history, grace=grace) == said


@pytest.mark.parametrize(("lifted", "said"), [(99.0, 0), (90.0, 1)])
@pytest.mark.parametrize("how", ["taken away", "changed"])
def test_a_budget_that_was_lifted_after_the_last_look(lifted: float, said: int, how: str) -> None:
    """Until then nobody under it could leave."""
    history = with_rooms({"two": "0"})
    held = asking("a", "1", on="one")
    held["metadata"]["labels"] = {"app": "web"}
    history.put(PODS, held)
    history.put(BUDGETS, budget("zero", **NONE))
    if how == "changed":
        history.put(BUDGETS, budget("zero", **FEW), at=lifted)
    else:
        history.remove(BUDGETS, budget("zero", **NONE), at=lifted)
    assert remove_one(history, grace="5m") == said


@pytest.mark.parametrize(("held", "said"), [(True, 0), (False, 1)])
def test_who_stays_on_another_leaving_node_takes_no_room(held: bool, said: int) -> None:  # noqa: FBT001 - a parameter
    """A pod of a node that leaves already comes first, unless a budget holds it there."""
    history = with_rooms({"two": "1", "leaving": "0"})
    history.put(CLAIMS, going(claim("leaving")), by=GROWTH, verb="delete", at=50.0)
    other = asking("b", "1", on="leaving")
    other["metadata"]["labels"] = {"app": "web"}
    history.put(PODS, other)
    history.put(PODS, asking("a", "1", on="one"))
    if held:
        history.put(BUDGETS, budget("zero", **NONE))
    history.said.clear()
    assert remove_one(history) == said


def spreading(name: str, *, on: str) -> Json:
    """A pod that spreads over zones with its like."""
    body = asking(name, "1", on=on)
    body["metadata"]["labels"] = {"app": "web"}
    body["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    return body


def in_zone(zone: str, name: str, room: str, *, tainted: bool = False) -> Json:
    body = node(name, tainted=tainted)
    body["metadata"]["labels"]["zone"] = zone
    body["status"]["allocatable"] = {"cpu": room, "pods": "10"}
    return body


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize(("there", "said"), [(1, 0), (0, 1)])
def test_pods_of_nodes_that_take_nobody_count_where_others_spread(there: int, said: int, *, up: bool) -> None:
    """As for kube-scheduler: a zone has the pods of its marked nodes, and of those that come up, for as long as they run."""
    history = running(moves.Replacement())
    for name, zone, room in (("one", "a", "9"), ("two", "a", "9"), ("full", "b", "0"), ("closed", "b", "9")):
        history.put(CLAIMS, claim(name, initialized=up or name != "closed"), by=GROWTH)
        history.put(NODES, in_zone(zone, name, room, tainted=name == "closed" and up))
    for number, on in enumerate(("one", "two", *["closed"] * there)):
        history.put(PODS, spreading(f"web-{number}", on=on))
    assert remove_one(history) == said


@pytest.mark.parametrize(("label", "said"), [("true", 0), ("false", 1), ("", 1)])
def test_a_node_that_is_up_takes_pods_before_its_claim_says_so(label: str, said: int) -> None:
    """The claim is told after the Node, and that request may be lost; a Node that does not say it takes nobody."""
    history = running(moves.Replacement())
    history.put(PODS, asking("a", "1", on="one"))
    history.put(CLAIMS, claim("new", initialized=False), by=GROWTH)
    new = in_zone("a", "new", "9")
    new["metadata"]["labels"] |= {"karpenter.sh/initialized": label} if label else {}
    history.put(NODES, new)
    assert remove_one(history) == said


@pytest.mark.parametrize(("came", "said"), [(99.0, 0), (90.0, 1)])
def test_a_zone_that_is_new_since_the_last_look(came: float, said: int) -> None:
    """A node that registered a second ago, in a zone without pods, was not there for those who spread."""
    history = running(moves.Replacement())
    for name in ("one", "two"):
        history.put(CLAIMS, claim(name), by=GROWTH)
        history.put(NODES, in_zone("a", name, "9"))
        history.put(PODS, spreading(f"web-{name}", on=name))
    history.put(CLAIMS, claim("new", initialized=False), by=GROWTH)
    history.put(NODES, in_zone("b", "new", "9"), at=came)
    assert remove_one(history) == said
