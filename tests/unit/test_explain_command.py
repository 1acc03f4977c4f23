"""`growth explain`: a sentence, what was tried, what would help, from files."""

import json
import pathlib
from typing import Any

import pytest

from growth.cli.entry import run
from tests.manifests import growth_pool, node_pool, pod, written
from tests.unit.planning.clusters import SMALL, machine, pods, pool

LIMITED = [node_pool(limits={"nodes": "1"}), *machine("a", SMALL), *pods(1, on="a"), pod("web", cpu=1)]


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    code = run(["explain", *arguments])
    told = capsys.readouterr()
    assert code == 0, told.err
    return told.out


def test_the_first_line_names_the_cause_and_the_rest_says_what_to_do(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path
) -> None:
    """With the command that does it."""
    lines = said(capsys, "pod", "web", "-f", written(tmp_path, *LIMITED)).splitlines()
    assert lines[0] == (
        "Pod default/web has no node because NodePool default may not buy more: limits.nodes is reached (1)."
    )
    assert "Nearest miss: node a has 100m cpu too little." in lines
    assert "- raise limits.nodes of NodePool default by 1, to 2" in lines
    patch = '{"spec": {"limits": {"nodes": "2"}}}'
    assert f"    kubectl patch nodepools.karpenter.sh default --type merge -p '{patch}'" in lines


def test_the_json_has_the_documented_shape(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """Every key and no other; a change carries what a program needs to make it."""
    found: Any = json.loads(said(capsys, "pod", "default/web", "-f", written(tmp_path, *LIMITED), "-o", "json"))
    assert list(found) == ["subject", "cause", "sentence", "tried", "nearest", "notes", "remedies"]
    assert (found["subject"], found["cause"]) == ("Pod default/web", "limits")
    assert found["tried"][0] == {
        "what": "NodePool default",
        "rule": "limits",
        "message": "limits.nodes is reached (1)",
    }
    assert found["remedies"][0] == {
        "text": "raise limits.nodes of NodePool default by 1, to 2",
        "changes": [
            {
                "verb": "patch",
                "apiVersion": "karpenter.sh/v1",
                "kind": "NodePool",
                "name": "default",
                "type": "merge",
                "patch": {"spec": {"limits": {"nodes": "2"}}},
            }
        ],
    }


def test_every_kind_can_be_asked_about(capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path) -> None:
    """Pools of both APIs by their names, claims by either word."""
    path = written(tmp_path, pool(), *machine("a"), growth_pool("batch"))
    for arguments, sentence in (
        (("node", "a"), "Node a would be removed (Empty)"),
        (("claim", "a"), "NodeClaim a is up as node a."),
        (("nodeclaim", "a"), "NodeClaim a is up as node a."),
        (("nodepool", "default"), "NodePool default can buy"),
        (("nodepool", "batch", "--provider", "hetzner"), "NodePool growth.dev/batch can buy"),
        (("nodepool", "growth.dev/batch", "--provider", "hetzner"), "NodePool growth.dev/batch can buy"),
    ):
        given = ("--provider", "kwok") if "--provider" not in arguments else ()
        assert said(capsys, *arguments, *given, "-f", path).startswith(sentence)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("pod", "wed"), "growth: there is no pod default/wed: is it default/web?\n"),
        (("pod", "web", "-n", "other"), "growth: there is no pod other/web: is it default/web?\n"),
        (("node", "zzz"), "growth: there is no node zzz: there are 1 others\n"),
        (("nodepool", "defautl"), "growth: there is no NodePool defautl: is it default?\n"),
    ],
)
def test_a_name_that_is_not_there_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: pathlib.Path, arguments: tuple[str, ...], told: str
) -> None:
    """With the nearest ones, and exit code 2."""
    assert run(["explain", *arguments, "-f", written(tmp_path, *LIMITED)]) == 2
    assert capsys.readouterr().err == told
