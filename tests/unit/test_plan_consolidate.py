"""`growth plan --consolidate` on files: what would go, what would come, and why the rest stays."""

import datetime as dt
import json
import pathlib
from typing import Any

import pytest

from growth.api import names
from growth.api.kinds import Json
from growth.api.nodeclasses import HETZNER_NODE_CLASS
from growth.cli.entry import run
from growth.controllers.settings import ControllerSettings
from growth.planning.disruption.search import SearchOptions
from tests import manifests
from tests.manifests import written
from tests.unit.planning.clusters import LARGE, SMALL, machine, pods, pool

# Long ago by any clock: `growth plan` takes the time of the machine that it runs on.
OLD = 86_400.0 * 3650
PRICE = {SMALL: 0.054294967, LARGE: 0.434359738}


def flat(*objects: Json | list[Json]) -> list[Json]:
    return [each for item in objects for each in (item if isinstance(item, list) else [item])]


class Asked:
    """Runs the command on objects and keeps what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: pathlib.Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def text(self, *objects: Json | list[Json], arguments: tuple[str, ...] = ("--consolidate",)) -> str:
        code = run(["plan", "-f", written(self._folder, *flat(*objects)), *arguments])
        said = self._capsys.readouterr()
        assert code == 0, said.err
        return said.out

    def json(self, *objects: Json | list[Json], arguments: tuple[str, ...] = ()) -> Any:
        return json.loads(self.text(*objects, arguments=("--consolidate", "-o", "json", *arguments)))


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> Asked:
    return Asked(capsys, tmp_path)


def old(name: str, kind: str = LARGE, **more: Any) -> list[Json]:
    return machine(name, kind, age=OLD, **more)


def moment(seconds: float) -> str:
    """So many seconds after now."""
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def kept(found: Any) -> dict[str, str]:
    return {each["node"]: each["reason"] for each in found["kept"]}


def test_the_json_has_the_documented_shape(asked: Asked) -> None:
    """Both lists, every key and no other, money an hour as numbers."""
    found = asked.json(
        pool(), old("a"), pods(1, on="a"), old("b", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
    )
    assert list(found) == [
        "nodeClaims",
        "existingNodes",
        "unschedulable",
        "summary",
        "disruptions",
        "kept",
        "complete",
        "reachable",
    ]
    assert list(found["reachable"]) == ["today", "toBuy", "hourly", "moves", "unschedulable", "complete"]
    assert (found["complete"], found["reachable"]["complete"]) == (True, True)
    assert found["disruptions"] == [
        {
            "reason": "Underutilized",
            "nodePool": "default",
            "nodes": ["a"],
            "replacements": [],
            "savings": PRICE[LARGE],
            "evictions": 1,
        }
    ]
    assert found["kept"] == [
        {
            "node": "b",
            "nodePool": "default",
            "reason": "DoNotDisrupt",
            "message": "the node has the annotation karpenter.sh/do-not-disrupt",
        }
    ]


def test_a_node_that_is_too_large_is_replaced(asked: Asked) -> None:
    """Its pods need a place, and a smaller machine is one: the saving is the difference an hour."""
    (move,) = asked.json(pool(), old("a"), pods(1, on="a"))["disruptions"]
    assert move["nodes"] == ["a"]
    (bought,) = move["replacements"]
    assert list(bought) == ["instanceType", "price", "maxPrice"]
    assert (bought["instanceType"], bought["price"]) == (SMALL, PRICE[SMALL])
    assert PRICE[SMALL] <= bought["maxPrice"] <= 1.25 * PRICE[SMALL]
    assert move["savings"] == pytest.approx(PRICE[LARGE] - PRICE[SMALL])
    assert move["evictions"] == 1


def test_drift_shows_what_replaces_it_even_where_that_saves_nothing(asked: Asked) -> None:
    """A changed template is drift, by the objects alone: no controller needs to have said so."""
    before = pool()
    after = pool()
    after["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    (move,) = asked.json(after, old("a", of=before), pods(15, on="a"))["disruptions"]
    assert (move["reason"], move["nodes"], move["savings"]) == ("Drifted", ["a"], 0)
    assert [each["instanceType"] for each in move["replacements"]] == [LARGE]


@pytest.mark.parametrize(
    ("reason", "counts"),
    [
        (names.NODE_POOL_DRIFTED, False),
        (names.REQUIREMENTS_DRIFTED, False),
        (names.INSTANCE_TYPE_NOT_FOUND, True),
        ("ImageDrifted", True),
    ],
)
def test_of_drift_that_the_objects_can_tell_a_condition_is_no_proof(asked: Asked, *, reason: str, counts: bool) -> None:
    """It may be older than the pool beside it. What only the cloud knows of its machines is believed."""
    of = pool(disruption={"consolidateAfter": "Never"})
    claim, node = old("a", of=of)
    told = claim["status"]["conditions"]
    told.append({**told[0], "type": names.DRIFTED, "reason": reason})
    found = asked.json(of, claim, node, pods(15, on="a"))
    assert [move["reason"] for move in found["disruptions"]] == (["Drifted"] if counts else [])


def test_nodes_without_a_known_price_are_listed_and_never_moved(asked: Asked) -> None:
    """Not even when they are empty: nobody could say what that saves."""
    found = asked.json(pool(), old("empty", "no-such-type"), old("used", "no-such-type"), pods(1, on="used"))
    assert found["disruptions"] == []
    assert kept(found) == {"empty": "PriceUnknown", "used": "PriceUnknown"}
    assert found["summary"]["unpriced"] == ["empty", "used"]


def test_every_node_is_in_one_of_the_lists(asked: Asked) -> None:
    """Those that are not ours, too."""
    found = asked.json(
        pool(),
        old("empty"),
        old("young", conditions=("Launched", "Registered")),
        old("marked", taints=({"key": names.DISRUPTED_TAINT, "effect": "NoSchedule"},)),
        old("ending", conditions=("Launched", "Registered", "Initialized", names.INSTANCE_TERMINATING)),
        manifests.node("foreign"),
        old("lost", of="gone"),
    )
    assert [move["nodes"] for move in found["disruptions"]] == [["empty"]]
    assert kept(found) == {
        "young": "NotInitialized",
        "marked": "Leaving",
        "ending": "Leaving",
        "foreign": "Unmanaged",
        "lost": "NodePoolNotFound",
    }
    assert {each["node"]: each["nodePool"] for each in found["kept"]}["foreign"] == ""


def test_a_node_that_pending_pods_go_to_stays(asked: Asked) -> None:
    """The plan for them would nominate it."""
    found = asked.json(pool(), old("a"), manifests.pod("pending", cpu=3))
    assert found["existingNodes"] == [{"name": "a", "pods": ["default/pending"]}]
    assert kept(found) == {"a": "Nominated"}


def test_budgets_of_pods_count_and_are_reckoned_where_nobody_has(asked: Asked) -> None:
    """A PodDisruptionBudget from a repository has no status: what its controller would say is worked out."""
    held = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}}
    selector = {"matchLabels": {"app": "a"}}
    for spec, stays in (
        ({"maxUnavailable": 0}, True),
        ({"maxUnavailable": 1}, False),
        ({"maxUnavailable": "50%"}, False),
        ({"minAvailable": 2}, True),
        ({"minAvailable": "100%"}, True),
        ({"minAvailable": 1}, False),
        ({"minAvailable": 0}, False),
        ({}, True),
    ):
        found = asked.json(pool(), old("a"), pods(2, on="a"), {**held, "spec": {**spec, "selector": selector}})
        assert (kept(found) == {"a": "PodDisruptionBudget"}) is stays, spec
    said = {**held, "spec": {"maxUnavailable": 1, "selector": selector}, "status": {"expectedPods": 2}}
    assert kept(asked.json(pool(), old("a"), pods(2, on="a"), said)) == {"a": "PodDisruptionBudget"}


def test_two_claims_of_one_machine_are_left_alone(asked: Asked) -> None:
    """Which of them owns it nobody can say."""
    twin = old("a")[0]
    twin["metadata"]["name"] = "twin"
    assert kept(asked.json(pool(), old("a"), twin)) == {"a": "Doubtful"}


def test_two_nodes_of_one_machine_are_left_alone(asked: Asked) -> None:
    """Nobody can tell which of them is the machine's; the one without a claim is told of too."""
    made = old("a")
    twin = {**made[1], "metadata": {**made[1]["metadata"], "name": "b"}}
    assert kept(asked.json(pool(), made, twin)) == {"a": "Doubtful", "b": "Doubtful"}


def test_a_file_need_not_say_everything_twice(asked: Asked) -> None:
    """A claim that says it is initialised speaks for its Node, and a Node's labels for its claim."""
    claim, node = old("a")
    claim["metadata"]["labels"] = {names.NODE_POOL_LABEL: "default"}
    for label in (names.REGISTERED_LABEL, names.INITIALIZED_LABEL):
        del node["metadata"]["labels"][label]
    (move,) = asked.json(pool(), [claim, node], pods(1, on="a"))["disruptions"]
    assert move["reason"] == "Underutilized"


def test_the_spot_gate_is_off_unless_opened(asked: Asked) -> None:
    """As Karpenter's."""
    objects = (pool(terms=("spot",)), old("a", "c-64x-amd64-linux", terms="spot"), pods(1, on="a"))
    assert asked.json(*objects)["disruptions"] == []
    (move,) = asked.json(*objects, arguments=("--spot-to-spot-consolidation",))["disruptions"]
    assert len(move["replacements"]) == 1


def test_the_table_says_what_goes_what_comes_and_what_is_saved(asked: Asked) -> None:
    """In three parts: moves, nodes that stay, and a sentence."""
    out = asked.text(pool(), old("a"), pods(1, on="a"), manifests.node("foreign", cpu="100m"))
    lines = [line.split() for line in out.splitlines()]
    assert ["Underutilized", "default", "a", "1", "$0.3801/h", SMALL, "at", "$0.0543/h"] in lines
    assert "Unmanaged" in out
    assert "Growth would remove 1 node, buy 1 machine instead and move 1 pod: $0.3801/h saved." in out


def test_the_table_is_short_however_many_nodes_stay(asked: Asked) -> None:
    """Nodes that stay for one reason are one row, with one of them and its sentence as the example."""
    nodes = [
        each
        for at in "abc"
        for each in (old(at), pods(1, on=at, annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"}))
    ]
    rows = [line.split() for line in asked.text(pool(), *nodes).splitlines() if "DoNotDisrupt" in line]
    assert [row[:5] for row in rows] == [["3", "a", "default", "DoNotDisrupt", "pod"]]


def test_without_the_option_files_are_planned_as_ever(asked: Asked) -> None:
    """Only a cluster is looked at for what could go without being asked."""
    assert "To disrupt" not in asked.text(pool(), old("a"), arguments=())
    assert "No node would be disrupted now." in asked.text(pool(disruption={"consolidateAfter": "Never"}), old("a"))


# --- whose machines they are

EC2: Json = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}


def of_others(name: str = "others", **spec: Any) -> Json:
    return pool(name, template={"nodeClassRef": EC2}, **spec)


def theirs(name: str, of: str = "others") -> list[Json]:
    return old(name, of=of, nodeClassRef=EC2)


def test_machines_of_another_provider_are_left_alone(asked: Asked) -> None:
    """As `growth run` leaves them, whatever they hold: neither removed nor replaced nor too many."""
    few = of_others(limits={"nodes": "1"})
    found = asked.json(pool(), old("a"), few, theirs("empty"), theirs("used"), pods(1, on="used"))
    assert [move["nodes"] for move in found["disruptions"]] == [["a"]]
    assert kept(found) == {"empty": "Unmanaged", "used": "Unmanaged"}
    told = {each["node"]: each["message"] for each in found["kept"]}
    assert told["used"] == "its node class is a EC2NodeClass of karpenter.k8s.aws, which another provider serves"
    assert [move["nodes"] for move in found["reachable"]["moves"]] == [["a"]]


def test_nothing_is_bought_in_a_pool_of_another_provider(
    asked: Asked, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """For pods that wait and for pods that move alike, whatever weight it has; and it is told."""
    objects = flat(pool(), of_others(weight=100), old("a"), pods(15, on="a"), manifests.pod("pending", cpu=3))
    assert [each["nodePool"] for each in asked.json(*objects)["nodeClaims"]] == ["default"]
    (move,) = asked.json(pool(types=(LARGE,)), of_others(weight=100), old("a"), pods(1, on="a"))["kept"]
    assert move["reason"] == "InUse"
    assert run(["plan", "-f", written(tmp_path, *objects)]) == 0
    assert "NodePool others is left alone: its node class is a EC2NodeClass" in capsys.readouterr().err


def test_a_cluster_of_another_provider_alone_is_planned_as_if_it_were_ours(asked: Asked) -> None:
    """A dump of Karpenter on a cloud that we do not know is looked at with the list that is given."""
    found = asked.json(of_others(), theirs("a"), pods(1, on="a"), manifests.pod("pending", cpu=15))
    assert [each["nodePool"] for each in found["nodeClaims"]] == ["others"]
    assert [move["nodes"] for move in found["disruptions"]] == [["a"]]


def test_with_a_chosen_provider_the_pools_of_its_cloud_count(asked: Asked) -> None:
    """Where pools mean several; where none means the chosen one, all do."""
    hetzner = {"group": HETZNER_NODE_CLASS.group, "kind": HETZNER_NODE_CLASS.kind, "name": "default"}
    other = pool("other", template={"nodeClassRef": hetzner}, weight=100)
    pending = manifests.pod("pending", cpu=1)
    found = asked.json(pool(), other, pending, arguments=("--provider", "kwok"))
    assert [each["nodePool"] for each in found["nodeClaims"]] == ["default"]
    found = asked.json(other, pending, arguments=("--provider", "kwok"))
    assert [each["nodePool"] for each in found["nodeClaims"]] == ["other"]


def test_a_pod_of_a_daemon_set_that_ends_keeps_no_node_busy(asked: Asked) -> None:
    """Nor one of a kubelet's own: they come and go with their node. Any other does."""
    waits = pool(disruption={"consolidateAfter": "10m"})
    for owner, stays in (("DaemonSet", {}), ("Node", {}), ("ReplicaSet", {"a": "ConsolidateAfter"})):
        (ending,) = pods(1, on="a", deletionTimestamp=moment(30))
        ending["metadata"] |= manifests.owned_by(owner, "a")
        assert kept(asked.json(waits, old("a"), ending)) == stays


# --- what is in the way


def told(found: Any) -> dict[str, tuple[str, str]]:
    return {each["node"]: (each["reason"], each["message"]) for each in found["kept"]}


def test_a_limit_that_leaves_no_room_for_a_cheaper_machine_is_named(asked: Asked) -> None:
    """Until the old one is gone both count; without the limit it is replaced."""
    nodes = flat(old("a"), pods(1, on="a"))
    word, why = told(asked.json(pool(limits={"cpu": "16"}), nodes))["a"]
    assert word == "InUse"
    assert "the limits of NodePool default leave none for a cheaper machine beside it" in why
    assert len(asked.json(pool(limits={"cpu": "18"}), nodes)["disruptions"]) == 1


def test_a_pod_whose_volume_does_not_exist_has_no_place(asked: Asked) -> None:
    """It runs where it is, and nowhere else."""
    (pod,) = pods(1, on="a")
    pod["spec"]["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "lost"}}]
    word, why = told(asked.json(pool(), old("a"), pod))["a"]
    assert word == "NoPlace"
    assert why.startswith("pod default/a-0 would have no place: ")
    assert "lost" in why


def test_a_pool_that_buys_nothing_is_named(asked: Asked) -> None:
    """One that is being deleted, or is not ready."""
    gone = pool(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/x"]})
    word, why = told(asked.json(gone, old("a"), pods(1, on="a")))["a"]
    assert (word, why) == (
        "InUse",
        "its pods have no room on other nodes, and NodePool default buys nothing: it is being deleted",
    )


def test_a_node_that_is_well_used_is_said_to_be_whatever_limits_there_are(asked: Asked) -> None:
    """Nothing is cheaper for it in any case."""
    found = asked.json(pool(limits={"cpu": "16"}), old("a"), pods(15, on="a"))
    assert told(found)["a"] == (
        "InUse",
        "its pods have no room on other nodes, and no cheaper machine holds them",
    )


# --- as `growth run` decides


def test_what_may_be_set_for_both_is_the_same_by_default() -> None:
    """A plan of a cluster is the decision of a Growth that nobody has given other settings."""
    searches, runs = SearchOptions(), ControllerSettings()
    assert searches.budget == runs.disruption_steps
    assert searches.eviction_cost == runs.eviction_cost
    assert searches.horizon.total_seconds() == runs.eviction_horizon
    assert searches.spot_to_spot == runs.spot_to_spot_consolidation
    assert searches.planning.flexibility == runs.max_price_percent


def test_moves_are_weighed_by_the_settings_of_a_run(asked: Asked) -> None:
    """What a run with them would not do is not shown."""
    objects = flat(pool(), old("a"), pods(1, on="a"))
    assert len(asked.json(*objects)["disruptions"]) == 1
    dear = ("--eviction-cost", "0.3")
    assert len(asked.json(*objects, arguments=dear)["disruptions"]) == 1  # it saves 0.38 an hour
    assert asked.json(*objects, arguments=(*dear, "--eviction-horizon", "30m"))["disruptions"] == []


def test_how_dear_a_machine_may_be_counts_for_what_is_listed(asked: Asked) -> None:
    """In percent of the planned price, as a run would list it."""
    few, many = (
        asked.json(pool(), manifests.pod("a"), arguments=("--max-price-percent", percent))["nodeClaims"][0]
        for percent in ("100", "1000")
    )
    assert len(few["instanceTypes"]) < len(many["instanceTypes"])


def test_a_search_that_ended_early_says_so(asked: Asked) -> None:
    """In the JSON and in the table, whether or not it found anything."""
    objects = flat(pool(), *(each for at in "abc" for each in (old(at), pods(1, on=at))))
    found = asked.json(*objects, arguments=("--disruption-steps", "1"))
    assert (found["complete"], found["reachable"]["complete"]) == (False, False)
    text = asked.text(*objects, arguments=("--consolidate", "--disruption-steps", "1"))
    assert "The search ended before it was through" in text


# --- what a pool has too many of


def test_what_is_too_many_goes_as_it_would_go(asked: Asked) -> None:
    """Past budgets and with its pods, in the order of the pool; the others stay, and say so of themselves alone."""
    none = pool(limits={"nodes": "1"}, disruption={"budgets": [{"nodes": "0"}]})
    objects = flat(none, old("a"), pods(2, on="a", cpu=7), old("b"), pods(3, on="b", cpu=5))
    found = asked.json(*objects)
    assert found["disruptions"] == [
        {
            "reason": "Overprovisioned",
            "nodePool": "default",
            "nodes": ["a"],
            "replacements": [],
            "savings": PRICE[LARGE],
            "evictions": 2,
        }
    ]
    assert kept(found) == {"b": "Budget"}
    assert found["reachable"]["moves"][0] == found["disruptions"][0]
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[LARGE])
    text = asked.text(*objects)
    assert "Growth would remove 1 node, buy nothing and move 2 pods" in text
    assert "1. remove a (Overprovisioned, 2 pods to move)" in text


def test_what_is_decided_besides_leaves_those_pods_their_places(asked: Asked) -> None:
    """The pods of the machine that is too many need the room of another, which therefore stays."""
    roomy = flat(old("b"), pods(1, on="b"), old("c"), pods(1, on="c", cpu=14))
    assert [move["nodes"] for move in asked.json(pool(types=(LARGE,)), roomy)["disruptions"]] == [["b"]]
    tight = flat(pool(types=(LARGE,), limits={"nodes": "2"}), old("a", SMALL), pods(1, on="a"), roomy)
    found = asked.json(*tight)
    assert [(move["reason"], move["nodes"]) for move in found["disruptions"]] == [("Overprovisioned", ["a"])]
    assert set(kept(found)) == {"b", "c"}


def sums(found: Any) -> None:
    """What is paid today, what must be bought and what is saved make what is reached."""
    reach = found["reachable"]
    saved = sum(each["savings"] or 0 for each in reach["moves"])
    assert reach["hourly"] == pytest.approx(reach["today"] + reach["toBuy"] - saved)


def test_what_is_bought_for_pods_of_what_is_too_many_is_no_saving(asked: Asked) -> None:
    """They wait as new pods do, and another pool buys for them."""
    nodes = flat(*(each for at in ("a1", "a2") for each in (old(at), pods(15, on=at))))
    found = asked.json(pool(limits={"nodes": "1"}), pool("b", types=(LARGE,)), nodes)
    (move,) = found["disruptions"]
    assert (move["reason"], move["nodes"], move["evictions"]) == ("Overprovisioned", ["a1"], 15)
    assert move["replacements"] == [{"instanceType": LARGE, "price": PRICE[LARGE], "maxPrice": PRICE[LARGE]}]
    assert move["savings"] == pytest.approx(0.0)
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    assert found["reachable"]["unschedulable"] == []
    sums(found)


def test_pods_of_what_is_too_many_share_with_those_that_wait(asked: Asked) -> None:
    """What is bought for these in any case is bought once."""
    nodes = flat(old("a", SMALL), pods(1, on="a"), old("b"), pods(15, on="b"))
    pending = manifests.pod("pending", cpu=14)
    found = asked.json(pool(limits={"nodes": "1"}), pool("b", types=(LARGE,)), nodes, pending)
    assert [each["instanceType"] for each in found["nodeClaims"]] == [LARGE]
    (move,) = found["disruptions"]
    assert (move["nodes"], move["replacements"], move["savings"]) == (["a"], [], pytest.approx(PRICE[SMALL]))
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    sums(found)


def test_pods_of_what_is_too_many_without_a_place_are_named(asked: Asked) -> None:
    """In the JSON and in the table: what is saved is saved at their expense."""
    objects = flat(pool(limits={"nodes": "1"}), *(each for at in "ab" for each in (old(at), pods(15, on=at))))
    found = asked.json(*objects)
    assert sorted(found["reachable"]["unschedulable"]) == sorted(f"default/a-{at}" for at in range(15))
    assert "15 pods would have no place then: default/a-0, default/a-1" in asked.text(*objects)
    sums(found)


def test_a_pod_that_waits_has_no_place_on_what_is_too_many(asked: Asked) -> None:
    """There is room until that goes: then it is bought for in another pool, or it is named."""
    full = flat(old("a"), pods(15, on="a"), old("b"), manifests.pod("pending", cpu=14))
    alone = asked.json(pool(limits={"nodes": "1"}), full)
    assert alone["existingNodes"] == [{"name": "b", "pods": ["default/pending"]}]
    assert [move["nodes"] for move in alone["disruptions"]] == [["b"]]
    assert alone["reachable"]["unschedulable"] == ["default/pending"]
    found = asked.json(pool(limits={"nodes": "1"}), pool("b", types=(LARGE,)), full)
    (move,) = found["disruptions"]
    assert move["replacements"] == [{"instanceType": LARGE, "price": PRICE[LARGE], "maxPrice": PRICE[LARGE]}]
    assert (move["savings"], move["evictions"]) == (pytest.approx(0.0), 0)
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    assert found["reachable"]["unschedulable"] == []
    sums(found)


def test_a_pod_that_makes_room_for_those_of_what_is_too_many_is_bought_for(asked: Asked) -> None:
    """Whoever loses its place by it counts, wherever that was."""
    nodes = flat(old("a"), pods(15, on="a"), old("b"), pods(1, on="b", cpu=15), old("spare", of="other"))
    small = manifests.pod("pending", cpu="1500m")
    found = asked.json(pool(limits={"nodes": "1"}), pool("other", types=(SMALL, LARGE)), nodes, small)
    assert found["existingNodes"] == [{"name": "spare", "pods": ["default/pending"]}]
    (move,) = found["disruptions"]
    assert (move["nodes"], move["replacements"]) == (
        ["b"],
        [{"instanceType": SMALL, "price": PRICE[SMALL], "maxPrice": PRICE[SMALL]}],
    )
    assert move["savings"] == pytest.approx(PRICE[LARGE] - PRICE[SMALL])
    sums(found)


@pytest.mark.parametrize("waits", [True, False])
def test_an_empty_node_that_those_need_stays(asked: Asked, *, waits: bool) -> None:
    """Who loses the place on a machine that is too many comes there: pods that wait, and pods that ran."""
    nodes = flat(old("a"), pods(15, on="a"), old("b"), old("spare", of="other"))
    more = [manifests.pod("pending", cpu=14)] if waits else pods(15, on="b")
    found = asked.json(pool(limits={"nodes": "1"}), pool("other"), nodes, more)
    assert [move["reason"] for move in found["disruptions"]] == ["Overprovisioned"]
    assert kept(found)["spare"] == "Nominated"
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    assert found["reachable"]["unschedulable"] == []
    sums(found)


def test_a_machine_without_a_known_price_costs_what_is_bought_for_its_pods(asked: Asked) -> None:
    """Nobody knows what its end saves; what comes is paid for."""
    nodes = flat(old("a", "no-such-type"), pods(1, on="a", cpu=2), old("b"), pods(15, on="b"))
    found = asked.json(pool(limits={"nodes": "1"}), pool("b", types=(LARGE,)), nodes)
    (move,) = found["disruptions"]
    assert (move["nodes"], move["savings"], len(move["replacements"])) == (["a"], None, 1)
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    sums(found)


def test_a_pod_that_only_the_end_of_its_nodes_grace_makes_leave_costs_what_it_will_need(asked: Asked) -> None:
    """Nothing is bought in advance for it, and it does not vanish."""
    before = pool()
    after = pool()
    after["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    held = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b", "namespace": "default"}}
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "a"}}}
    nodes = flat(old("a", of=before, terminationGracePeriod="1h"), pods(1, on="a"))
    found = asked.json(after, nodes, {**held, "spec": spec})
    (move,) = found["reachable"]["moves"]
    assert (move["reason"], move["replacements"], move["savings"]) == ("Drifted", [], pytest.approx(PRICE[LARGE]))
    assert found["reachable"]["toBuy"] == pytest.approx(PRICE[SMALL])
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[SMALL])
    sums(found)


def test_pods_that_cost_nothing_to_lose_need_a_place_all_the_same(asked: Asked) -> None:
    """Their node is as good as empty; they are made again."""
    free = pods(1, on="a", annotations={names.POD_DELETION_COST_ANNOTATION: "-2147483648"})
    found = asked.json(pool(), old("a"), free)
    assert [move["reason"] for move in found["reachable"]["moves"]] == ["Empty"]
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[SMALL])
    sums(found)


# --- what growth pools do


def growing(**spec: Any) -> Json:
    """A growth pool of both types."""
    return manifests.growth_pool("g", {"name": SMALL, "max": 9}, {"name": LARGE, "max": 9}, **spec)


def grown(name: str, kind: str = LARGE, **more: Any) -> list[Json]:
    """A node of that pool, and its claim."""
    made = old(name, kind, **more)
    for each in made:
        del each["metadata"]["labels"][names.NODE_POOL_LABEL]
        each["metadata"]["labels"][names.POOL_LABEL] = "g"
    return made


def test_what_a_growth_pool_has_too_many_of_goes_in_its_own_order(asked: Asked) -> None:
    """Empty ones first, then the fewest pods; those who have no place then are named, and an empty one is saved once."""
    nodes = flat(grown("a"), pods(3, on="a", cpu=5), grown("b"), pods(2, on="b", cpu=7), grown("c"))
    found = asked.json(growing(limits={"nodes": 1}), nodes)
    assert found["disruptions"] == [
        {
            "reason": "Overprovisioned",
            "nodePool": "growth.dev/g",
            "nodes": ["c", "b"],
            "replacements": [],
            "savings": pytest.approx(2 * PRICE[LARGE]),
            "evictions": 2,
        }
    ]
    assert set(kept(found)) == {"a"}
    assert [move["nodes"] for move in found["reachable"]["moves"]] == [["c", "b"]]
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[LARGE])
    assert found["reachable"]["unschedulable"] == ["default/b-0", "default/b-1"]
    sums(found)


def test_pods_of_what_a_growth_pool_has_too_many_of_find_places(asked: Asked) -> None:
    """On another pool's node, which therefore stays, or on what that buys."""
    nodes = flat(grown("a"), pods(3, on="a", cpu=5), grown("b"), pods(2, on="b", cpu=7))
    found = asked.json(growing(limits={"nodes": 1}), pool(types=(LARGE,)), nodes, old("spare"))
    assert [(move["nodes"], move["replacements"]) for move in found["disruptions"]] == [(["b"], [])]
    assert kept(found)["spare"] == "Nominated"
    found = asked.json(growing(limits={"nodes": 1}), pool(types=(LARGE,)), nodes)
    (move,) = found["disruptions"]
    assert [each["instanceType"] for each in move["replacements"]] == [LARGE]
    assert found["reachable"]["hourly"] == pytest.approx(2 * PRICE[LARGE])
    sums(found)


def test_no_node_of_a_growth_pool_goes_in_the_place_of_a_paused_one(asked: Asked) -> None:
    """It has its turn and waits for the end of the pause; a pool that is paused keeps them all."""
    held = {"annotations": {names.PAUSED_ANNOTATION: "true"}}
    nodes = flat(grown("a", annotations=held["annotations"]), grown("b"), pods(15, on="b"))
    assert asked.json(growing(limits={"nodes": 1}), nodes)["disruptions"] == []
    nodes = flat(grown("a"), pods(15, on="a"), grown("b"), pods(15, on="b"))
    assert asked.json(growing(limits={"nodes": 1}, metadata=held), nodes)["disruptions"] == []
    assert asked.json(growing(limits={"nodes": 2}), nodes)["disruptions"] == []


def test_an_empty_node_of_a_growth_pool_that_takes_pods_is_no_saving(asked: Asked) -> None:
    """What is reached holds every pod: where one node's pods go to the empty one, that stays."""
    found = asked.json(growing(optimise="Continuous"), grown("a"), grown("b"), pods(1, on="b", cpu=12))
    assert [(move["reason"], move["nodes"]) for move in found["reachable"]["moves"]] == [("Underutilized", ["b"])]
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[LARGE])
    sums(found)


# --- what static pools replace


def changed(**spec: Any) -> tuple[Json, Json]:
    """A static pool of large machines before and after its template was changed."""
    before, after = (pool(types=(LARGE,), **spec) for _ in range(2))
    after["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    return before, after


def statically(asked: Asked, *nodes: str, **spec: Any) -> Any:
    before, after = changed(replicas=len(nodes), **spec)
    return asked.json(after, *(each for at in nodes for each in (old(at, of=before), pods(1, on=at))))


def test_a_static_pool_replaces_what_drifted_within_its_budget(asked: Asked) -> None:
    """As its controller would: the oldest, or the first by name, by what its template allows."""
    found = statically(asked, "a", "b", "c", disruption={"budgets": [{"nodes": "1"}]})
    assert found["disruptions"] == [
        {
            "reason": "Drifted",
            "nodePool": "default",
            "nodes": ["a"],
            "replacements": [{"instanceType": LARGE, "price": PRICE[LARGE], "maxPrice": PRICE[LARGE]}],
            "savings": 0,
            "evictions": 1,
        }
    ]
    assert kept(found) == {"b": "DriftedWaits", "c": "DriftedWaits"}
    assert [move["nodes"] for move in found["reachable"]["moves"]] == [["a"], ["b"], ["c"]]
    sums(found)


@pytest.mark.parametrize(
    ("spec", "going"),
    [
        ({"limits": {"nodes": "3"}}, ["a"]),
        ({"limits": {"nodes": "4"}}, ["a"]),
        ({"limits": {"nodes": "5"}}, ["a", "b"]),
        ({"limits": {"nodes": "3"}, "disruption": {"nodeLimitMode": "Soft"}}, ["a", "b", "c"]),
        ({}, ["a", "b", "c"]),
    ],
)
def test_a_static_pool_keeps_its_limit_while_it_replaces(asked: Asked, spec: Json, going: list[str]) -> None:
    """A Hard one leaves room beside it, or has one deleted first; a Soft one may be passed."""
    found = statically(asked, "a", "b", "c", **spec)
    assert [name for move in found["disruptions"] for name in move["nodes"]] == going
    assert set(kept(found)) == {"a", "b", "c"} - set(going)


def test_drifted_nodes_of_a_static_pool_say_what_keeps_them(asked: Asked) -> None:
    """A budget of nothing, an annotation, or nothing that could be bought."""
    assert kept(statically(asked, "a", disruption={"budgets": [{"nodes": "0"}]})) == {"a": "Budget"}
    before, after = changed(replicas=1)
    held = old("a", of=before, annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
    assert kept(asked.json(after, held)) == {"a": "DoNotDisrupt"}
    needs = after["spec"]["template"]["spec"]["requirements"]
    needs.append(manifests.need(names.ZONE_LABEL, "In", "nowhere"))
    found = asked.json(after, old("a", of=before))
    assert kept(found) == {"a": "StaticNodePool"}
    assert "nothing can be bought in its place" in found["kept"][0]["message"]


@pytest.mark.parametrize(("protected", "going"), [("true", ["b"]), ("false", [])])
def test_a_machine_that_stays_beside_its_replacement_takes_no_budget_of_its_static_pool(
    asked: Asked, protected: str, going: list[str]
) -> None:
    """It goes when nothing holds it any more; until then the next is replaced. One that may go takes its part."""
    before, after = changed(replicas=3, disruption={"budgets": [{"nodes": "1"}]})
    stays = old("a", of=before, annotations={names.DO_NOT_DISRUPT_ANNOTATION: protected})
    newer = machine("n", of=after, annotations={names.REPLACES_ANNOTATION: "a"})
    found = asked.json(after, stays, newer, *(each for at in "bc" for each in (old(at, of=before), pods(1, on=at))))
    assert [name for move in found["disruptions"] for name in move["nodes"]] == going


@pytest.mark.parametrize(("ready", "going"), [(True, ["a"]), (False, [])])
def test_a_machine_in_doubt_counts_for_the_budget_of_its_static_pool(
    asked: Asked, *, ready: bool, going: list[str]
) -> None:
    """As one of its nodes, and as one that is disturbed where it is not ready: its pool counts claims."""
    before, after = changed(replicas=2, disruption={"budgets": [{"nodes": "1"}]})
    twin = old("b", of=before, ready=ready)
    other = {**twin[1], "metadata": {**twin[1]["metadata"], "name": "c"}}
    found = asked.json(after, old("a", of=before), pods(1, on="a"), twin, other)
    assert [name for move in found["disruptions"] for name in move["nodes"]] == going
    assert kept(found).items() >= {"b": "Doubtful", "c": "Doubtful"}.items()


def test_a_share_of_a_static_pools_nodes_is_of_those_in_doubt_too(asked: Asked) -> None:
    """A half of three machines is two."""
    before, after = changed(replicas=3, disruption={"budgets": [{"nodes": "50%"}]})
    twin = old("c", of=before)
    other = {**twin[1], "metadata": {**twin[1]["metadata"], "name": "d"}}
    found = asked.json(after, old("a", of=before), old("b", of=before), twin, other)
    assert [name for move in found["disruptions"] for name in move["nodes"]] == ["a", "b"]


def test_a_static_pool_comes_to_its_number_before_it_replaces(asked: Asked) -> None:
    """What is too many goes first, and what is missing comes first."""
    before, after = changed(replicas=2)
    nodes = [old(at, of=before) for at in "abc"]
    found = asked.json(after, *nodes)
    assert [move["reason"] for move in found["disruptions"]] == ["Overprovisioned"]
    assert kept(asked.json(after, nodes[0])) == {"a": "DriftedWaits"}


def test_pods_that_do_not_fit_where_a_static_pool_replaces_their_node_are_told(asked: Asked) -> None:
    """It asks no pod what it needs: they go where there is room, are bought for in another pool, or are named."""
    before, after = (pool(replicas=1) for _ in range(2))
    after["spec"]["template"]["metadata"] = {"labels": {"team": "b"}}
    small, big = pods(2, on="a", cpu="500m")
    big["spec"]["containers"][0]["resources"]["requests"]["cpu"] = 14
    nodes = flat(old("a", of=before), small, big)
    alone = asked.json(after, nodes)
    (cheapest,) = alone["disruptions"][0]["replacements"]
    assert alone["reachable"]["unschedulable"] == ["default/a-1"]
    assert alone["reachable"]["hourly"] == pytest.approx(cheapest["price"])
    found = asked.json(after, pool("other", types=(LARGE,)), nodes)
    assert found["reachable"]["unschedulable"] == []
    assert found["reachable"]["toBuy"] == pytest.approx(PRICE[LARGE])
    assert found["reachable"]["hourly"] == pytest.approx(cheapest["price"] + PRICE[LARGE])
    sums(found)
    room = old("b", of="other", annotations={names.DO_NOT_DISRUPT_ANNOTATION: "true"})
    held = asked.json(after, pool("other", types=(LARGE,)), nodes, room)
    assert held["reachable"]["unschedulable"] == []
    assert held["reachable"]["toBuy"] == 0


def test_no_pod_is_moved_to_what_a_static_pool_replaces(asked: Asked) -> None:
    """It would move again at once, and what comes is no larger for it. Where the budget keeps the node it takes pods."""

    def found(budget: str) -> Any:
        before, after = (pool("s", types=(SMALL, LARGE), replicas=1) for _ in range(2))
        after["spec"] |= {"disruption": {"budgets": [{"nodes": budget, "reasons": ["Drifted"]}]}}
        after["spec"]["template"]["metadata"] = {"annotations": {"team": "b"}}
        return asked.json(after, old("s", of=before), pods(1, on="s"), pool(types=(LARGE,)), old("a"), pods(10, on="a"))

    going = found("1")
    assert [(move["reason"], move["nodes"]) for move in going["disruptions"]] == [("Drifted", ["s"])]
    assert kept(going) == {"a": "InUse"}
    assert going["reachable"]["hourly"] == pytest.approx(PRICE[SMALL] + PRICE[LARGE])
    staying = found("0")
    assert [(move["reason"], move["nodes"]) for move in staying["disruptions"]] == [("Underutilized", ["a"])]


@pytest.mark.parametrize("arguments", [(), ("--consolidate",)])
def test_what_a_static_pool_lacks_is_told(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, arguments: tuple[str, ...]
) -> None:
    """It is bought at once and for nobody, so that it is in no plan for pods: how much, and why not where nothing can be."""
    short = pool(types=(LARGE,), replicas=3)
    assert run(["plan", "-f", written(tmp_path, *flat(short, old("a"))), *arguments]) == 0
    said = capsys.readouterr().err
    assert (
        "NodePool default is static and lacks 2 machines: beside this plan 2 x c-16x-amd64-linux at $0.4344/h" in said
    )
    short["spec"]["template"]["spec"]["requirements"].append(manifests.need(names.ZONE_LABEL, "In", "nowhere"))
    assert run(["plan", "-f", written(tmp_path, *flat(short, old("a"))), *arguments]) == 0
    assert "NodePool default is static and lacks 2 machines, and nothing can be bought: " in capsys.readouterr().err
    for enough in (pool(replicas=1), pool(replicas=3, limits={"nodes": "1"}), pool()):
        assert run(["plan", "-f", written(tmp_path, *flat(enough, old("a"))), *arguments]) == 0
        assert "lacks" not in capsys.readouterr().err


def test_what_a_static_pool_lacks_is_paid_for(asked: Asked) -> None:
    """What is reached has it; the plan for pods does not."""
    found = asked.json(pool(types=(LARGE,), replicas=3), old("a"))
    assert found["nodeClaims"] == []
    assert found["reachable"]["toBuy"] == pytest.approx(2 * PRICE[LARGE])
    assert found["reachable"]["hourly"] == pytest.approx(3 * PRICE[LARGE])
    sums(found)


# --- room that is kept


def buffer(**spec: Any) -> Json:
    meta = {"name": "spare", "namespace": "default"}
    return {"apiVersion": "autoscaling.x-k8s.io/v1beta1", "kind": "CapacityBuffer", "metadata": meta, "spec": spec}


TEMPLATE: Json = {
    "apiVersion": "v1",
    "kind": "PodTemplate",
    "metadata": {"name": "spare", "namespace": "default"},
    "template": {"spec": manifests.pod("spare", cpu=8)["spec"]},
}


def test_room_that_a_buffer_keeps_stays(asked: Asked) -> None:
    """Its node is not empty, and nobody is moved there; without the buffer one of the two nodes would go."""
    cluster = flat(pool(limits={"nodes": "2"}), old("a"), pods(5, on="a"), old("b"), pods(5, on="b"))
    assert len(asked.json(cluster)["disruptions"]) == 1
    found = asked.json(cluster, TEMPLATE, buffer(podTemplateRef={"name": "spare"}, replicas=1))
    assert found["disruptions"] == []
    assert "CapacityBuffer" in kept(found).values()
    assert found["summary"]["pods"] == 1


def test_a_buffers_pods_are_planned_for(asked: Asked) -> None:
    """As Growth buys room for them in advance: of a template, or of a workload by its share."""
    web = manifests.workload("Deployment", "web", replicas=4)
    share = buffer(scalableRef={"apiGroup": "apps", "kind": "Deployment", "name": "web"}, percentage=50)
    assert asked.json(pool(), web, share)["summary"]["pods"] == 6
    assert asked.json(pool(), TEMPLATE, buffer(podTemplateRef={"name": "spare"}, replicas=3))["summary"]["pods"] == 3


def test_a_buffer_of_nothing_is_told_and_keeps_no_room(
    asked: Asked, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """One line says which, and why; other strategies are other programs' business and no matter."""
    lost = buffer(podTemplateRef={"name": "missing"}, replicas=1)
    assert run(["plan", "-f", written(tmp_path, pool(), lost)]) == 0
    said = capsys.readouterr().err
    assert "CapacityBuffer default/spare keeps no room: there is no PodTemplate missing in namespace default" in said
    other = buffer(podTemplateRef={"name": "spare"}, replicas=1, provisioningStrategy="example.com/other")
    assert asked.json(pool(), TEMPLATE, other)["summary"]["pods"] == 0


def test_what_the_cluster_costs_and_could_cost_is_said_with_the_moves(asked: Asked) -> None:
    """A month today, a month after all moves, and each of them; budgets only pace, and do not count."""
    slow = pool(disruption={"budgets": [{"nodes": "0"}], "consolidateAfter": "1h"})
    objects = (slow, old("a"), old("b"), pods(1, on="a"))
    found = asked.json(*objects)
    assert found["disruptions"] == []
    assert found["reachable"]["today"] == pytest.approx(2 * PRICE[LARGE])
    assert found["reachable"]["hourly"] == pytest.approx(PRICE[SMALL])
    assert sum(each["savings"] for each in found["reachable"]["moves"]) == pytest.approx(
        2 * PRICE[LARGE] - PRICE[SMALL]
    )
    lines = asked.text(*objects).splitlines()
    at = lines.index("Today $634.17/month, reachable $39.64/month, 2 moves:")
    assert lines[at + 1 :] == [
        "  1. remove b (Empty): $317.08/month less",
        "  2. replace a by c-2x-amd64-linux (Underutilized, 1 pod to move): $277.45/month less",
    ]


def test_nodes_that_are_not_ready_keep_no_other_from_what_is_reached(asked: Asked) -> None:
    """They use up a budget, and budgets do not count here: of any kind of pool."""
    slow = pool(disruption={"budgets": [{"nodes": "50%"}]})
    found = asked.json(slow, old("a", ready=False), old("b"), old("c"))
    assert found["reachable"]["hourly"] == 0.0
    before, after = changed(replicas=3)
    found = asked.json(after, old("a", of=before, ready=False), old("b", of=before), old("c", of=before))
    assert len(found["reachable"]["moves"]) == 3
