"""`growth whatif`: the same cluster with something changed, side by side. Changes nothing."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from cyclopts import Parameter

from growth.cli.errors import UsageError
from growth.cli.output import print_json, print_report
from growth.cli.reading import LIVE, Source, collector_off, finished, gathered

if TYPE_CHECKING:
    from growth.api.pools import PoolRef
    from growth.cli.manifests.collection import Collection
    from growth.cli.whatif_report import Report
    from growth.planning.explaining.scene import Scene
    from growth.planning.explaining.whatif import Changed

T = TypeVar("T")


def whatif(
    *,
    remove_node: Annotated[
        list[str] | None, Parameter(negative=(), help="This node is drained and gone. May be given several times.")
    ] = None,
    add: Annotated[
        list[str] | None,
        Parameter(negative=(), help="With the objects in this file or folder: pods, workloads, pools …"),
    ] = None,
    scale: Annotated[
        list[str] | None,
        Parameter(negative=(), help="DEPLOYMENT=N: with so many pods; NAMESPACE/DEPLOYMENT=N in another namespace."),
    ] = None,
    price: Annotated[list[str] | None, Parameter(negative=(), help="TYPE=X: at this price an hour.")] = None,
    without_type: Annotated[list[str] | None, Parameter(negative=(), help="The cloud has none of this type.")] = None,
    node_limit: Annotated[
        list[str] | None,
        Parameter(negative=(), help="POOL=N: limits.nodes of the pool; growth.dev/POOL for a growth pool."),
    ] = None,
    consolidate: Annotated[
        bool, Parameter(negative="--no-consolidate", help="Show too what consolidation could save, before and after.")
    ] = True,
    source: Source = LIVE,
    packer: Annotated[
        Literal["first-fit", "cost"],
        Parameter(help="How pods are packed: for the least cost, or in Karpenter's order."),
    ] = "cost",
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="The format.")] = "table",
) -> None:
    """Show what a change would do: machines, cost, and pods that would not fit.

    The cluster, or what stands in files, is planned twice: as it is and with all of the changes. Pods that would not fit
    are listed with the reason. Nothing is changed anywhere.
    """
    asked = _Asked(
        remove=remove_node or [],
        add=add or [],
        scale=[_pair(each, "--scale", "web=3", _count) for each in scale or []],
        price=[_pair(each, "--price", "cx33=0.012", _money) for each in price or []],
        without=without_type or [],
        limit=[_pair(each, "--node-limit", "default=5", _count) for each in node_limit or []],
    )
    if not asked:
        told = "--remove-node, --add, --scale, --price, --without-type or --node-limit"
        raise UsageError(f"nothing is to be different: give {told}")
    with collector_off():
        report = _compared(asked, source, packer=packer, consolidate=consolidate)
        if output == "json":
            print_json(report.as_json())
        else:
            print_report(report.sections(), summary=report.summary())


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What is to be different."""

    remove: Sequence[str]
    add: Sequence[str]
    scale: Sequence[tuple[str, int]]
    price: Sequence[tuple[str, int]]
    without: Sequence[str]
    limit: Sequence[tuple[str, int]]

    def __bool__(self) -> bool:
        return any((self.remove, self.add, self.scale, self.price, self.without, self.limit))

    @property
    def deployments(self) -> list[tuple[str, str, int]]:
        """Namespace, name and number."""
        found = []
        for name, number in self.scale:
            namespace, slash, own = name.rpartition("/")
            found.append((namespace if slash else "default", own, number))
        return found


def _pair(text: str, option: str, example: str, read: Callable[[str], T | None]) -> tuple[str, T]:
    name, equals, value = text.rpartition("=")
    found = read(value) if equals and name else None
    if found is None:
        raise UsageError(f"{option} {text}: write it like {option} {example}")
    return name, found


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def _money(text: str) -> int | None:
    from growth.units.errors import MoneyError
    from growth.units.money import Money

    try:
        nano = Money.parse(text, "EUR").nano
    except MoneyError:
        return None
    return nano if nano >= 0 else None


def _compared(asked: _Asked, source: Source, *, packer: Literal["first-fit", "cost"], consolidate: bool) -> "Report":
    from growth.api.workloads import DEPLOYMENT
    from growth.cli.scenes import scene_of
    from growth.cli.whatif_report import Report
    from growth.planning.explaining.whatif import compared
    from growth.planning.solve import Options
    from growth.providers.catalogues import hours_of_month

    also = [(DEPLOYMENT, namespace, name) for namespace, name, _ in asked.deployments]
    collection = gathered(source, also=also)
    collected, catalogue = finished(source, collection)
    before = scene_of(collected, catalogue, planning=Options(packer=packer))
    after, told = _changed(before, asked, collection)
    return Report(
        found=compared(before, after, consolidate=consolidate),
        changes=told,
        hours_of_month=hours_of_month(catalogue.cloud),
    )


def _changed(scene: "Scene", asked: _Asked, collection: "Collection") -> "tuple[Changed, list[str]]":
    """The scene after everything that is asked for, and what was changed in words."""
    from growth.api.workloads import DEPLOYMENT
    from growth.planning.explaining import whatif as changing
    from growth.units.money import Money, print_hourly

    told: list[str] = []
    if asked.add:
        scene = changing.joined(scene, _added(scene, asked.add, collection))
        told.append(f"with {', '.join(asked.add)}")
    for namespace, name, number in asked.deployments:
        deployment = collection.get(DEPLOYMENT, namespace, name)
        was = len(changing.deployed(scene, namespace, name))
        try:
            scene = changing.scaled(
                scene, namespace, name, number, deployment.spec.template if deployment is not None else None
            )
        except KeyError:
            raise UsageError(f"--scale {name}: there is no Deployment {namespace}/{name}") from None
        told.append(f"Deployment {namespace}/{name} with {number} pods instead of {was}")
    catalogue = scene.catalogue
    try:
        for kind, nano in asked.price:
            catalogue = changing.priced(catalogue, kind, nano)
            told.append(f"{kind} at {print_hourly(Money(nano, catalogue.currency))}")
        for kind in asked.without:
            catalogue = changing.without_type(catalogue, kind)
            told.append(f"no {kind} to be had")
    except KeyError as error:
        raise UsageError(f"{catalogue.cloud} sells no type {error.args[0]}") from None
    scene = dataclasses.replace(scene, catalogue=catalogue)
    changed = changing.Changed(scene=scene)
    for name, number in asked.limit:
        ref = _pool(scene, name)
        changed = changed.then(changing.limited(changed.scene, ref, number))
        told.append(f"at most {number} nodes in NodePool {ref}")
    for node in asked.remove:
        if node not in changed.scene.nodes:
            raise UsageError(f"--remove-node {node}: there is no such node")
    changed = changed.then(changing.removed(changed.scene, asked.remove))
    told += [f"without node {node}" for node in asked.remove]
    return changed, told


def _added(scene: "Scene", files: Sequence[str], beside: "Collection") -> "Scene":
    from growth.cli.manifests.collection import Collection
    from growth.cli.manifests.documents import documents
    from growth.cli.output import note
    from growth.cli.scenes import scene_of

    collection = Collection()
    collection.borrow(beside)
    for document in documents(list(files)):
        collection.add(document)
    if not len(collection):
        raise UsageError(f"{', '.join(files)}: there is nothing to add: no object of a kind that matters")
    collected = collection.finished()
    for told in collected.notes:
        note(told)
    return scene_of(collected, scene.catalogue)


def _pool(scene: "Scene", name: str) -> "PoolRef":
    from growth.cli.scenes import pool_named

    ref = pool_named(scene, name)
    if ref is None:
        listed = ", ".join(str(each) for each in scene.pools) or "none"
        raise UsageError(f"--node-limit {name}: there is no NodePool {name}; there are {listed}")
    return ref
