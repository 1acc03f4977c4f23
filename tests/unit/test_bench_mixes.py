"""Benchmark workloads are what their descriptions say, and the same every time."""

import collections
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from bench import catalogues, mixes
from bench.catalogues import DATA_SETTING, DataMissingError
from growth.api.kinds import Json

MIXES: dict[str, Callable[[int], list[Json]]] = {
    "generic": mixes.generic,
    "diverse": mixes.diverse,
    "preferences": mixes.preferences,
    "varied_preferences": mixes.varied_preferences,
    "web": mixes.web,
}


def requests_of(pod: Json) -> dict[str, str]:
    requests: dict[str, str] = pod["spec"]["containers"][0]["resources"]["requests"]
    return requests


def kind_of(pod: Json) -> str:
    spec: dict[str, Any] = pod["spec"]
    if "topologySpreadConstraints" in spec:
        return f"spread {spec['topologySpreadConstraints'][0]['topologyKey']}"
    return ", ".join(spec.get("affinity", {})) or "generic"


@pytest.mark.parametrize("name", MIXES)
def test_equal_arguments_give_equal_pods(name: str) -> None:
    """A mix depends on nothing but its size."""
    assert MIXES[name](103) == MIXES[name](103)


@pytest.mark.parametrize("name", MIXES)
def test_a_mix_has_as_many_pods_as_asked_for(name: str) -> None:
    """Exactly the asked count, with names and UIDs that are unique."""
    pods = MIXES[name](103)
    assert len(pods) == 103
    assert len({pod["metadata"]["name"] for pod in pods}) == 103
    assert len({pod["metadata"]["uid"] for pod in pods}) == 103


def test_the_diverse_mix_is_made_of_fifths() -> None:
    """A fifth each of five kinds; what five does not divide is generic."""
    kinds = collections.Counter(kind_of(pod) for pod in mixes.diverse(103))
    assert kinds == {
        "generic": 23,
        "spread topology.kubernetes.io/zone": 20,
        "spread kubernetes.io/hostname": 20,
        "podAffinity": 20,
        "podAntiAffinity": 20,
    }


def test_affinities_of_the_diverse_mix_select_the_pod_itself() -> None:
    """Otherwise a pod could wait for one that never comes."""
    for pod in mixes.diverse(100):
        for rule in pod["spec"].get("affinity", {}).values():
            (term,) = rule["requiredDuringSchedulingIgnoredDuringExecution"]
            assert term["labelSelector"]["matchLabels"] == pod["metadata"]["labels"]


def test_every_size_of_the_generic_mix_comes_up() -> None:
    """Each of the 5 × 6 sizes is as likely as the others: among 3,000 pods none is rarer than half its share."""
    sizes = collections.Counter(tuple(requests_of(pod).values()) for pod in mixes.generic(3000))
    assert len(sizes) == 30
    assert min(sizes.values()) > 50


def test_preference_pods_are_identical_or_varied() -> None:
    """The plain mix has one shape; the varied one has 30 sizes and 20 apps."""
    plain = {(*requests_of(pod).values(), pod["metadata"]["labels"]["app"]) for pod in mixes.preferences(50)}
    varied = mixes.varied_preferences(4000)
    assert len(plain) == 1
    assert len({tuple(requests_of(pod).values()) for pod in varied}) == 30
    assert len({pod["metadata"]["labels"]["app"] for pod in varied}) == 20


def test_web_replicas_fall_with_the_rank() -> None:
    """Thirty Deployments; the one of rank r has a share of 1/r."""
    apps = collections.Counter(pod["metadata"]["labels"]["app"] for pod in mixes.web(10_000))
    counts = list(apps.values())
    assert len(counts) == 30
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == pytest.approx(2 * counts[1], abs=2)
    assert counts[0] == pytest.approx(30 * counts[29], abs=30)


@pytest.mark.parametrize("total", [0, 1, 7, 990, 10_000])
def test_zipf_loses_nothing(total: int) -> None:
    """Shares add up, and each is within one of its exact value."""
    counts = mixes.zipf(total, 30)
    harmonic = sum(1 / rank for rank in range(1, 31))
    assert sum(counts) == total
    assert all(abs(count - total / rank / harmonic) < 1 for rank, count in enumerate(counts, 1))


def test_the_trace_is_its_first_rows_without_a_gpu(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with a GPU are left out; requests are the row's."""
    rows = ["name,cpu_milli,memory_mib,num_gpu", "a,1000,512,1", "b,2000,1024,0", "c,3000,2048,0", "d,1,1,0"]
    (tmp_path / "openb_pods.csv").write_text("\n".join(rows))
    monkeypatch.setenv(DATA_SETTING, str(tmp_path))
    pods = mixes.trace(2)
    assert [pod["metadata"]["name"] for pod in pods] == ["b", "c"]
    assert requests_of(pods[0]) == {"cpu": "2000m", "memory": "1024Mi"}


def test_a_short_trace_is_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer rows than asked for would be another benchmark."""
    (tmp_path / "openb_pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu\na,1,1,0")
    monkeypatch.setenv(DATA_SETTING, str(tmp_path))
    with pytest.raises(ValueError, match="has 1 rows"):
        mixes.trace(2)


@pytest.mark.parametrize("folder", ["", "/nonexistent"])
def test_absent_data_says_what_to_set(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the file and the setting."""
    monkeypatch.setenv(DATA_SETTING, folder)
    with pytest.raises(DataMissingError, match=rf"(?s)openb_pods\.csv.*{DATA_SETTING}"):
        mixes.trace()
    with pytest.raises(DataMissingError, match=rf"(?s)aws_instance_types\.json.*{DATA_SETTING}"):
        catalogues.aws_types()


def test_aws_types_are_chosen_by_family(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first letter of the name is the family; the result is sorted by name."""
    (tmp_path / "aws_instance_types.json").write_text(
        '[{"name": "r5.large"}, {"name": "c5.large"}, {"name": "u7i-12tb"}]'
    )
    monkeypatch.setenv(DATA_SETTING, str(tmp_path))
    assert [entry["name"] for entry in catalogues.aws_types("cmr")] == ["c5.large", "r5.large"]
    assert len(catalogues.aws_types()) == 3


def test_fake_types_grow_step_by_step() -> None:
    """The i-th type has i cpus, 2i GiB, 10i pods, and five offerings over three zones at one price."""
    types = catalogues.fake_types()
    assert len(types) == 400
    assert types[399]["resources"] == {"cpu": "400", "memory": "800Gi", "pods": "4000"}
    offerings = types[0]["offerings"]
    zones = {requirement["values"][0] for o in offerings for requirement in o["Requirements"][1:]}
    assert zones == {"test-zone-1", "test-zone-2", "test-zone-3"}
    assert [o["Price"] for o in offerings] == [pytest.approx(0.1 + 0.2147483648)] * 5


def test_kwok_types_are_the_providers_144() -> None:
    """Twelve sizes, three families, two systems, two architectures; memory as Kubernetes prints it; spot at 70 %."""
    types = {entry["name"]: entry for entry in catalogues.kwok_types()}
    assert len(types) == 144
    assert types["m-128x-arm64-windows"]["resources"] == {
        "cpu": "128",
        "ephemeral-storage": "20Gi",
        "memory": "1Ti",
        "pods": "1024",
    }
    prices = sorted({offering["Price"] for offering in types["c-1x-amd64-linux"]["offerings"]})
    assert prices == pytest.approx([0.0190032385536, 0.027147483648])


def test_pools_are_amd64_linux_on_demand() -> None:
    """Unless a cell of a benchmark says otherwise."""
    required = mixes.node_pool()["spec"]["template"]["spec"]["requirements"]
    assert {requirement["key"]: requirement["values"] for requirement in required} == {
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
        "karpenter.sh/capacity-type": ["on-demand"],
    }
