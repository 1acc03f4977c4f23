"""What was read, as the scene that explanations and questions of what-if are about."""

from growth.api.instance_types import Catalogue
from growth.api.pools import PoolRef
from growth.cli.catalogue import served_by
from growth.cli.manifests.collection import Collected
from growth.planning.disruption.decide import Options as Deciding
from growth.planning.explaining.scene import Scene
from growth.planning.solve import Options
from growth.ports import SystemClock


def scene_of(
    collected: Collected,
    catalogue: Catalogue,
    *,
    planning: Options = Options(),  # noqa: B008 - frozen
    deciding: Deciding = Deciding(),  # noqa: B008 - frozen
) -> Scene:
    """As of now."""
    return Scene(
        objects=collected.objects,
        catalogue=catalogue,
        now=SystemClock().now(),
        overlays=collected.overlays,
        disruption_budgets=collected.disruption_budgets,
        buffered=collected.buffered,
        served=served_by(catalogue.cloud, collected.objects),
        planning=planning,
        deciding=deciding,
    )


def pool_named(scene: Scene, name: str) -> PoolRef | None:
    """A pool of either API, Karpenter's where both have one of the name; None where there is none."""
    return next((ref for ref in (PoolRef.parse(name), PoolRef.growth(name)) if ref in scene.pools), None)
