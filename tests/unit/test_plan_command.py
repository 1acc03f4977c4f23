"""`growth plan` on files: what it prints, and how it refuses."""

import io
import json
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

from growth.api.kinds import Json
from growth.cli.entry import run
from tests.manifests import growth_pool, need, node, node_pool, overlay, pod, pod_spec, workload, written

GROWTH = pathlib.Path(sys.prefix) / "bin" / "growth"


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    """The developer's own cluster is not asked."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "GROWTH_DEBUG"):
        monkeypatch.delenv(name, raising=False)


COST = ("--packer", "cost")


class Asked:
    """Runs the command on objects and keeps what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: pathlib.Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def __call__(self, *objects: Json, arguments: tuple[str, ...] = ()) -> tuple[int, str, str]:
        code = run(["plan", "-f", written(self._folder, *objects), *arguments])
        said = self._capsys.readouterr()
        return code, said.out, said.err

    def json(self, *objects: Json, arguments: tuple[str, ...] = ()) -> Any:
        code, out, err = self(*objects, arguments=("-o", "json", *arguments))
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> Asked:
    return Asked(capsys, tmp_path)


def test_the_json_has_the_documented_shape(asked: Asked) -> None:
    """Every key, no other, and prices as numbers."""
    objects = (
        node_pool(),
        node("n", cpu="1"),
        pod("fits", cpu="500m"),
        pod("bought", cpu="3"),
        pod("giant", cpu="999"),
    )
    found = asked.json(*objects, arguments=COST)
    assert list(found) == ["nodeClaims", "existingNodes", "unschedulable", "summary"]
    (claim,) = found["nodeClaims"]
    assert list(claim) == [
        "nodePool",
        "instanceType",
        "zone",
        "capacityType",
        "price",
        "maxPrice",
        "instanceTypes",
        "requests",
        "pods",
        "why",
    ]
    assert claim["nodePool"] == "default"
    assert claim["instanceType"] == "c-4x-amd64-linux" == claim["instanceTypes"][0]
    assert claim["price"] == 0.108589935
    assert claim["maxPrice"] == 0.134359738
    assert claim["requests"] == {"pods": "1", "cpu": "3", "memory": "128Mi"}
    assert claim["pods"] == ["default/bought"]
    assert found["existingNodes"] == [{"name": "n", "pods": ["default/fits"]}]
    (left,) = found["unschedulable"]
    assert left["pod"] == "default/giant"
    assert left["reasons"][0]["nodePool"] == "default"
    assert left["reasons"][0]["filter"] == "resources"
    assert "999" in left["reasons"][0]["message"]
    summary = found["summary"]
    assert summary.pop("seconds") >= 0
    assert 0 < summary.pop("lowerBound") <= summary["objective"]
    assert summary == {
        "pods": 3,
        "nodes": 1,
        "hourly": 0.108589935,
        "maxHourly": 0.134359738,
        "currency": "USD",
        "objective": 0.108589935,
        "boundIgnores": [],
        "planned": 0.108589935,
        "rehearsed": 0.108589935,
        "nominates": False,
        "packer": "cost",
        "existingHourly": None,
        "unpriced": ["n"],
    }


def test_why_names_the_offering_and_the_next_best_with_their_prices(asked: Asked) -> None:
    """In the catalogue's currency."""
    claim = asked.json(growth_pool(), pod("p"))["nodeClaims"][0]
    assert claim["nodePool"] == "growth.dev/default"
    assert claim["why"].startswith(
        "cx33 (on-demand) in fsn1 at €0.0136/h is the only type of NodePool growth.dev/default"
    )
    claim = asked.json(
        growth_pool("default", {"name": "CX33", "max": 1}, {"name": "CX23", "max": 1}), pod("p", cpu="3")
    )
    assert "cx33" in claim["nodeClaims"][0]["why"]
    claim = asked.json(node_pool(), pod("p"), arguments=COST)["nodeClaims"][0]
    assert (
        "is the cheapest of 3 types that hold its pods within 1.25 times its price;"
        " the next best is s-1x-amd64-linux at $0.0293/h" in claim["why"]
    )


def test_first_fit_lists_as_cost_does_and_has_no_bound(asked: Asked) -> None:
    """It plans as Karpenter does; without it the plan is made for the least cost."""
    assert asked.json(node_pool(), pod("p"))["summary"]["packer"] == "cost"
    found = asked.json(node_pool(), pod("p"), arguments=("--packer", "first-fit"))
    assert (
        "is the cheapest of 3 types that hold its pods within 1.25 times its price; the next best is"
        in found["nodeClaims"][0]["why"]
    )
    summary = found["summary"]
    assert summary["packer"] == "first-fit"
    assert [summary[field] for field in ("objective", "lowerBound", "rehearsed")] == [None, None, None]


def test_the_table_says_how_far_the_plan_is_from_the_cheapest(asked: Asked) -> None:
    """In a sentence, with what the bound leaves out."""
    spread: Json = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    rule: Json = {"topologySpreadConstraints": [{**spread, "labelSelector": {"matchLabels": {"app": "a"}}}]}
    many = [pod(f"p{i}", labels={"app": "a"}, **rule) for i in range(4)]
    _, out, _ = asked(node_pool(), *many, arguments=COST)
    assert re.search(
        r"\$0\.\d+/h, at most \d+\.\d % above the cheapest possible \(the bound ignores zone spread of 4 pods\)\.", out
    )


def test_a_cost_of_a_node_buys_fewer_machines(asked: Asked) -> None:
    """With a price on each machine one large one is better than many small ones."""
    many = [pod(f"p{i}", cpu="800m") for i in range(20)]
    cheap = asked.json(node_pool(), *many, arguments=COST)["summary"]
    dear = asked.json(node_pool(), *many, arguments=(*COST, "--node-cost", "5"))["summary"]
    assert dear["nodes"] == 1 <= cheap["nodes"]
    assert dear["objective"] == pytest.approx(dear["planned"] + 5)


def test_daemon_sets_are_part_of_a_claims_requests(asked: Asked) -> None:
    """They will run there too."""
    found = asked.json(node_pool(), pod("p", cpu="500m"), workload("DaemonSet", "log", template=pod_spec(cpu="200m")))
    assert found["nodeClaims"][0]["requests"]["cpu"] == "700m"
    assert found["summary"]["pods"] == 1


def test_existing_nodes_with_prices_are_summed(asked: Asked) -> None:
    """Where all of them are known."""
    labels = {"node.kubernetes.io/instance-type": "cx23"}
    found = asked.json(growth_pool(), node("a", labels=labels), node("b", labels=labels))
    assert found["summary"]["existingHourly"] == 0.017596154
    assert found["summary"]["unpriced"] == []
    assert found["summary"]["currency"] == "EUR"


LINODE = {"group": "karpenter.k8s.linode", "kind": "LinodeNodeClass", "name": "x"}


def linode_pool(*requirements: Json) -> Json:
    return node_pool("l", *requirements, template={"nodeClassRef": LINODE})


def test_the_catalogue_is_that_of_the_cloud_that_the_pools_mean(asked: Asked) -> None:
    """By node class, by server types; `--provider` decides otherwise; two clouds need the decision."""
    linode = linode_pool()
    assert asked.json(linode, pod("p"))["nodeClaims"][0]["instanceType"] == "g6-standard-1"
    assert asked.json(linode, pod("p"), arguments=("--provider", "hetzner"))["summary"]["currency"] == "EUR"
    code, _, err = asked(linode, growth_pool(), pod("p"))
    assert code == 2
    assert "the pools mean hetzner and linode" in err


@pytest.mark.parametrize(
    ("requirements", "bought"),
    [
        ([need("karpenter.k8s.linode/instance-class", "In", "dedicated")], "g6-dedicated-2"),
        ([need("karpenter.k8s.linode/instance-memory", "Gt", "30000")], "g6-standard-8"),
        (
            [
                need("karpenter.k8s.linode/instance-class", "In", "dedicated"),
                need("karpenter.k8s.linode/instance-memory", "Gt", "30000"),
            ],
            "g6-dedicated-16",
        ),
    ],
)
def test_requirements_by_linodes_own_labels_hold(asked: Asked, requirements: list[Json], bought: str) -> None:
    """As with the live provider: what the built-in list did not know it would leave out, and plan the cheapest type."""
    assert asked.json(linode_pool(*requirements), pod("p"))["nodeClaims"][0]["instanceType"] == bought


def test_no_nanode_is_planned(asked: Asked) -> None:
    """LKE takes none for a node: not for the smallest pod, and not where a pool asks for nothing else."""
    nanode = linode_pool(need("node.kubernetes.io/instance-type", "In", "g6-nanode-1"))
    found = asked.json(nanode, pod("p", cpu="10m", memory="10Mi"))
    assert found["nodeClaims"] == []
    assert [each["pod"] for each in found["unschedulable"]] == ["default/p"]
    small = asked.json(linode_pool(), pod("p", cpu="10m", memory="10Mi"))["nodeClaims"]
    assert "g6-nanode-1" not in small[0]["instanceTypes"]


def test_a_month_of_linode_is_its_monthly_price(asked: Asked) -> None:
    """A type at $0.018 an hour is never billed for more than $12 a month."""
    _, out, _ = asked(linode_pool(), pod("p"))
    assert "$0.018/h ($12.00/month)" in out


def test_a_region_of_linode_has_its_own_price(asked: Asked) -> None:
    """São Paulo is at 1.4 times the price of the others."""
    found = asked.json(linode_pool(need("topology.kubernetes.io/zone", "In", "br-gru")), pod("p"))["nodeClaims"][0]
    assert (found["instanceType"], found["zone"], found["price"]) == ("g6-standard-1", "br-gru", 0.0252)


def test_a_machine_that_can_only_be_owned_is_planned_where_a_pool_names_it(asked: Asked) -> None:
    """Graphics processors of a GEX44, and only there."""
    wanting = pod("p", nodeSelector={"growth.dev/pool": "gpu"}, requests={"nvidia.com/gpu": 1})
    found = asked.json(growth_pool("gpu", {"name": "GEX44", "max": 5}), wanting)
    assert found["nodeClaims"][0]["instanceType"] == "gex44"


def test_an_instance_type_file_takes_the_place_of_the_catalogue(asked: Asked, tmp_path: pathlib.Path) -> None:
    """And a broken one is refused with file, entry and field."""
    entry = {
        "name": "huge.metal",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "96", "memory": "768Gi"},
        "offerings": [{"price": 4.5, "zone": "z", "capacityType": "on-demand"}],
    }
    path = tmp_path / "types.json"
    path.write_text(json.dumps([entry]))
    found = asked.json(node_pool(), pod("p"), arguments=("--instance-types", str(path)))
    assert (found["nodeClaims"][0]["instanceType"], found["summary"]["hourly"]) == ("huge.metal", 4.5)
    path.write_text(json.dumps([{**entry, "offerings": []}]))
    code, out, err = asked(node_pool(), pod("p"), arguments=("--instance-types", str(path)))
    assert (code, out) == (2, "")
    assert err == f"growth: {path}: entry 0 (huge.metal): offerings is empty: list at least one\n"


def test_overlays_change_what_is_bought(asked: Asked) -> None:
    """A type made cheap is taken; one in conflict is said on stderr."""
    cheap = overlay("cheap", need("node.kubernetes.io/instance-type", "In", "m-8x-amd64-linux"), price="0.001")
    found = asked.json(node_pool(), pod("p"), cheap)
    assert found["nodeClaims"][0]["instanceType"] == "m-8x-amd64-linux"
    assert found["summary"]["hourly"] == 0.001
    _, _, err = asked(node_pool(), pod("p"), cheap, overlay("also", price="5"))
    assert "NodeOverlay also is left out: conflicts with NodeOverlay cheap" in err


def test_preferences_are_respected_or_ignored(asked: Asked) -> None:
    """`--preference-policy`."""
    wish = {"weight": 1, "preference": {"matchExpressions": [need("topology.kubernetes.io/zone", "In", "test-zone-c")]}}
    wishing = pod("p", affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}})
    assert asked.json(node_pool(), wishing)["nodeClaims"][0]["zone"] == "test-zone-c"
    ignored = asked.json(node_pool(), wishing, arguments=("--preference-policy", "ignore"))
    assert ignored["nodeClaims"][0]["zone"] == "test-zone-a"


def test_min_values_are_kept_or_lowered(asked: Asked) -> None:
    """`--min-values-policy`."""
    pool = node_pool("default", need("karpenter.kwok.sh/instance-family", "Exists", minValues=5))
    strict = asked.json(pool, pod("p"))
    assert strict["unschedulable"][0]["reasons"][0]["filter"] == "minValues"
    lowered = asked.json(pool, pod("p"), arguments=("--min-values-policy", "best-effort"))
    assert len(lowered["nodeClaims"]) == 1
    assert lowered["nodeClaims"][0]["why"].startswith("minValues of the pool were lowered for it; ")


def test_the_table_groups_what_is_equal(asked: Asked) -> None:
    """Equal machines on one row, pods with equal reasons on one row with an example, a line with what it costs."""
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}}
            ]
        }
    }
    code, out, _ = asked(
        growth_pool(),
        workload("Deployment", "web", replicas=3, template=pod_spec(affinity=apart)),
        workload("Deployment", "giant", replicas=2, template=pod_spec(cpu="99")),
        pod("gated", schedulingGates=[{"name": "example.com/quota"}]),
        node("n", cpu="0"),
    )
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "3 growth.dev/default cx33 fsn1 on-demand €0.0136/h €0.0136/h 3 the only type that holds them" in lines
    assert any(line.startswith("2 default/giant-0 growth.dev/default resources needs 99 cpu") for line in lines)
    assert "1 default/gated scheduling gates: example.com/quota" in lines
    assert any(
        line.startswith("3 of 5 pods placed: 3 machines to buy for €0.0408/h (€25.47/month), 0 existing nodes used.")
        for line in lines
    )
    assert "What the existing nodes cost is not known: no price for 1 node." in lines


def test_nothing_to_do_is_said_too(asked: Asked) -> None:
    """No table, one line."""
    code, out, _ = asked(node_pool())
    assert code == 0
    assert out.startswith("0 of 0 pods placed: 0 machines to buy for $0.00/h")


def test_pods_without_any_pool_are_unschedulable_and_no_error(asked: Asked) -> None:
    """The reason says what to do."""
    found = asked.json(pod("p"))
    (reason,) = found["unschedulable"][0]["reasons"]
    assert reason == {"nodePool": None, "filter": "pool", "message": "there is no NodePool: create one"}


def test_warnings_go_to_stderr_and_leave_the_json_alone(asked: Asked) -> None:
    """One line each."""
    code, out, err = asked(
        {
            **growth_pool("default", {"name": "CX31", "max": 1}, {"name": "CX33", "max": 1}),
            "apiVersion": "growth/v1alpha1",
        },
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}},
        pod("p"),
        arguments=("-o", "json"),
    )
    assert code == 0
    assert json.loads(out)["summary"]["nodes"] == 1
    assert err.splitlines() == [
        "growth: apiVersion growth/v1alpha1 (1 object) is read as growth.dev/v1alpha1: write that instead",
        "growth: v1 Service (1 object) is skipped: it decides nothing about where pods fit",
        "growth: NodePool growth.dev/default: server type CX31 is no longer sold by hetzner: name cx33 instead",
    ]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--node-cost", "-1"), "--node-cost -1.0: give a price an hour from 0"),
        (("--node-cost", "0.1", "--packer", "first-fit"), "--node-cost is for --packer cost"),
        (("--eviction-cost", "-1"), "--eviction-cost: '-1' cannot be used: an amount cannot be negative"),
        (("--eviction-horizon", "soon"), "--eviction-horizon: "),
        (
            ("--max-price-percent", "99"),
            "--max-price-percent: '99' cannot be used: write a whole number of 100 or more",
        ),
        (("--disruption-steps", "0"), "--disruption-steps: '0' cannot be used: write a whole number of 1 or more"),
        (("--packer", "best"), "best"),
        (("--provider", "aws"), "aws"),
        (("--kubeconfig", "x"), "-f reads files and --kubeconfig a cluster"),
        (("-f", "nowhere.yaml"), "nowhere.yaml: there is no such file or folder"),
    ],
)
def test_bad_arguments_exit_with_2(asked: Asked, arguments: tuple[str, ...], told: str) -> None:
    """In one line on stderr, with nothing on stdout."""
    code, out, err = asked(node_pool(), arguments=arguments)
    assert (code, out) == (2, "")
    assert err.startswith("growth: ")
    assert told in err
    assert len(err.splitlines()) == 1


def test_bad_objects_exit_with_2_and_name_the_place(asked: Asked, tmp_path: pathlib.Path) -> None:
    """File, document, field, reason."""
    code, out, err = asked(pod("a"), node_pool(weight=101))
    assert (code, out) == (2, "")
    assert err.startswith(f"growth: {tmp_path / 'objects.json'}: document 1, item 2 (NodePool default): spec.weight: ")
    assert "less than or equal to 100" in err


def test_nothing_that_matters_is_refused(asked: Asked) -> None:
    """A wrong file is more likely than an empty cluster."""
    code, _, err = asked({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}})
    assert code == 2
    assert "there is nothing to plan with" in err


def test_standard_input_is_a_dash(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """Beside files, in any order."""
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod("p")]}).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run(["plan", "-f", "-", written(tmp_path, node_pool()), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["pods"] == 1


def test_without_files_and_without_a_cluster_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad input, not a failure."""
    assert run(["plan"]) == 2
    assert "no cluster is configured" in capsys.readouterr().err


def test_equal_input_gives_equal_output(tmp_path: pathlib.Path) -> None:
    """In processes of their own with other hash seeds: everything but the seconds is the same."""
    objects = [
        node_pool(),
        *(workload("Deployment", f"d{n}", replicas=n, template=pod_spec(cpu=f"{n}00m")) for n in range(1, 9)),
    ]
    path = written(tmp_path, *objects)
    said = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [GROWTH, "plan", "-f", path, "-o", "json"],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONHASHSEED": seed},
        )
        assert done.stderr == ""
        found = json.loads(done.stdout)
        del found["summary"]["seconds"]
        said.append(found)
    assert said[0] == said[1]
    assert said[0]["summary"]["pods"] == 36


def test_no_traceback_reaches_a_person(tmp_path: pathlib.Path) -> None:
    """Whatever the file holds."""
    path = tmp_path / "odd.json"
    path.write_text('{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}')
    done = subprocess.run(
        [GROWTH, "plan", "-f", str(path)], capture_output=True, text=True, check=False, env={"HOME": str(tmp_path)}
    )
    assert done.returncode == 2
    assert done.stderr == f"growth: {path}: document 1 (Pod): metadata.name: expected str, got int\n"


@pytest.mark.parametrize("packer", ["cost", "first-fit"])
def test_the_worst_price_stands_beside_the_expected_one(asked: Asked, packer: str) -> None:
    """What `minValues` may make a machine cost is said of each machine and in the sum, in both formats."""
    pool = node_pool("default", need("node.kubernetes.io/instance-type", "Exists", minValues=10))
    found = asked.json(pool, pod("p"), arguments=("--packer", packer))
    (claim,) = found["nodeClaims"]
    assert len(claim["instanceTypes"]) == 10
    assert claim["maxPrice"] == found["summary"]["maxHourly"] > 4 * claim["price"]
    assert "is the cheapest of 10 types that hold its pods for at most $0.2172/h, which minValues need;" in claim["why"]
    code, out, _ = asked(pool, pod("p"), arguments=("--packer", packer))
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert any(
        line.startswith("1 default c-1x-amd64-linux test-zone-a on-demand $0.0271/h $0.2172/h 1 ") for line in lines
    )
    assert any(line.startswith("At most $0.2172/h ($158.54/month), if the cheapest") for line in lines)
    lowered = asked.json(pool, pod("p"), arguments=("--packer", packer, "--min-values-policy", "best-effort"))
    assert lowered["nodeClaims"][0]["maxPrice"] < 1.25 * claim["price"]
    assert lowered["nodeClaims"][0]["why"].startswith("minValues of the pool were lowered for it; ")
