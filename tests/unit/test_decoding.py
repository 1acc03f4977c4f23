"""Reading what servers send, also where it is emptier or newer than our structs."""

import datetime as dt
from typing import Any

import msgspec
import pytest

from growth.api.coordination import Lease
from growth.api.core import Secret
from growth.api.decoding import convert, decode
from growth.api.events import Event
from growth.api.growthpools import GrowthPool
from growth.api.karpenter import Budget, NodePool
from growth.api.kinds import Json
from growth.api.meta import OwnerReference
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.policy import PodDisruptionBudget
from growth.api.volumes import CSINode
from growth.api.workloads import Deployment
from tests.good_objects import GOOD_OBJECTS, GoodObject, need, node_pool


def read(document: Json, kind: type[Any]) -> Any:
    """The document decoded from text and from plain dicts, which must agree."""
    decoded = decode(msgspec.json.encode(document), kind)
    assert convert(document, kind) == decoded
    return decoded


@pytest.mark.parametrize("kind", [Pod, Node, Deployment, CSINode, Lease, Event, PodDisruptionBudget])
def test_missing_null_and_empty_are_the_same(kind: type[Any]) -> None:
    """Kubernetes treats a field that is missing, null or empty alike, and so do we."""
    missing = read({}, kind)
    assert read({"metadata": None, "spec": None, "status": None}, kind) == missing
    assert read({"metadata": {}, "spec": {}, "status": {}}, kind) == missing
    assert read({"metadata": {"creationTimestamp": None, "labels": None, "finalizers": None}}, kind) == missing


def test_a_null_list_of_drivers_is_an_empty_one() -> None:
    """A CSINode without drivers comes with `drivers: null`."""
    assert read({"metadata": {"name": "n"}, "spec": {"drivers": None}}, CSINode).spec.drivers == ()


def test_nulls_deep_inside_lists_are_forgiven() -> None:
    """A null in one entry costs neither the entry nor its neighbours."""
    containers = [
        {"name": "a", "resources": None, "ports": None},
        {"name": "b", "resources": {"requests": {"cpu": "1"}}},
    ]
    pod = read({"spec": {"containers": containers, "tolerations": None}}, Pod)
    assert [each.name for each in pod.spec.containers] == ["a", "b"]
    assert pod.spec.containers[1].resources.requests == {"cpu": "1"}


def test_words_that_we_do_not_know_are_read() -> None:
    """Operators, policies and phases of a newer server are text to us; nobody fails on them before acting on them."""
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]}}}  # fmt: skip
    pod = read({"spec": {"affinity": affinity, "preemptionPolicy": "Later"}, "status": {"phase": "Dreaming"}}, Pod)
    terms = pod.spec.affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms
    assert terms[0].match_expressions[0].operator == "Near"
    assert pod.status.phase == "Dreaming"


def test_rules_for_servers_do_not_bind_readers() -> None:
    """A stored object may be older or newer than the rules of its definition: it is read all the same."""
    pool = node_pool(need("karpenter.sh/nodepool", "Near"), weight=1000, disruption={"consolidationPolicy": "Later"})
    read_pool = read(pool, NodePool)
    assert read_pool.spec.weight == 1000
    assert read_pool.spec.disruption.consolidation_policy == "Later"


def test_an_object_that_fits_no_struct_names_the_place() -> None:
    """What cannot be forgiven is told with its path."""
    with pytest.raises(msgspec.ValidationError, match=r"\$\.spec\.containers\[0\]\.name"):
        read({"spec": {"containers": [{"name": 1}]}}, Pod)


def test_text_that_is_no_json_is_told_so() -> None:
    """Half an answer is not an object."""
    with pytest.raises(msgspec.DecodeError):
        decode(b'{"spec": ', Pod)


def test_times_have_their_zone() -> None:
    """Whole seconds and microseconds, as the two kinds of times come."""
    lease = read({"spec": {"renewTime": "2026-11-15T17:00:00.000001Z"}}, Lease)
    assert lease.spec.renew_time == dt.datetime(2026, 11, 15, 17, 0, 0, 1, tzinfo=dt.UTC)
    event = read({"firstTimestamp": "2026-11-15T17:00:00Z", "lastTimestamp": None, "eventTime": None}, Event)
    assert event.first_timestamp == dt.datetime(2026, 11, 15, 17, tzinfo=dt.UTC)
    assert event.last_timestamp is None


def test_counts_or_percentages_keep_their_form() -> None:
    """An int-or-string field holds what was written."""
    budget = read({"spec": {"minAvailable": 1, "maxUnavailable": "25%"}}, PodDisruptionBudget)
    assert (budget.spec.min_available, budget.spec.max_unavailable) == (1, "25%")


def test_quantities_are_kept_as_they_came() -> None:
    """Custom resources and files hold numbers where servers of core objects send text."""
    pool = read(node_pool(limits={"cpu": 1000, "memory": "1Gi"}), NodePool)
    assert pool.spec.limits == {"cpu": 1000, "memory": "1Gi"}
    pod = read({"spec": {"overhead": {"cpu": 0.5, "memory": "64Mi"}}}, Pod)
    assert pod.spec.overhead == {"cpu": 0.5, "memory": "64Mi"}


def test_an_empty_list_of_budgets_is_no_default() -> None:
    """Whoever writes `budgets: []` has said something else than one who writes nothing."""
    assert read(node_pool(), NodePool).spec.disruption.budgets == (Budget(nodes="10%"),)
    assert read(node_pool(disruption={"budgets": []}), NodePool).spec.disruption.budgets == ()


def test_unset_and_empty_differ_where_kubernetes_says_so() -> None:
    """A selector that is missing selects nothing, an empty one everything; no storage class is not the default one."""
    missing = read({"spec": {}}, PodDisruptionBudget).spec.selector
    empty = read({"spec": {"selector": {}}}, PodDisruptionBudget).spec.selector
    assert missing is None
    assert empty is not None


def test_a_secret_does_not_show_its_values() -> None:
    """Neither printed nor formatted does a Secret give away more than its keys."""
    secret = read({"metadata": {"name": "s", "namespace": "n"}, "data": {"token": "aHVudGVyMg=="}}, Secret)
    assert secret.data == {"token": b"hunter2"}
    for text in (repr(secret), str(secret), f"{secret}", f"{[secret]}"):
        assert "hunter2" not in text
        assert "aHVudGVyMg" not in text


def test_two_owners_differ_by_uid() -> None:
    """Structs are values: equal when all their fields are."""
    owner = OwnerReference(api_version="v1", kind="Node", name="n", uid="1")
    assert owner == OwnerReference(api_version="v1", kind="Node", name="n", uid="1")
    assert owner != OwnerReference(api_version="v1", kind="Node", name="n", uid="2")


@pytest.mark.parametrize("good", GOOD_OBJECTS, ids=lambda good: good.name)
def test_a_good_object_read_written_and_read_again_is_the_same_value(good: GoodObject) -> None:
    """Encoding leaves out defaults only: what our structs hold of an object survives being written."""
    struct = read(good.object, good.kind.type)
    assert read(msgspec.to_builtins(struct), good.kind.type) == struct


def test_a_growth_pool_has_its_defaults() -> None:
    """What the definition fills in on a server is filled in for files too."""
    pool = read({"metadata": {"name": "p"}, "spec": {"serverTypes": [{"name": "CAX11", "max": 3}]}}, GrowthPool)
    (server_type,) = pool.spec.server_types
    assert (server_type.min, server_type.max, server_type.priority) == (0, 3, 0)
    assert (pool.spec.optimise, pool.spec.scale_down_after, pool.spec.limits.nodes) == ("WhenEmpty", "10m", None)
