"""`growth plan`: which machines for which pods, from files or a live cluster. Changes nothing."""

import dataclasses
import datetime as dt
import sys
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from growth.cli.errors import UsageError
from growth.cli.output import note, print_json, print_report
from growth.cli.reading import LIVE, Source, collector_off, read

if TYPE_CHECKING:
    from growth.api.instance_types import Catalogue
    from growth.cli.disruption_report import Disruptions
    from growth.cli.manifests.collection import Collected
    from growth.cli.plan_report import Report
    from growth.planning.disruption.search import SearchOptions
    from growth.planning.explaining.refilling import Lack
    from growth.planning.explaining.scene import Scene
    from growth.units.money import Hours

# Beyond this a cost of a node is a slip of the finger: no machine costs so much.
MOST_NODE_COST: Final = 100_000


@Parameter(name="*")
@dataclasses.dataclass(frozen=True, slots=True)
class Weighing:
    """How moves are weighed: settings of `growth run`, by the same names and with the same defaults."""

    spot_to_spot_consolidation: Annotated[
        bool, Parameter(negative=(), help="Spot machines may be replaced by cheaper spot machines.")
    ] = False
    eviction_cost: Annotated[
        str | None, Parameter(help="What moving one pod counts for, in the catalogue's currency; as in growth run.")
    ] = None
    eviction_horizon: Annotated[
        str | None,
        Parameter(help="A move must save more than its evictions count for within this time; as in growth run."),
    ] = None
    max_price_percent: Annotated[
        str | None,
        Parameter(help="What a machine may cost at most, in percent of the planned price; as in growth run."),
    ] = None
    disruption_steps: Annotated[
        str | None, Parameter(help="So many steps a search for cheaper machines may take; as in growth run.")
    ] = None


AS_RUN: Final = Weighing()


def plan(
    *,
    source: Source = LIVE,
    packer: Annotated[
        Literal["first-fit", "cost"],
        Parameter(help="How pods are packed: for the least cost, or in Karpenter's order."),
    ] = "cost",
    node_cost: Annotated[
        float, Parameter(help="What a machine costs an hour beside its price: fewer and larger ones are bought.")
    ] = 0.0,
    preference_policy: Annotated[
        Literal["respect", "ignore"], Parameter(help="Whether preferred terms of pods count as long as they can.")
    ] = "respect",
    min_values_policy: Annotated[
        Literal["strict", "best-effort"], Parameter(help="Whether minValues of a pool may be lowered where it must be.")
    ] = "strict",
    consolidate: Annotated[
        bool | None,
        Parameter(
            negative="--no-consolidate",
            show_default=False,
            help="Show too which nodes would be removed or replaced, and why the others stay."
            " For a cluster that is so by itself, for files when asked for.",
        ),
    ] = None,
    weighing: Weighing = AS_RUN,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="The format.")] = "table",
) -> None:
    """Show which machines would be bought for which pods, why, and at what price.

    Pods without a node are planned for, and the pods that Deployments, StatefulSets, ReplicaSets and Jobs would make;
    Nodes, NodeClaims, both kinds of NodePool, NodeOverlays, DaemonSets, volumes, PriorityClasses and Namespaces count,
    and the pods that CapacityBuffers keep room for. Nothing is changed anywhere. Pods without a place are no error. With --consolidate PodDisruptionBudgets count too.
    """
    if not 0 <= node_cost < MOST_NODE_COST:
        raise UsageError(f"--node-cost {node_cost}: give a price an hour from 0 to {MOST_NODE_COST:,}")
    if node_cost and packer != "cost":
        raise UsageError("--node-cost is for --packer cost: first-fit does not look at prices that way")
    from growth.planning.solve import Options
    from growth.units.money import NANO

    search = _search(weighing)
    with collector_off():
        collected, catalogue = read(source)
        options = Options(
            respect_preferences=preference_policy == "respect",
            strict_min_values=min_values_policy == "strict",
            packer=packer,
            node_cost=round(node_cost * NANO),
            flexibility=search.planning.flexibility,
        )
        wanted = not source.file if consolidate is None else consolidate
        search = dataclasses.replace(search, planning=options, node_cost=options.node_cost)
        report = _planned(collected, catalogue, search, consolidate=wanted)
        if output == "json":
            if report.waiting:
                note(f"{len(report.waiting)} pods wait for something else than a machine: -o table lists them")
            print_json(report.as_json())
        else:
            print_report(report.sections(), summary=report.summary())


def _search(weighing: Weighing) -> "SearchOptions":
    """How `growth run` would search with these settings."""
    from growth.planning.disruption.search import SearchOptions

    usual = SearchOptions(spot_to_spot=weighing.spot_to_spot_consolidation)
    given = {
        "evictionCost": weighing.eviction_cost,
        "evictionHorizon": weighing.eviction_horizon,
        "maxPricePercent": weighing.max_price_percent,
        "disruptionSteps": weighing.disruption_steps,
    }
    if not any(given.values()):
        return usual
    from growth.operator.settings import SettingError, read  # takes its time

    try:
        chosen = read(given, {}).controllers
    except SettingError as error:
        raise UsageError(str(error)) from error
    return dataclasses.replace(
        usual,
        eviction_cost=chosen.eviction_cost,
        horizon=dt.timedelta(seconds=chosen.eviction_horizon),
        budget=chosen.disruption_steps,
        planning=dataclasses.replace(usual.planning, flexibility=chosen.max_price_percent),
    )


def _planned(collected: "Collected", catalogue: "Catalogue", search: "SearchOptions", *, consolidate: bool) -> "Report":
    from growth.cli.plan_report import Report
    from growth.cli.scenes import scene_of
    from growth.planning.disruption.decide import Options as Deciding
    from growth.ports import SystemClock
    from growth.providers.catalogues import hours_of_month

    clock = SystemClock()
    begun = clock.monotonic()
    scene = scene_of(collected, catalogue, planning=search.planning, deciding=Deciding(search=search, priced=True))
    for told in scene.assembled.warnings:
        note(told)
    for problem in scene.overlay_problems:
        note(f"NodeOverlay {problem.overlay} is left out: {problem.message}")
    for ref, why in scene.foreign_pools.items():
        note(f"NodePool {ref} is left alone: {why}")
    for lack in scene.lacking:
        note(_lacking(lack, catalogue.currency))
    if sys.stderr.isatty():
        note(f"planning {len(scene.demands):,} pods …")
    hours = hours_of_month(catalogue.cloud)
    return Report(
        plan=scene.plan,
        disruptions=_disruptions(scene, hours) if consolidate else None,
        snapshot=scene.snapshot,
        pods=len(scene.demands),
        seconds=clock.monotonic() - begun,
        waiting=scene.assembled.waiting,
        hours_of_month=hours,
    )


def _lacking(lack: "Lack", currency: str) -> str:
    """What is bought beside the plan, which is for pods."""
    from growth.units.money import Money, print_hourly

    machines = f"{lack.number:,} {'machine' if lack.number == 1 else 'machines'}"
    if lack.planned is None:
        return f"NodePool {lack.pool} is static and lacks {machines}, and nothing can be bought: {lack.why}"
    price = print_hourly(Money(lack.planned.price, currency))
    if lack.planned.max_price > lack.planned.price:
        price = f"{price}, at most {print_hourly(Money(lack.planned.max_price, currency))},"
    return (
        f"NodePool {lack.pool} is static and lacks {machines}: beside this plan {lack.number:,} x "
        f"{lack.planned.instance_type} at {price} would be bought at once"
    )


def _disruptions(scene: "Scene", hours: "Hours") -> "Disruptions":
    from growth.cli.disruption_report import Disruptions
    from growth.planning.explaining.reaching import reachable

    if sys.stderr.isatty():
        note(f"looking at {len(scene.nodes):,} nodes …")
    return Disruptions(scene.decided, scene.catalogue.currency, reachable(scene), hours)
