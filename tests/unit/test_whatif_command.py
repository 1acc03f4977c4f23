"""`growth whatif`: the same cluster twice, and what is different."""

import json
import pathlib
from typing import Any

import pytest

from growth.cli.entry import run
from tests.manifests import growth_pool, node_pool, pod, pod_spec, workload, written
from tests.unit.planning.clusters import LARGE, SMALL, machine, pods, pool

PRICE = {SMALL: 0.054294967, LARGE: 0.434359738}


class Asked:
    """Runs the command on objects and keeps what it said."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: pathlib.Path) -> None:
        self._capsys = capsys
        self._folder = folder

    def text(self, objects: list[Any], *arguments: str) -> str:
        code = run(["whatif", "-f", written(self._folder, *objects), *arguments])
        said = self._capsys.readouterr()
        assert code == 0, said.err
        return said.out

    def json(self, objects: list[Any], *arguments: str) -> Any:
        return json.loads(self.text(objects, "-o", "json", *arguments))


@pytest.fixture
def asked(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> Asked:
    return Asked(capsys, tmp_path)


def bought(side: Any) -> list[str]:
    return sorted(each["instanceType"] for each in side["nodeClaims"])


def test_a_node_that_is_removed_costs_what_its_pods_need_then(asked: Asked) -> None:
    """Its pods go where there is room, and for the rest is bought; pods without an owner are lost."""
    objects = [pool(), *machine("a"), *pods(1, on="a"), pod("bare", nodeName="a")]
    found = asked.json(objects, "--remove-node", "a")
    assert list(found) == ["changes", "before", "after", "difference", "unfit", "lost", "removedNodes", "held"]
    assert (bought(found["before"]), bought(found["after"])) == ([], [SMALL])
    assert found["difference"]["hourly"] == pytest.approx(PRICE[SMALL] - PRICE[LARGE])
    assert (found["unfit"], found["lost"], found["removedNodes"]) == ([], ["default/bare"], ["a"])


def test_pods_that_would_not_fit_are_named_with_the_reason(asked: Asked) -> None:
    """Those that had a place before."""
    objects = [
        pool(limits={"nodes": "1"}),
        *machine("a"),
        *machine("b"),
        *pods(15, on="a"),
        *pods(1, on="b"),
        pod("big", cpu=4000),
    ]
    found = asked.json(objects, "--remove-node", "a", "--no-consolidate")
    assert len(found["unfit"]) == 1
    assert found["unfit"][0]["pod"].startswith("default/a-")
    assert found["unfit"][0]["reasons"][0]["filter"] == "limits"
    assert "default/big" in found["before"]["unschedulable"]
    assert "reachable" not in found["before"]


def test_a_deployment_with_more_or_fewer_pods(asked: Asked) -> None:
    """More are made like those that are there; fewer lets consolidation save."""
    template = pod_spec(cpu=1)
    objects = [node_pool(), workload("Deployment", "web", template=template, replicas=2)]
    more = asked.json(objects, "--scale", "web=40")
    assert len([pod for each in more["after"]["nodeClaims"] for pod in each["pods"]]) == 40
    assert more["difference"]["hourly"] > 0
    none = asked.json(objects, "--scale", "default/web=0")
    assert none["after"]["nodeClaims"] == []
    running = [pool(), *machine("a", age=86_400.0 * 3650), *pods(2, on="a")]
    for each in running[3:]:
        each["metadata"]["ownerReferences"][0]["name"] = "web-1"
        each["metadata"]["labels"] = {"app": "web", "pod-template-hash": "1"}
    fewer = asked.json(running, "--scale", "web=0")
    assert fewer["after"]["reachable"] == {"hourly": 0, "moves": 1}


def test_objects_of_a_file_are_added(asked: Asked, tmp_path: pathlib.Path) -> None:
    """Workloads make their pods; a pool of the same name takes the place of the other."""
    extra = written(
        tmp_path,
        workload("Deployment", "api", template=pod_spec(cpu=1), replicas=3),
        node_pool(limits={"nodes": "0"}),
        name="extra.json",
    )
    found = asked.json([node_pool(), pod("web")], "--add", extra)
    assert bought(found["before"]) != []
    assert bought(found["after"]) == []
    assert sorted(each["pod"] for each in found["unfit"]) == [
        "default/api-0",
        "default/api-1",
        "default/api-2",
        "default/web",
    ]


def test_prices_types_and_limits(asked: Asked) -> None:
    """A dearer type is not bought where another will do, one that is sold out is not, and a limit takes nodes away."""
    objects = [node_pool(), pod("web", cpu=1)]
    dearer = asked.json(objects, "--price", f"{SMALL}=9")
    assert bought(dearer["before"]) == [SMALL]
    assert bought(dearer["after"]) != [SMALL]
    assert bought(asked.json(objects, "--without-type", SMALL)["after"]) != [SMALL]
    full = [pool(), *machine("a"), *machine("b"), *pods(1, on="a"), *pods(15, on="b")]
    found = asked.json(full, "--node-limit", "default=1")
    assert found["removedNodes"] == ["a"]
    assert [each["pod"] for each in found["unfit"]] == ["default/a-0"]
    ours = asked.json(
        [growth_pool("default", {"name": "cx33", "max": 5}), pod("web", cpu=3), pod("api", cpu=3)],
        "--node-limit",
        "growth.dev/default=1",
    )
    assert (len(bought(ours["before"])), len(bought(ours["after"]))) == (2, 1)


def test_the_table_says_it_in_a_sentence(asked: Asked) -> None:
    """Before and after side by side, then what it comes to."""
    shown = asked.text([pool(), *machine("a"), *pods(1, on="a")], "--remove-node", "a")
    assert shown.startswith("What if: without node a\n")
    assert "It would cost $0.3801/h ($277.45/month) less, and every pod would have a place." in shown
    assert "Nodes that would go: a." in shown


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "nothing is to be different"),
        (("--remove-node", "x"), "--remove-node x: there is no such node"),
        (("--scale", "web"), "--scale web: write it like --scale web=3"),
        (("--scale", "web=-1"), "write it like --scale web=3"),
        (("--scale", "nobody=3"), "--scale nobody: there is no Deployment default/nobody"),
        (("--price", "x=1"), "kwok sells no type x"),
        (("--price", f"{SMALL}=cheap"), "write it like --price cx33=0.012"),
        (("--without-type", "x"), "kwok sells no type x"),
        (("--node-limit", "other=1"), "there is no NodePool other; there are default"),
    ],
)
def test_bad_input_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, arguments: tuple[str, ...], told: str
) -> None:
    """What, where, what to do; exit code 2."""
    assert run(["whatif", "-f", written(tmp_path, node_pool(), pod("web")), *arguments]) == 2
    assert told in capsys.readouterr().err
