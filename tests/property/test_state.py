"""The state that is kept up to date change by change says what a count from scratch would say."""

import datetime as dt
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from growth.api.decoding import convert
from growth.api.karpenter import NodeClaim
from growth.api.kinds import Json
from growth.api.nodes import Node
from growth.api.pods import Pod
from growth.api.volumes import VolumeAttachment
from growth.cluster.assemble import Objects, assemble
from growth.cluster.state import State
from growth.kube.api import EventType, WatchEvent
from growth.kube.informer import Informer
from growth.kube.memory import MemoryApi, MemoryServer
from growth.ports import SystemClock, SystemRandom
from growth.providers.catalogues import builtin
from tests.manifests import claim, need, node, pod

NOW = dt.datetime(2026, 1, 1, 12, tzinfo=dt.UTC)
FEW = ("a", "b", "c")
TYPE = "node.kubernetes.io/instance-type"

names = st.sampled_from(FEW)
maybe = st.sampled_from(("", *FEW))
labels = st.sampled_from(
    (
        {},
        {"karpenter.sh/nodepool": "default"},
        {"karpenter.sh/nodepool": "default", "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true"},
    )
)
deleting = st.sampled_from((None, "2026-01-01T11:00:00Z"))


def a_node(name: str, provider: str, own: dict[str, str], gone: str | None) -> Json:
    made = node(name, provider=provider, labels={**own})
    return {**made, "metadata": {**made["metadata"], **({"deletionTimestamp": gone} if gone else {})}}


def a_claim(name: str, provider: str, host: str, gone: str | None) -> Json:
    status: Json = {"nodeName": host} if host else {}
    if provider:
        status |= {"providerID": provider, "capacity": {"cpu": "4"}, "allocatable": {"cpu": "3", "pods": "10"}}
    made = claim(name, need(TYPE, "In", "c-2x-amd64-linux", "c-4x-amd64-linux"), status=status)
    return {**made, "metadata": {**made["metadata"], **({"deletionTimestamp": gone} if gone else {})}}


def a_pod(name: str, host: str, cpu: int, phase: str) -> Json:
    spec: Json = {"nodeName": host} if host else {}
    return pod(name, cpu=f"{cpu}m", status={"phase": phase}, **spec)


def an_attachment(name: str, host: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"nodeName": host, "source": {"persistentVolumeName": name}}}


changes = st.one_of(
    st.tuples(st.just("nodes"), st.builds(a_node, names, maybe, labels, deleting)),
    st.tuples(st.just("claims"), st.builds(a_claim, names, maybe, maybe, deleting)),
    st.tuples(
        st.just("pods"),
        st.builds(
            a_pod, st.sampled_from("uvwxyz"), maybe, st.sampled_from((100, 200)), st.sampled_from(("", "Failed"))
        ),
    ),
    st.tuples(st.just("attachments"), st.builds(an_attachment, names, names)),
    st.tuples(st.sampled_from(("nodes", "claims", "pods", "attachments")), st.sampled_from((*FEW, *"uvwxyz"))),
    st.tuples(st.just("expect"), st.builds(a_claim, names, st.just(""), st.just(""), st.none())),
    st.tuples(st.just("look"), st.none()),
)
TYPES: dict[str, type[Any]] = {"nodes": Node, "claims": NodeClaim, "pods": Pod, "attachments": VolumeAttachment}


class Followed:
    """A state whose watches say what the test tells them to."""

    def __init__(self) -> None:
        clock, random = SystemClock(), SystemRandom()
        self.state = State(MemoryApi(MemoryServer(clock, random)), clock=clock, random=random)
        self.state.catalogue = builtin("kwok")
        self.expected: dict[str, NodeClaim] = {}
        self.revision = 0

    def tell(self, what: str, about: Any) -> None:
        self.revision += 1
        if what == "expect":
            expected = convert(about, NodeClaim)
            if self.state.claims.store.get(expected.metadata.name) is None:
                self.expected[expected.metadata.name] = expected
            self.state.expect(expected)
            return
        informer: Informer[Any, Any] = getattr(self.state, what)
        namespace = "default" if what == "pods" else ""
        if isinstance(about, str):
            known = informer.store.entry((namespace, about))
            if known is None:
                return
            about = {"metadata": {"name": about, "uid": known.uid}, "spec": {}}
            if what == "claims":
                about = {**a_claim("x", "", "", None), **about, "spec": a_claim("x", "", "", None)["spec"]}
            if what == "pods":
                about["spec"] = {"nodeName": known.object.node_name}  # a deletion shows the object as it last was
            if what == "attachments":
                about["spec"] = {"nodeName": known.object.spec.node_name, "source": {}}
            kind = EventType.DELETED
        else:
            kind = EventType.MODIFIED
        meta = {"uid": f"{what}-{about['metadata']['name']}", "resourceVersion": str(self.revision)}
        about = {**about, "metadata": {**about["metadata"], **meta, **({"namespace": namespace} if namespace else {})}}
        if what == "claims":
            self.expected.pop(about["metadata"]["name"], None)
        informer._apply(WatchEvent(kind, convert(about, TYPES[what]), str(self.revision)))

    def check(self) -> None:
        state = self.state
        scratch = assemble(
            Objects(
                pods=tuple(state.pods.store),
                nodes=tuple(state.nodes.store),
                claims=(*state.claims.store, *self.expected.values()),
                attachments=tuple(state.attachments.store),
            ),
            builtin("kwok"),
            now=NOW,
        )
        kept = state.assembled(NOW)
        assert [set(view.pods) for view in kept.snapshot.nodes] == [set(view.pods) for view in scratch.snapshot.nodes]
        assert [_bare(view) for view in kept.snapshot.nodes] == [_bare(view) for view in scratch.snapshot.nodes]
        assert sorted(each.key for each in kept.demands) == sorted(each.key for each in scratch.demands)
        assert kept.warnings == scratch.warnings


def _bare(view: Any) -> Any:
    return [getattr(view, name) for name in view.__dataclass_fields__ if name != "pods"]


@settings(max_examples=200)
@given(st.lists(changes, max_size=40))
def test_a_picture_kept_up_to_date_equals_one_from_scratch(told: list[tuple[str, Any]]) -> None:
    """Whatever nodes, claims and pods come, change, share names or IDs and go, in whatever order."""
    followed = Followed()
    for what, about in told:
        if what == "look":
            followed.check()
        else:
            followed.tell(what, about)
    followed.check()


def test_only_what_changed_is_counted_again() -> None:
    """In a cluster of many machines the news of one pod or one Node costs one machine's work."""
    followed = Followed()
    for at in range(50):
        followed.tell("nodes", a_node(f"n{at}", f"p{at}", {}, None))
        followed.tell("claims", a_claim(f"c{at}", f"p{at}", "", None))
        followed.tell("pods", a_pod(f"pod{at}", f"n{at}", 100, ""))
    followed.check()
    first = followed.state.statistics()
    assert (first.machines, first.counted) == (50, 50)
    followed.tell("pods", a_pod("pod7", "n7", 200, ""))
    followed.check()
    assert followed.state.statistics().counted == 51
    followed.tell("nodes", a_node("n9", "p9", {"zone": "b"}, None))
    followed.check()
    last = followed.state.statistics()
    assert (last.counted, last.matched) == (52, 51)
    followed.check()
    assert followed.state.statistics() == last
