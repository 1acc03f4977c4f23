"""A cluster read once, whole and read-only, into the same collection that files are read into."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from growth.api.buffers import CAPACITY_BUFFER
from growth.api.core import NAMESPACE
from growth.api.growthpools import GROWTH_POOL, NODE_REQUEST
from growth.api.karpenter import NODE_CLAIM, NODE_POOL
from growth.api.kinds import Kind
from growth.api.nodes import NODE
from growth.api.overlays import NODE_OVERLAY
from growth.api.pods import POD
from growth.api.policy import POD_DISRUPTION_BUDGET
from growth.api.volumes import CSI_NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, VOLUME_ATTACHMENT
from growth.api.workloads import DAEMON_SET
from growth.cli.cluster import Cluster, connected
from growth.cli.errors import UsageError
from growth.cli.manifests.collection import NODE_CLASSES, Collection
from growth.kube.errors import Forbidden, Gone, NotFound

if TYPE_CHECKING:
    from growth.kube.api import Api

# What every cluster has, and without which a plan would be wrong.
NEEDED: Final[tuple[Kind[Any], ...]] = (
    POD,
    NODE,
    NAMESPACE,
    DAEMON_SET,
    POD_DISRUPTION_BUDGET,
    PERSISTENT_VOLUME_CLAIM,
    PERSISTENT_VOLUME,
    STORAGE_CLASS,
    CSI_NODE,
    VOLUME_ATTACHMENT,
)
# What a cluster may well not have installed.
OPTIONAL: Final[tuple[Kind[Any], ...]] = (
    NODE_POOL,
    NODE_CLAIM,
    NODE_OVERLAY,
    GROWTH_POOL,
    NODE_REQUEST,
    CAPACITY_BUFFER,
    *NODE_CLASSES,
)

PAGE: Final = 1000  # objects; a page of pods is then a few megabytes
ATTEMPTS: Final = 3  # a list whose pages outlive the server's memory is begun again
CALL_SECONDS: Final = 60.0


Named = tuple[Kind[Any], str, str]  # kind, namespace, name


def read(cluster: Cluster, collection: Collection, *, also: Sequence[Named] = ()) -> list[str]:
    """Adds every object that matters, and single ones beside them; the kinds that the cluster does not serve are returned,
    for a note.
    """
    return asyncio.run(_read(cluster, collection, also))


async def _read(cluster: Cluster, collection: Collection, also: Sequence[Named]) -> list[str]:
    async with connected(cluster, deadline_seconds=CALL_SECONDS) as api:
        return await read_from(api, collection, also=also)


async def read_from(api: "Api", collection: Collection, *, also: Sequence[Named] = ()) -> list[str]:
    """The same from an open connection."""
    kinds = (*NEEDED, *OPTIONAL)
    lists = await asyncio.gather(*(_list(api, kind) for kind in kinds))
    missing: list[str] = []
    for kind, items in zip(kinds, lists, strict=True):
        if items is None:
            missing.append(str(kind))
            continue
        for item in items:
            collection.take(kind, item, _refusal(kind, item))
    for kind, namespace, name in (*collection.asked_for_by_buffers(), *also):
        for item in (await api.list(kind, namespace=namespace, fields=f"metadata.name={name}")).items:
            collection.take(kind, item, _refusal(kind, item))
    return missing


def _refusal(kind: Kind[Any], item: Any) -> Any:
    def refuse(field: str, reason: str) -> UsageError:
        return UsageError(f"{kind.kind} {item.metadata.namespace}/{item.metadata.name}: {field}: {reason}")

    return refuse


async def _list(api: "Api", kind: Kind[Any]) -> list[Any] | None:
    """All objects of the kind, page by page; None where the cluster does not serve it."""
    for attempt in range(ATTEMPTS):
        found: list[Any] = []
        page = ""
        try:
            while True:
                answer = await api.list(kind, limit=PAGE, page=page)
                found.extend(answer.items)
                page = answer.next
                if not page:
                    return found
        except NotFound:
            if kind in OPTIONAL:
                return None
            raise
        except Forbidden as error:
            advice = f"Growth reads {kind}: grant list on it (`growth rbac --read-only`), or give the objects as files with -f"
            raise Forbidden(f"{error.message}; {advice}", reason=error.reason, details=error.details) from error
        except Gone:
            if attempt + 1 == ATTEMPTS:
                raise
    return None
