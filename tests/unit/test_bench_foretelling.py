"""Why `python -m bench whatif` says that something else happened than was foretold."""

import dataclasses
from typing import Any

import pytest

from bench.foretelling import CHANCE, UNEXPLAINED, UNSPREAD, Came, Watch, planned, why
from growth.api import names
from growth.api.kinds import Json
from growth.planning.explaining.whatif import Changed, Played, played, removed
from growth.sim.seams import NOBODY, Step
from tests import manifests
from tests.unit.explaining.scenes import flat, scene
from tests.unit.planning.clusters import SMALL, machine, pods, pool

ZONES = ("test-zone-a", "test-zone-b")
FEW = 5
AS_IT_CAME = "in the order in which they came"


def on_a(app: str, **spec: Any) -> Json:
    """A pod that runs on the node that goes."""
    metadata = {**manifests.owned_by("ReplicaSet", app), "labels": {"app": app, "pod-template-hash": app}}
    return manifests.pod(app, metadata=metadata, status={"phase": "Running"}, nodeName="a", memory="100Mi", **spec)


def without_a(*objects: Json | list[Json]) -> Changed:
    return removed(scene(flat(*objects)), ["a"])


def left_over(end: Played) -> list[str]:
    return sorted(each.pod.removeprefix("default/") for each in end.scene.plan.unplaced)


def place_of(app: str, end: Played) -> Json:
    return end.scene.nodes[end.scene.pods[f"default/{app}"].node_name].metadata.labels


def room_for_one() -> Changed:
    """Two successors, room for one of them, and nothing may be bought."""
    full = pods(14, on="b")
    return without_a(
        pool(limits={"nodes": "1"}), machine("a"), machine("b"), full, on_a("x", cpu="1"), on_a("y", cpu="1500m")
    )


@pytest.mark.parametrize(("first", "second"), [("x", "y"), ("y", "x")])
def test_the_order_in_which_successors_came_is_chance(first: str, second: str) -> None:
    """Who came last is left over."""
    told = why(room_for_one(), Came(pods=(first, second)), happened=[second], outcome=left_over, tried=FEW)
    assert told.startswith(f"{CHANCE}: so it comes with the successors {AS_IT_CAME}")


def test_the_order_of_those_that_waited_is_chance() -> None:
    """Of two that waited before the question was asked, room that comes free goes to the one that was made first."""
    full = [*pods(15, on="a"), *pods(15, on="b")]
    waiting = [manifests.pod(name, cpu="800m", metadata={"labels": {"app": name}}) for name in ("x", "y")]

    def of_the_two(end: Played) -> list[str]:
        return [each for each in left_over(end) if each in {"x", "y"}]

    changed = without_a(pool(limits={"nodes": "1"}), machine("a"), machine("b"), full, waiting)
    came = Came(pods=("a",), before=("default/y", "default/x"))
    told = why(changed, came, happened=["x"], outcome=of_the_two, tried=FEW)
    assert told.startswith(f"{CHANCE}: so it comes with all pods that wait {AS_IT_CAME}")


def test_what_came_otherwise_is_told_by_how_often_it_might_have_come() -> None:
    """Where what happened does not come of what came, other orders are told with their number."""
    told = why(room_for_one(), Came(pods=("x", "y")), happened=["x"], outcome=left_over, tried=FEW)
    assert told.startswith(f"{CHANCE}: so it comes with ")
    assert f"of {FEW} orders of the successors" in told
    assert AS_IT_CAME not in told


def test_what_nothing_gives_is_not_explained() -> None:
    """And it is said what was tried."""
    told = why(room_for_one(), Came(pods=("x", "y")), happened=["nobody"], outcome=left_over, tried=FEW)
    assert told.startswith(f"{UNEXPLAINED}: so it comes with none of the orders of the successors, ")


def test_the_order_in_which_machines_came_up_is_chance() -> None:
    """The first that is up gets whoever may go to either."""
    bound = [on_a(f"in-{zone}", cpu="1", nodeSelector={names.ZONE_LABEL: zone}) for zone in ZONES]
    changed = without_a(pool(types=(SMALL,)), machine("a"), bound, on_a("either", cpu="500m"))

    def zone(end: Played) -> str:
        return str(place_of("either", end)[names.ZONE_LABEL])

    usual = played(changed)
    (other,) = {*ZONES} - {zone(usual)}
    machines = sorted(map(planned, usual.bought), key=lambda each: each[2] != other)
    assert [each[2] for each in machines] == [other, zone(usual)]
    told = why(changed, Came(machines=tuple(machines)), happened=other, outcome=zone, tried=FEW)
    assert told.startswith(f"{CHANCE}: so it comes with the successors and the machines, one by one, {AS_IT_CAME}")


def test_a_scheduler_that_does_not_spread_by_default_is_named() -> None:
    """A pod that joins its sibling where there is more room does so without the default spread alone."""
    sibling = on_a("web", cpu="1")
    sibling["metadata"]["name"] = "web-2"
    sibling["spec"]["nodeName"] = "b"
    changed = without_a(
        pool(), machine("a"), machine("b"), machine("c"), on_a("web", cpu="1"), sibling, pods(5, on="c")
    )

    def node(end: Played) -> str:
        return str(place_of("web", end)[names.HOSTNAME_LABEL])

    assert node(played(changed)) == "c"
    told = why(changed, Came(pods=("web",)), happened="b", outcome=node, tried=FEW)
    assert told.startswith(f"{UNSPREAD}: so it comes without a default spread")
    assert CHANCE not in told


def test_what_comes_is_remembered_in_its_order() -> None:
    """Pods when they are made, machines when they are ready; before the question only which pods were made."""
    watch = Watch()
    made = manifests.pod("web-1", metadata={"labels": {"app": "web"}})
    up = machine("b", SMALL)[1]
    down = machine("b", SMALL, ready=False)[1]
    step = Step(
        number=1,
        at=0.0,
        revision=1,
        actor=NOBODY,
        verb="",
        asked=("", "", ""),
        which=("", "pods"),
        key=("default", "web-1"),
        old=None,
        new=made,
        last=made,
    )
    watch(dataclasses.replace(step, key=("default", "old")))
    watch.ask()
    watch(step)
    watch(dataclasses.replace(step, old=made))
    node = dataclasses.replace(step, which=("", "nodes"), key=("", "b"), new=down, last=down)
    watch(node)
    watch(dataclasses.replace(node, old=down, new=up))
    watch(dataclasses.replace(node, old=up, new=up))
    watch(dataclasses.replace(node, old=up, new=None))
    assert watch.came() == Came(
        pods=("web",), machines=(("default", SMALL, "test-zone-a", "on-demand"),), before=("default/old",)
    )
