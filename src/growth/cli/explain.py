"""`growth explain`: why a pod has no node, why a node stays, how far a claim is, whether a pool can buy. Changes nothing."""

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from growth.cli.errors import UsageError
from growth.cli.output import print_json, print_table
from growth.cli.reading import LIVE, Source, collector_off, read

if TYPE_CHECKING:
    from growth.api.pools import PoolRef
    from growth.planning.explaining.explanation import Explanation
    from growth.planning.explaining.scene import Scene

Kind = Literal["pod", "node", "nodepool", "claim", "nodeclaim"]


def explain(
    kind: Annotated[Kind, Parameter(help="What it is about.")],
    name: Annotated[
        str, Parameter(help="Its name; of a pod NAMESPACE/NAME or NAME, of a growth pool NAME or growth.dev/NAME.")
    ],
    *,
    namespace: Annotated[str, Parameter(name=["--namespace", "-n"], help="The pod's namespace.")] = "default",
    source: Source = LIVE,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="The format.")] = "table",
) -> None:
    """Say why a pod has no node, a node stays, a claim waits or a pool cannot buy.

    One sentence names the cause. Below it stands what was tried and which rule failed, the nearest miss, and what would
    help: every remedy was tried out on a copy of the cluster before it is told, and comes with the command. Nothing is
    changed anywhere.
    """
    from growth.cli.scenes import scene_of

    with collector_off():
        collected, catalogue = read(source)
        found = _explained(scene_of(collected, catalogue), kind, name, namespace)
    if output == "json":
        print_json(found.as_json())
    else:
        _print(found)


def _explained(scene: "Scene", kind: Kind, name: str, namespace: str) -> "Explanation":
    from growth.planning.explaining import claims, nodes, pods, pools

    if kind == "pod":
        key = name if "/" in name else f"{namespace}/{name}"
        return pods.explained(scene, _known(key, scene.pods, "pod"))
    if kind == "node":
        return nodes.explained(scene, _known(name, scene.nodes, "node"))
    if kind == "nodepool":
        return pools.explained(scene, _pool(scene, name))
    return claims.explained(scene, _known(name, scene.claims, "NodeClaim"))


def _known(name: str, there: Iterable[str], what: str) -> str:
    """The name; an error with the nearest ones where there is none of it."""
    known = list(there)
    if name in known:
        return name
    own = name.rpartition("/")[2]
    near = [each for each in known if each.rpartition("/")[2] == own][:3]
    near = near or difflib.get_close_matches(name, known, n=3, cutoff=0.8)
    advice = f"is it {' or '.join(near)}?" if near else f"there are {len(known):,} others"
    raise UsageError(f"there is no {what} {name}: {advice}")


def _pool(scene: "Scene", name: str) -> "PoolRef":
    from growth.cli.scenes import pool_named

    ref = pool_named(scene, name)
    if ref is None:
        _known(name, [str(each) for each in scene.pools], "NodePool")
        raise AssertionError
    return ref


def _print(found: "Explanation") -> None:
    print(found.sentence)
    if found.tried:
        print("\nWhat was looked at")
        print_table(("what", "rule", "verdict"), [(each.what, each.rule, each.message) for each in found.tried])
    if found.nearest:
        print(f"\nNearest miss: {found.nearest}.")
    for line in found.notes:
        print(f"\nNote: {line}.")
    if found.remedies:
        print("\nWhat would help")
    for remedy in found.remedies:
        print(f"- {remedy.text}")
        for change in remedy.changes:
            if change.command:
                print(f"    {change.command}")
