"""Whatever a file holds, it is planned with or refused in one line."""

import copy
import datetime as dt
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from growth.api.kinds import Json
from growth.cli.errors import UsageError
from growth.cli.manifests.collection import OURS, Collected, Collection
from growth.cli.manifests.documents import split
from growth.cluster.assemble import assemble
from growth.planning.overlays import overlaid
from growth.planning.solve import solve
from growth.providers.catalogues import builtin
from tests.good_objects import GOOD_OBJECTS
from tests.manifests import claim, growth_pool, need, node, node_pool, overlay, owned_by, pod, workload

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)

SPREAD = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "a"}}}
SELECTOR = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": [need("app", "Exists")]}}
AFFINITY = {
    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [SELECTOR]},
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [need("kubernetes.io/arch", "In", "amd64")]}]
        }
    },
}
OBJECTS: list[Json] = [
    *(each.object for each in GOOD_OBJECTS if each.kind in OURS),
    pod("p", affinity=AFFINITY, topologySpreadConstraints=[SPREAD], tolerations=[{"operator": "Exists"}]),
    pod("bound", nodeName="n", metadata=owned_by("DaemonSet", "d"), status={"phase": "Running"}),
    workload("Deployment", "web", replicas=2),
    workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": {}}]),
    workload("Job", "job", parallelism=2, completions=1),
    workload("DaemonSet", "d"),
    node("n", labels={"node.kubernetes.io/instance-type": "c-1x-amd64-linux"}, provider="x"),
    claim(
        "c", need("node.kubernetes.io/instance-type", "In", "c-1x-amd64-linux"), labels={"karpenter.sh/nodepool": "a"}
    ),
    node_pool("a", limits={"cpu": 10}, metadata={"annotations": {"growth.dev/reserved": '{"x": {}}'}}),
    growth_pool("default", {"name": "c-1x-amd64-linux", "max": 2}),
    overlay("o", priceAdjustment="+10%", capacity={"a.b/c": 1}),
]

JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.sampled_from(["", "x", "-1", "1e400", "10%", "Exists", "2026-13-01", "\u0000", "a" * 400]),
    st.builds(list),
    st.builds(lambda: [None]),
    st.builds(dict),
    st.builds(lambda: {"": None}),
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for key, inner in value.items():
            found += _places(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += _places(inner, (*path, index))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> Json:
    whole = copy.deepcopy(draw(st.sampled_from(OBJECTS)))
    for _ in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(_places(whole)))
        holder: Any = whole
        for step in path[:-1]:
            holder = holder[step]
        if draw(st.booleans()):
            holder[path[-1]] = draw(JUNK)
        else:
            del holder[path[-1]]
        if not whole:
            break
    return whole


def read(body: bytes) -> Collected | str:
    """What was read, or why it was refused."""
    collection = Collection()
    try:
        for document in split(body, "test.json"):
            collection.add(document)
        return collection.finished()
    except UsageError as error:
        return str(error)


@given(st.lists(damaged(), max_size=4))
def test_damaged_manifests_are_planned_with_or_refused(objects: list[Json]) -> None:
    """No other error ends the command; what is refused says the file."""
    collected = read(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}).encode())
    if isinstance(collected, str):
        assert collected.startswith("test.json: ")
        return
    found = assemble(collected.objects, builtin("kwok"), now=NOW)
    snapshot, _ = overlaid(found.snapshot, collected.overlays)
    plan = solve(snapshot, found.demands)
    placed = {pod for claim in plan.claims for pod in claim.pods} | {pod for node in plan.filled for pod in node.pods}
    assert placed | {each.pod for each in plan.unplaced} == {demand.key for demand in found.demands}


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """JSON, YAML or neither."""
    collected = read(body)
    assert not isinstance(collected, str) or collected.startswith("test.json: ")
