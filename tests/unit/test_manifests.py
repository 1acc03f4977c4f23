"""Manifests: what is read, expanded, checked, skipped and refused."""

import json
import pathlib
from typing import Any, Final

import pytest
import yaml

from growth.api.kinds import Json
from growth.cli.errors import UsageError
from growth.cli.manifests.collection import OURS, Collected, Collection
from growth.cli.manifests.documents import Document, Place, documents, split
from tests.bad_objects import BAD_OBJECTS, BadObject
from tests.good_objects import GOOD_OBJECTS, GoodObject
from tests.manifests import growth_pool, node_pool, owned_by, pod, pod_spec, workload, written


def read(text: str | bytes, *, file: str = "test.yaml") -> Collection:
    collection = Collection()
    for document in split(text.encode() if isinstance(text, str) else text, file):
        collection.add(document)
    return collection


def collected(*objects: Json, **finish: Any) -> Collected:
    return read(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})).finished(**finish)


def pods(*objects: Json) -> list[str]:
    return [f"{each.namespace}/{each.name}" for each in collected(*objects).objects.pods]


def refused(text: str | bytes, *, file: str = "test.yaml") -> str:
    with pytest.raises(UsageError) as caught:
        read(text, file=file).finished()
    return str(caught.value)


def refusal(*objects: Json) -> str:
    return refused("\n---\n".join(json.dumps(each) for each in objects))


# --- files


def test_yaml_and_json_documents_and_lists_are_read_alike() -> None:
    """Several documents, Lists of anything, lists of one kind, JSON texts in a row, a bare array."""
    one, two = pod("one"), pod("two")
    bare = {key: value for key, value in two.items() if key not in {"apiVersion", "kind"}}
    texts = {
        "documents.yaml": yaml.safe_dump_all([one, two]),
        "list.yaml": yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [one, two]}),
        "list.json": json.dumps({"kind": "List", "apiVersion": "v1", "items": [one, two]}),
        "pods.json": json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": [one, bare]}),
        "pods.yaml": yaml.safe_dump({"kind": "PodList", "apiVersion": "v1", "items": [one, bare]}),
        "nested.json": json.dumps(
            {"kind": "List", "apiVersion": "v1", "items": [one, {"kind": "List", "apiVersion": "v1", "items": [two]}]}
        ),
        "row.json": json.dumps(one) + "\n" + json.dumps(two),
        "array.json": json.dumps([one, two]),
        "empty-documents.yaml": "---\n---\n" + yaml.safe_dump(one) + "---\n# nothing\n---\n" + yaml.safe_dump(two),
        "bom.json": "\ufeff" + json.dumps([one, two]),
    }
    for file, text in texts.items():
        found = read(text, file=file).finished().objects.pods
        assert [each.name for each in found] == ["one", "two"], file


def test_a_folder_is_read_whole_and_in_order(tmp_path: pathlib.Path) -> None:
    """Manifests below it, and nothing else that lies there."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.json").write_text(json.dumps(pod("two")))
    (tmp_path / "a.yml").write_text(yaml.safe_dump(pod("one")))
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [document.title for document in documents([str(tmp_path)])] == ["Pod default/one", "Pod default/two"]


@pytest.mark.parametrize("name", ["none.yaml", "empty"])
def test_a_source_that_gives_nothing_is_refused(tmp_path: pathlib.Path, name: str) -> None:
    """A file that is not there, a folder without manifests."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=name):
        list(documents([str(tmp_path / name)]))


def test_scalars_are_read_as_kubernetes_reads_them() -> None:
    """Times stay text, `22:22` is no number to the base of sixty, `0x10` and `1.5` are numbers."""
    text = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  labels: {at: 2026-01-01, port: 22:22}\nspec: {priority: 0x10}\n"
    (found,) = read(text).finished().objects.pods
    assert found.shape.labels == {"at": "2026-01-01", "port": "22:22"}
    assert found.shape.spec.priority == 16


def test_nulls_count_as_absent() -> None:
    """As in Go."""
    odd = pod("a", affinity=None, tolerations=None)
    odd["status"] = None
    odd["metadata"]["labels"] = None
    assert pods(odd) == ["default/a"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [b", "test.yaml: is not YAML: "),
        ("just words", "test.yaml: document 1: is no object"),
        ("apiVersion: v1", "test.yaml: document 1: kind is missing"),
        ("kind: Pod", "test.yaml: document 1 (Pod): apiVersion is missing"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}\n", "document 1 (Pod without a name): metadata.name: is missing"),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {priority: high}\n",
            "document 1 (Pod a): spec.priority: expected int | null, got str",
        ),
        (b"\xff\xfe\x00", "test.yaml: is not "),
    ],
)
def test_a_text_that_is_no_manifest_is_refused(text: str | bytes, told: str) -> None:
    """In one line: file, document, field, reason."""
    assert told in refused(text)


def test_broken_json_names_the_file() -> None:
    """And where it breaks."""
    assert refused('{"kind": "List", "items": [', file="x.json").startswith("x.json: is not JSON: ")


def test_an_item_of_a_list_is_named_by_its_number() -> None:
    """Counted from one, like documents."""
    bad = pod("b", cpu="much")
    text = refused(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("a"), bad]}), file="x.json")
    assert text.startswith("x.json: document 1, item 2 (Pod default/b): spec.containers[0].resources.requests.cpu: ")


# --- workloads


def test_workloads_become_pods() -> None:
    """One a replica, named by an index; the namespace is the workload's."""
    found = pods(
        workload("Deployment", "web", replicas=2),
        workload("ReplicaSet", "rs"),
        workload("StatefulSet", "db", replicas=2),
        workload("Job", "batch", parallelism=3, completions=2),
        workload("DaemonSet", "log"),
    )
    assert found == [
        "default/web-0",
        "default/web-1",
        "default/rs-0",
        "default/db-0",
        "default/db-1",
        "default/batch-0",
        "default/batch-1",
    ]


@pytest.mark.parametrize(
    ("spec", "status", "number"),
    [
        ({}, {}, 1),
        ({"parallelism": 4}, {}, 4),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 8}, 2),
        ({"parallelism": 4, "suspend": True}, {}, 0),
        ({"parallelism": 4}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
    ],
)
def test_a_job_runs_as_many_pods_as_it_still_needs(spec: Json, status: Json, number: int) -> None:
    """No more than its parallelism, no more than its completions that are left, none when it is over."""
    assert len(pods({**workload("Job", "j", **spec), "status": status})) == number


def test_pods_that_are_there_are_not_made_again() -> None:
    """A whole namespace, as `kubectl get` prints it, counts every pod once."""
    hashed = {"app": "web", "pod-template-hash": "5d4f"}
    replicas = workload("ReplicaSet", "web-5d4f", replicas=3, labels=hashed)
    replicas["metadata"].update(owned_by("Deployment", "web"))

    def web(name: str, **more: Any) -> Json:
        return pod(name, metadata={"labels": hashed, **owned_by("ReplicaSet", "web-5d4f")}, **more)

    found = pods(
        workload("Deployment", "web", replicas=3),
        replicas,
        web("web-5d4f-a"),
        web("web-5d4f-b", nodeName="n"),
        web("web-5d4f-c", status={"phase": "Failed"}),
        workload("StatefulSet", "db", replicas=2),
        pod("db-0", metadata=owned_by("StatefulSet", "db")),
    )
    assert found == [
        "default/web-5d4f-a",
        "default/web-5d4f-b",
        "default/web-5d4f-c",
        "default/db-0",
        "default/web-0",
        "default/db-1",
    ]


def test_a_stateful_sets_pods_have_claims_of_their_own() -> None:
    """Unbound, named by template, set and ordinal; those that are given are not made again."""
    template = {"metadata": {"name": "data"}, "spec": {"storageClassName": "fast", "accessModes": ["ReadWriteOnce"]}}
    given = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data-db-0", "namespace": "default"},
        "spec": {"volumeName": "pv"},
    }
    found = collected(
        workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=[template]), given, provisioner="csi.x"
    )
    claims = {each.metadata.name: each.spec.volume_name for each in found.objects.volume_claims}
    assert claims == {"data-db-0": "pv", "data-db-1": ""}
    used = [volume.persistent_volume_claim for each in found.objects.pods for volume in each.shape.spec.volumes]
    assert [each.claim_name for each in used if each is not None] == ["data-db-0", "data-db-1"]
    assert [(each.metadata.name, each.provisioner) for each in found.objects.storage_classes] == [("fast", "csi.x")]
    assert any("no StorageClass is given" in note for note in found.notes)


def test_a_fault_in_a_template_is_refused_with_its_path() -> None:
    """Before anything is expanded."""
    text = refusal(workload("Deployment", "web", template=pod_spec(memory="lots")))
    assert text.startswith("test.yaml: document 1 (Deployment default/web): ")
    assert "spec.template.spec.containers[0].resources.requests.memory: " in text


# --- priorities


def priority_class(name: str, value: int, **more: Any) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def test_priorities_are_resolved_as_admission_does() -> None:
    """By class, by the default class, by the classes that every cluster has; a number that is there stays."""
    found = collected(
        pod("plain"),
        pod("urgent", priorityClassName="urgent"),
        pod("system", priorityClassName="system-node-critical"),
        pod("given", priority=3, priorityClassName="urgent"),
        priority_class("urgent", 1000),
        priority_class("usual", 7, globalDefault=True),
    )
    assert {each.name: each.shape.spec.priority for each in found.objects.pods} == {
        "plain": 7,
        "urgent": 1000,
        "system": 2_000_001_000,
        "given": 3,
    }


def test_an_unknown_priority_class_is_refused() -> None:
    """By name, with those that there are."""
    text = refusal(pod("p", priorityClassName="nope"), priority_class("urgent", 1))
    assert text.startswith(
        "test.yaml: document 1 (Pod default/p): spec.priorityClassName: PriorityClass nope does not exist"
    )
    assert "urgent" in text


# --- our kinds


@pytest.mark.parametrize("good", [each for each in GOOD_OBJECTS if each.kind in OURS], ids=lambda each: each.name)
def test_what_servers_accept_is_accepted(good: GoodObject) -> None:
    """Without a word about unknown fields; what a buffer stands for is not here, which is another matter."""
    assert [each for each in collected(good.object).notes if "keeps no room" not in each] == []


@pytest.mark.parametrize("bad", [each for each in BAD_OBJECTS if each.kind in OURS], ids=lambda each: each.name)
def test_what_servers_refuse_is_refused_with_its_field(bad: BadObject) -> None:
    """The same field that a server names."""
    text = refusal(bad.object)
    assert text.startswith(f"test.yaml: document 1 ({bad.kind.kind} ")
    assert bad.field in text


def test_a_misspelled_field_is_said() -> None:
    """A server would drop it without a word, and the limit with it."""
    found = collected(node_pool(limit={"cpu": "10"}))
    assert found.notes == ("test.yaml: document 1, item 1 (NodePool default): unknown fields are ignored: spec.limit",)


def test_older_spellings_are_read_with_a_warning() -> None:
    """`growth/v1alpha1`, and what Karpenter served before its 1.0."""
    old = {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "metadata": {"name": "old"},
        "spec": {
            "disruption": {"consolidationPolicy": "WhenUnderutilized", "expireAfter": "24h"},
            "template": {
                "spec": {
                    "nodeClassRef": {"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "name": "x"},
                    "kubelet": {"maxPods": 20},
                    "requirements": [{"key": "a", "operator": "Exists", "minValues": 2}],
                }
            },
        },
    }
    found = collected(old, {**growth_pool("mine"), "apiVersion": "growth/v1alpha1"})
    (pool,) = found.objects.pools
    assert pool.spec.template.spec.expire_after == "24h"
    assert pool.spec.template.spec.node_class_ref.group == "karpenter.k8s.aws"
    assert pool.spec.disruption.consolidation_policy == "WhenEmptyOrUnderutilized"
    assert found.objects.growth_pools[0].metadata.name == "mine"
    assert found.notes == (
        "apiVersion growth/v1alpha1 (1 object) is read as growth.dev/v1alpha1: write that instead",
        "apiVersion karpenter.sh/v1beta1 (1 object) is read as karpenter.sh/v1: write that instead",
    )


def test_an_example_that_leaves_out_name_and_class_is_read() -> None:
    """Examples of the older API show only what they are about."""
    example = {
        "apiVersion": "karpenter.sh/v1beta1",
        "kind": "NodePool",
        "spec": {"template": {"spec": {"requirements": [{"key": "a", "operator": "Exists"}]}}},
    }
    (pool,) = collected(example).objects.pools
    assert pool.metadata.name == "default"


# --- what is left out


def test_unknown_kinds_are_skipped_with_one_line_a_kind() -> None:
    """However many there are."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "aHVudGVyMg=="}}
    found = collected(service, service, secret, workload("CronJob", "nightly"))
    assert [note.partition(" is ")[0] for note in found.notes] == [
        "v1 Secret (1 object)",
        "v1 Service (2 objects)",
        "batch/v1 CronJob (1 object)",
    ]
    assert not found.objects.pods
    assert not any("aHVudGVyMg" in note for note in found.notes)


def test_an_object_that_comes_again_counts_once() -> None:
    """The last one, as when both are applied."""
    found = collected(pod("a", cpu="1"), pod("a", cpu="2"))
    (kept,) = found.objects.pods
    assert kept.shape.spec.containers[0].resources.requests["cpu"] == "2"
    assert found.notes == ("1 object came again under the same name: the last one counts",)


def test_pods_to_be_named_by_the_server_get_names() -> None:
    """Each its own."""
    unnamed = pod("")
    unnamed["metadata"] = {"generateName": "run-"}
    assert pods(unnamed, unnamed) == ["default/run-1", "default/run-2"]


# --- budgets of pods


def budget(**spec: Any) -> Json:
    meta = {"name": "b", "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}


def older(**spec: Any) -> Json:
    return {**budget(**spec), "apiVersion": "policy/v1beta1"}


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        (
            {"key": "a", "operator": "Is", "values": ["b"]},
            "spec.selector.matchExpressions[0].operator: Is is none of In, NotIn, Exists, DoesNotExist",
        ),
        (
            {"key": "a", "operator": "In"},
            "spec.selector.matchExpressions[0].values: operator In needs at least one value",
        ),
    ],
)
def test_a_budget_whose_selector_cannot_be_read_is_refused(expression: Json, told: str) -> None:
    """As a server refuses it: it would protect nothing, and nobody would know."""
    assert told in refusal(budget(maxUnavailable=0, selector={"matchExpressions": [expression]}))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"minAvailable": "x%"}, "spec.minAvailable: 'x%' is neither a whole number nor a percentage from 0% to 100%"),
        ({"minAvailable": "50"}, "spec.minAvailable: '50' is neither a whole number nor a percentage"),
        ({"maxUnavailable": "150%"}, "spec.maxUnavailable: '150%' is neither a whole number nor a percentage"),
        ({"maxUnavailable": -1}, "spec.maxUnavailable: -1 is less than nothing"),
        ({"minAvailable": 1, "maxUnavailable": 1}, "spec: minAvailable and maxUnavailable cannot be both set"),
    ],
)
def test_a_budget_of_no_number_is_refused(spec: Json, told: str) -> None:
    """As a server refuses it: nobody could say what it allows."""
    assert told in refusal(budget(**spec))


@pytest.mark.parametrize("number", [0, 3, "0%", "100%", "050%"])
def test_a_budget_of_a_number_or_a_percentage_is_read(number: int | str) -> None:
    """Whatever servers take."""
    for name in ("minAvailable", "maxUnavailable"):
        assert len(collected(budget(**{name: number})).disruption_budgets) == 1


def test_a_budget_of_the_older_api_protects_what_it_did() -> None:
    """With a warning. An empty selector selected nothing there, and selects everything today."""
    found = collected(older(maxUnavailable=0, selector={"matchLabels": {"app": "a"}}))
    (read,) = found.disruption_budgets
    assert read.spec.selector is not None
    assert read.spec.selector.match_labels == {"app": "a"}
    assert found.notes == ("apiVersion policy/v1beta1 (1 object) is read as policy/v1: write that instead",)
    nothing: list[Json] = [{}, {"matchLabels": {}}]
    for empty in nothing:
        (read,) = collected(older(maxUnavailable=0, selector=empty)).disruption_budgets
        assert read.spec.selector is None
    (read,) = collected(budget(maxUnavailable=0, selector={})).disruption_budgets
    assert read.spec.selector is not None


# --- pod specs


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"requests": {"nvidia.com/gpu": "-1"}}, "spec.containers[0].resources.requests.nvidia.com/gpu: -1 is less"),
        ({"overhead": {"cpu": "x"}}, "spec.overhead.cpu: "),
        ({"tolerations": [{"operator": "Maybe"}]}, "spec.tolerations[0].operator: Maybe is none of Equal, Exists"),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "maxSkew": 0}]},
            "spec.topologySpreadConstraints[0].maxSkew: 0 must be at least 1",
        ),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "spec.topologySpreadConstraints[0].topologyKey: is missing"),
        (
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}
                            ]
                        }
                    }
                }
            },
            "nodeSelectorTerms[0].matchExpressions[0].values: operator Gt needs exactly one value",
        ),
    ],
)
def test_a_pod_that_makes_no_sense_is_refused(spec: Json, told: str) -> None:
    """With the field, rather than planned around."""
    assert told in refusal(pod("p", **spec))


HUGE: Final = 10**30


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"cpu": HUGE}, "spec.containers[0].resources.requests.cpu"),
        ({"memory": -HUGE}, "spec.containers[0].resources.requests.memory"),
        ({"cpu": 1 << 63}, "spec.containers[0].resources.requests.cpu"),
        ({"overhead": {"cpu": HUGE}}, "spec.overhead.cpu"),
        ({"priority": HUGE}, "spec.priority"),
        ({"tolerations": [{"operator": "Exists", "tolerationSeconds": HUGE}]}, "spec.tolerations[0].tolerationSeconds"),
    ],
)
def test_a_number_that_no_server_takes_is_refused(spec: Json, field: str) -> None:
    """In a pod and in a template alike, with the field."""
    told = f"{field}: is more than 64 bits hold"
    assert told in refusal(pod("p", **spec))
    for kind in ("Deployment", "DaemonSet"):
        assert f"spec.template.{told}" in refusal(workload(kind, "web", template=pod_spec(**spec)))


def test_a_priority_that_no_server_takes_is_refused() -> None:
    """Whether or not a pod has it."""
    assert "value: is more than 64 bits hold" in refusal(priority_class("urgent", HUGE))


def test_a_request_above_its_limit_is_refused() -> None:
    """As a server refuses it."""
    odd = pod("p")
    odd["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}
    assert "requests.cpu: 2 is more than the limit 1" in refusal(odd)


def test_a_document_keeps_its_place() -> None:
    """For every message about it."""
    document = Document(Place("f", 2, 3), "v1", "Pod", pod("p"))
    assert str(document.refusal("spec.x", "is odd")) == "f: document 2, item 3 (Pod default/p): spec.x: is odd"


def test_a_written_list_is_read_back(tmp_path: pathlib.Path) -> None:
    """From a file, as `growth plan -f` reads it."""
    collection = Collection()
    for document in documents([written(tmp_path, pod("a"), node_pool())]):
        collection.add(document)
    assert len(collection) == 2
