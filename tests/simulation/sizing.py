"""A stage on which machines that are bought come up by themselves, with everything that keeps pools at their numbers."""

import asyncio
from collections.abc import Callable
from typing import Any, Final

from growth.api import names
from growth.api.karpenter import NODE_CLAIM, NODE_POOL, NodePool
from growth.controllers.disrupted import CLAIMS_DISRUPTED
from growth.controllers.drifting import Drifting
from growth.controllers.environment import Environment
from growth.controllers.lifecycle import Lifecycle
from growth.controllers.pools import Pools
from growth.controllers.sizing import Sizing
from growth.controllers.termination import Termination
from growth.kube.errors import AlreadyExists, NotFound
from tests.simulation.ending import start_kubelets
from tests.simulation.owning import Stage

ANY_TIME: Final = {"budgets": [{"nodes": "100%"}]}
PARTS: Final[tuple[Callable[[Environment], Any], ...]] = (Lifecycle, Pools, Termination, Drifting, Sizing)


async def joining(stage: Stage, *, after: float = 5.0) -> None:
    """Every machine registers its Node a while after it was bought, ready at once."""
    seen: dict[str, float] = {}
    while True:
        await asyncio.sleep(1)
        for machine in list(stage.cloud.machines.values()):
            at = seen.setdefault(machine.provider_id + machine.claim_uid, stage.kernel.time())
            if at >= 0 and stage.kernel.time() - at >= after:
                try:
                    await stage.join(f"node-of-{machine.claim}", provider_id=machine.provider_id)
                    seen[machine.provider_id + machine.claim_uid] = -1.0
                except AlreadyExists:  # the Node of the one before is still going
                    continue
                except NotFound:
                    continue


def begin(stage: Stage, *, after: float = 5.0) -> None:
    """The machines' side, which no process of ours keeps alive."""
    start_kubelets(stage)
    stage.kernel.create_task(joining(stage, after=after), name="joining")


async def start(stage: Stage, *, after: float = 5.0) -> None:
    await stage.add_class()
    begin(stage, after=after)
    await stage.start(*(part(stage.env) for part in PARTS))


async def add_static(stage: Stage, replicas: int, *, name: str = "default", **spec: Any) -> NodePool:
    return await stage.add_pool(
        name, replicas=replicas, metadata={"labels": {"team": "a"}}, **{"disruption": ANY_TIME, **spec}
    )


async def retemplate(stage: Stage, team: str = "b", *, name: str = "default") -> None:
    """From now on everything that the pool has is of an old template."""
    await stage.admin.patch(NODE_POOL, name, {"spec": {"template": {"metadata": {"labels": {"team": team}}}}})


async def scale(stage: Stage, replicas: int, *, name: str = "default") -> None:
    """As `kubectl scale nodepool` does."""
    await stage.admin.patch(NODE_POOL.raw, name, {"spec": {"replicas": replicas}}, subresource="scale")


async def staying(stage: Stage) -> list[str]:
    """Names of the claims that nobody has deleted."""
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sorted(each.metadata.name for each in listed if each.metadata.deletion_timestamp is None)


async def teams(stage: Stage) -> list[str]:
    """The template that each claim was made from, those that leave included."""
    return sorted(each.metadata.labels.get("team", "") for each in (await stage.admin.list(NODE_CLAIM)).items)


async def initialized(stage: Stage) -> int:
    listed = (await stage.admin.list(NODE_CLAIM)).items
    return sum(
        any((each.type, each.status) == (names.INITIALIZED, "True") for each in claim.status.conditions)
        for claim in listed
    )


async def told_too_many(stage: Stage) -> float:
    """How many machines Karpenter's counter has that were one too many; claim and Node must have been told so."""
    told = {(each.involved_object.kind, each.message) for each in await stage.events(names.DISRUPTION_TERMINATING)}
    assert told == {
        ("Node", "Disrupting Node: Overprovisioned"),
        ("NodeClaim", "Disrupting NodeClaim: Overprovisioned"),
    }
    labels = {"nodepool": "default", "capacity_type": "on-demand", "consolidation_policy": ""}
    rest = {"reason": "overprovisioned", "termination_mode": "graceful"}
    return stage.env.metrics.value(CLAIMS_DISRUPTED, **labels, **rest)
